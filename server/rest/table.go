package rest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"bramble.dev/bramble/server/objects"
)

// tableOf prints objects as a meta.k8s.io/v1 Table: the kind's columns between
// Name and Age. Watches want the columns in their first event only.
func (s *server) tableOf(r *request, meta metav1.ListMeta, items []objects.Stored, columns bool) ([]byte, error) {
	include, err := includeObject(r)
	if err != nil {
		return nil, err
	}
	table := metav1.Table{
		TypeMeta:          metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"},
		ListMeta:          meta,
		ColumnDefinitions: []metav1.TableColumnDefinition{},
		Rows:              make([]metav1.TableRow, 0, len(items)),
	}
	if columns {
		table.ColumnDefinitions = columnsOf(r.kind)
	}
	now := s.cfg.Now()
	for _, item := range items {
		row, err := rowOf(r.kind, item, include, now)
		if err != nil {
			return nil, err
		}
		table.Rows = append(table.Rows, row)
	}
	body, err := json.Marshal(table)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the table of %s: %w", r.kind.Resource(), err)
	}
	return append(body, '\n'), nil
}

func includeObject(r *request) (metav1.IncludeObjectPolicy, error) {
	switch include := metav1.IncludeObjectPolicy(r.URL.Query().Get("includeObject")); include {
	case "":
		return metav1.IncludeMetadata, nil
	case metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject:
		return include, nil
	default:
		return "", badRequest("includeObject: Invalid value: %q: must be 'Metadata', 'Object', 'None', or empty", include)
	}
}

func columnsOf(k *objects.Kind) []metav1.TableColumnDefinition {
	columns := slices.Clone(k.Columns)
	if !k.NoAge {
		columns = slices.Insert(columns, agePosition(k), metav1.TableColumnDefinition{
			Name: "Age", Type: "string", Description: "Time since the object was created.",
		})
	}
	if namesItself(k) {
		return columns
	}
	return slices.Insert(columns, 0, metav1.TableColumnDefinition{
		Name: "Name", Type: "string", Format: "name", Description: "The object's name, unique among its kind in its namespace.",
	})
}

// agePosition is behind the columns that are always shown, before the wide ones.
func agePosition(k *objects.Kind) int {
	wide := slices.IndexFunc(k.Columns, func(c metav1.TableColumnDefinition) bool { return c.Priority > 0 })
	if wide < 0 {
		return len(k.Columns)
	}
	return wide
}

func rowOf(k *objects.Kind, item objects.Stored, include metav1.IncludeObjectPolicy, now time.Time) (metav1.TableRow, error) {
	obj, body := k.New(), item.Body.Bytes()
	if err := json.Unmarshal(body, obj); err != nil {
		return metav1.TableRow{}, fmt.Errorf("cannot read a stored %s: %w", k.Kind, err)
	}
	row := metav1.TableRow{Cells: cellsOf(k, obj, now)}
	switch include {
	case metav1.IncludeObject:
		row.Object = runtime.RawExtension{Raw: body}
	case metav1.IncludeMetadata:
		raw, err := metadataOf(body)
		if err != nil {
			return row, err
		}
		row.Object = runtime.RawExtension{Raw: raw}
	}
	return row, nil
}

func cellsOf(k *objects.Kind, obj objects.Object, now time.Time) []any {
	cells := make([]any, len(k.Columns))
	if k.Row != nil {
		copy(cells, k.Row(obj, now))
	}
	if !k.NoAge {
		cells = slices.Insert(cells, agePosition(k), any(age(obj, now)))
	}
	if namesItself(k) {
		return cells
	}
	return slices.Insert(cells, 0, any(obj.GetName()))
}

// namesItself reports whether a kind has its name in a column of its own, which
// is then not the first (events).
func namesItself(k *objects.Kind) bool {
	return slices.ContainsFunc(k.Columns, func(c metav1.TableColumnDefinition) bool { return c.Format == "name" })
}

func age(obj objects.Object, now time.Time) string {
	created := obj.GetCreationTimestamp()
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(created.Time))
}
