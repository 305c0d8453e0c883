package objects

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"bramble.dev/bramble/server/store"
)

// Every kind's objects can be selected by these.
const (
	fieldName      = "metadata.name"
	fieldNamespace = "metadata.namespace"
)

// traits is what is kept decoded of each stored object.
type traits struct {
	labels   words // names and values in turn
	fields   words // the values of Kind.FieldNames, in that order
	deleting bool
}

func traitsOf(k *Kind, obj Object) traits {
	t := traits{labels: wordsOfMap(obj.GetLabels()), deleting: obj.GetDeletionTimestamp() != nil}
	if k.Fields != nil {
		set := k.Fields(obj)
		values := make([]string, len(k.FieldNames))
		for i, name := range k.FieldNames {
			values[i] = set[name]
		}
		t.fields = wordsOf(values)
	}
	return t
}

// traitsOfEntry returns what a write or an earlier reader left with the entry,
// or decodes it, which happens once after a start.
func traitsOfEntry(k *Kind, e store.Entry) traits {
	return e.Memo.Get(func() any {
		if k.Fields != nil {
			if obj, err := k.Decode(e.Body.Bytes()); err == nil {
				return traitsOf(k, obj)
			}
		}
		var cut struct {
			Metadata struct {
				Labels            map[string]string `json:"labels"`
				DeletionTimestamp *metav1.Time      `json:"deletionTimestamp"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(e.Body.Bytes(), &cut); err != nil {
			return traits{}
		}
		return traits{labels: wordsOfMap(cut.Metadata.Labels), deleting: cut.Metadata.DeletionTimestamp != nil}
	}).(traits)
}

// selection is a namespace ("": all) and selectors (nil: everything) of a kind.
type selection struct {
	kind      *Kind
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

// newSelection fails with 400 if the field selector names what the kind cannot
// be selected by.
func newSelection(k *Kind, namespace string, ls labels.Selector, fs fields.Selector) (selection, error) {
	s := selection{kind: k, namespace: namespace}
	if ls != nil && !ls.Empty() {
		s.labels = ls
	}
	if fs == nil || fs.Empty() {
		return s, nil
	}
	s.fields = fs
	for _, req := range fs.Requirements() {
		if req.Field != fieldName && req.Field != fieldNamespace && !slices.Contains(k.FieldNames, req.Field) {
			supported := append([]string{fieldName, fieldNamespace}, k.FieldNames...)
			return s, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s (%s can be selected by %s)",
				req.Field, k.Plural, strings.Join(supported, ", ")))
		}
	}
	return s, nil
}

// has reports whether e, which may be a zero Entry, is selected.
func (s selection) has(e store.Entry) bool {
	if e.Rev == 0 || s.namespace != "" && e.Namespace != s.namespace {
		return false
	}
	if s.labels == nil && s.fields == nil {
		return true
	}
	t := traitsOfEntry(s.kind, e)
	return (s.labels == nil || s.labels.Matches(labelView(t.labels))) &&
		(s.fields == nil || s.fields.Matches(fieldView{e.Key, s.kind.FieldNames, t.fields}))
}

// labelView is an entry's labels as a selector sees them.
type labelView words

// Lookup implements labels.Labels.
func (v labelView) Lookup(label string) (value string, exists bool) {
	var name string
	for rest := words(v); rest != ""; {
		name, rest = rest.next()
		value, rest = rest.next()
		if name == label {
			return value, true
		}
	}
	return "", false
}

// Has implements labels.Labels.
func (v labelView) Has(label string) bool {
	_, exists := v.Lookup(label)
	return exists
}

// Get implements labels.Labels.
func (v labelView) Get(label string) string {
	value, _ := v.Lookup(label)
	return value
}

// fieldView is an entry as a field selector sees it: beside its key the values of
// the fields that names lists.
type fieldView struct {
	key    store.Key
	names  []string
	values words
}

// Has implements fields.Fields.
func (v fieldView) Has(field string) bool {
	return field == fieldName || field == fieldNamespace || slices.Contains(v.names, field)
}

// Get implements fields.Fields.
func (v fieldView) Get(field string) string {
	switch field {
	case fieldName:
		return v.key.Name
	case fieldNamespace:
		return v.key.Namespace
	}
	rest := v.values
	for _, name := range v.names {
		if rest == "" {
			break // its body could not be decoded
		}
		var value string
		if value, rest = rest.next(); name == field {
			return value
		}
	}
	return ""
}
