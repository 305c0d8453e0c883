package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"bramble.dev/bramble/server/objects"
)

// list serves a whole collection: limit is a wish that Kubernetes lets a server
// answer with everything.
func (s *server) list(w http.ResponseWriter, r *request) error {
	f, err := accepts(r.Request, true)
	if err != nil {
		return err
	}
	opts, rev, err := listOptions(r.URL.Query())
	if err != nil {
		return err
	}
	found, err := s.cfg.Registry.List(r.Context(), r.kind, r.Namespace, opts)
	if err == nil && rev > found.Rev {
		opts.At = rev // what is to be at least so new is not there yet: the registry's error says so
		found, err = s.cfg.Registry.List(r.Context(), r.kind, r.Namespace, opts)
	}
	if err != nil {
		return err
	}
	var body []byte
	switch f {
	case formTable:
		body, err = s.tableOf(r, found.Rev, found.Items, true)
	case formMetadata:
		body, err = metadataListOf(found)
	default:
		body = listOf(r.kind.GroupVersion().String(), r.kind.Kind+"List", found.Rev, found.Items)
	}
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, body)
	return nil
}

// listOf writes a list around bodies that are encoded already.
func listOf(apiVersion, kind string, rev uint64, items []objects.Stored) []byte {
	size := 128
	for _, item := range items {
		size += len(item.Body) + 1
	}
	buf := bytes.NewBuffer(make([]byte, 0, size))
	fmt.Fprintf(buf, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[`, kind, apiVersion, rev)
	for i, item := range items {
		if i > 0 {
			buf.WriteByte(',')
		}
		buf.Write(bytes.TrimRight(item.Body, "\n"))
	}
	buf.WriteString("]}\n")
	return buf.Bytes()
}

// listOptions reads the query of a list. rev is the revision that the answer
// must have reached, or with opts.At be of.
func listOptions(q url.Values) (opts objects.ListOptions, rev uint64, err error) {
	if opts.Labels, opts.Fields, err = selectors(q); err != nil {
		return opts, 0, err
	}
	if q.Get("continue") != "" {
		return opts, 0, apierrors.NewResourceExpired("the continue token is not of this server; list again from the start")
	}
	if rev, err = revision(q); err != nil {
		return opts, 0, err
	}
	switch match := metav1.ResourceVersionMatch(q.Get("resourceVersionMatch")); {
	case match == "":
	case q.Get("resourceVersion") == "":
		return opts, 0, badRequest("resourceVersionMatch is forbidden unless resourceVersion is provided")
	case match == metav1.ResourceVersionMatchNotOlderThan:
	case match != metav1.ResourceVersionMatchExact:
		return opts, 0, badRequest("resourceVersionMatch: Unsupported value: %q: supported values: %q, %q", match,
			metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan)
	case rev == 0:
		return opts, 0, badRequest("resourceVersionMatch %q is forbidden for resourceVersion \"0\"", match)
	default:
		opts.At = rev
	}
	return opts, rev, nil
}

// selectors reads labelSelector and fieldSelector; both may be absent.
func selectors(q url.Values) (labels.Selector, fields.Selector, error) {
	ls, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		return nil, nil, badRequest("unable to parse labelSelector: %v", err)
	}
	fs, err := fields.ParseSelector(q.Get("fieldSelector"))
	if err != nil {
		return nil, nil, badRequest("unable to parse fieldSelector: %v", err)
	}
	return ls, fs, nil
}

// revision reads resourceVersion; 0 where there is none.
func revision(q url.Values) (uint64, error) {
	text := q.Get("resourceVersion")
	if text == "" {
		return 0, nil
	}
	rev, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, badRequest("resourceVersion: Invalid value: %q: must be a number that this server handed out", text)
	}
	return rev, nil
}

func metadataListOf(found objects.List) ([]byte, error) {
	items := make([]objects.Stored, len(found.Items))
	for i, item := range found.Items {
		body, err := metadataOf(item.Body)
		if err != nil {
			return nil, err
		}
		items[i] = objects.Stored{Rev: item.Rev, Body: body}
	}
	return listOf("meta.k8s.io/v1", "PartialObjectMetadataList", found.Rev, items), nil
}

// metadataOf cuts an object down to its metadata.
func metadataOf(body []byte) ([]byte, error) {
	var cut struct {
		Kind       string          `json:"kind"`
		APIVersion string          `json:"apiVersion"`
		Metadata   json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(body, &cut); err != nil {
		return nil, fmt.Errorf("cannot read a stored object's metadata: %w", err)
	}
	cut.Kind, cut.APIVersion = "PartialObjectMetadata", "meta.k8s.io/v1"
	return json.Marshal(cut)
}
