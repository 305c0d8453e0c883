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

// list serves a collection, or the part of it that limit and continue name.
func (s *server) list(w http.ResponseWriter, r *request) error {
	f, err := accepts(r.Request, true)
	if err != nil {
		return err
	}
	opts, err := listOptions(r.URL.Query())
	if err != nil {
		return err
	}
	found, err := s.find(r, opts)
	if err != nil {
		return err
	}
	meta := listMeta(found)
	var body []byte
	switch f {
	case formTable:
		body, err = s.tableOf(r, meta, found.Items, true)
	case formMetadata:
		body, err = metadataListOf(meta, found.Items)
	default:
		body, err = listOf(r.kind.GroupVersion().String(), r.kind.Kind+"List", meta, found.Items)
	}
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, body)
	return nil
}

// find lists by what a client asked for.
func (s *server) find(r *request, opts listOptionsOf) (objects.List, error) {
	found, err := s.cfg.Registry.List(r.Context(), r.kind, r.Namespace, opts.ListOptions)
	if err == nil && opts.reached > found.Rev {
		opts.At = opts.reached // it is not there yet: the registry's error says so
		found, err = s.cfg.Registry.List(r.Context(), r.kind, r.Namespace, opts.ListOptions)
	}
	if opts.token != nil && apierrors.IsResourceExpired(err) {
		err = opts.token.expired()
	}
	return found, err
}

func revisionMeta(rev uint64) metav1.ListMeta {
	return metav1.ListMeta{ResourceVersion: strconv.FormatUint(rev, 10)}
}

func listMeta(found objects.List) metav1.ListMeta {
	meta := revisionMeta(found.Rev)
	if found.Remaining != 0 {
		meta.Continue = continuation{Revision: found.Rev, After: found.Last}.String()
	}
	if found.Remaining > 0 {
		meta.RemainingItemCount = &found.Remaining
	}
	return meta
}

// listOf writes a list around bodies that are encoded already.
func listOf(apiVersion, kind string, meta metav1.ListMeta, items []objects.Stored) ([]byte, error) {
	head, err := json.Marshal(meta)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a list's metadata: %w", err)
	}
	size := len(head) + 128
	for _, item := range items {
		size += len(item.Body) + 1
	}
	buf := bytes.NewBuffer(make([]byte, 0, size))
	fmt.Fprintf(buf, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, kind, apiVersion, head)
	for i, item := range items {
		if i > 0 {
			buf.WriteByte(',')
		}
		buf.Write(bytes.TrimRight(item.Body, "\n"))
	}
	buf.WriteString("]}\n")
	return buf.Bytes(), nil
}

// listOptionsOf is what the query of a list says.
type listOptionsOf struct {
	objects.ListOptions
	reached uint64        // the revision that the answer must have reached
	token   *continuation // of what the client goes on with
}

// listOptions reads the query of a list.
func listOptions(q url.Values) (opts listOptionsOf, err error) {
	if opts.Labels, opts.Fields, err = selectors(q); err != nil {
		return opts, err
	}
	if opts.Limit, err = limit(q); err != nil {
		return opts, err
	}
	if token := q.Get("continue"); token != "" {
		return opts, opts.goOn(token, q)
	}
	if opts.reached, err = revision(q); err != nil {
		return opts, err
	}
	switch match := metav1.ResourceVersionMatch(q.Get("resourceVersionMatch")); {
	case match == "":
		if opts.Limit > 0 && opts.reached > 0 {
			opts.At = opts.reached // Kubernetes' rule for a first page
		}
	case q.Get("resourceVersion") == "":
		return opts, badRequest("resourceVersionMatch is forbidden unless resourceVersion is provided")
	case match == metav1.ResourceVersionMatchNotOlderThan:
	case match != metav1.ResourceVersionMatchExact:
		return opts, badRequest("resourceVersionMatch: Unsupported value: %q: supported values: %q, %q", match,
			metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan)
	case opts.reached == 0:
		return opts, badRequest("resourceVersionMatch %q is forbidden for resourceVersion \"0\"", match)
	default:
		opts.At = opts.reached
	}
	return opts, nil
}

// goOn makes opts those of the next page.
func (opts *listOptionsOf) goOn(text string, q url.Values) error {
	if rev := q.Get("resourceVersion"); rev != "" && rev != "0" {
		return badRequest("specifying resource version is not allowed when using continue")
	}
	if q.Get("resourceVersionMatch") != "" {
		return badRequest("resourceVersionMatch is forbidden when continue is provided")
	}
	token, err := parseContinuation(text)
	if err != nil {
		return err
	}
	opts.token, opts.After, opts.At = &token, token.After, token.Revision
	return nil
}

func limit(q url.Values) (int, error) {
	text := q.Get("limit")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, badRequest("limit: Invalid value: %q: must be a number, 0 or more", text)
	}
	return n, nil
}

// maxSelector is the longest selector in bytes: each object is held against each
// of its terms.
const maxSelector = 16 << 10

// selectors reads labelSelector and fieldSelector; both may be absent.
func selectors(q url.Values) (labels.Selector, fields.Selector, error) {
	for _, name := range []string{"labelSelector", "fieldSelector"} {
		if n := len(q.Get(name)); n > maxSelector {
			return nil, nil, badRequest("%s: Too long: %d bytes, may not be more than %d: select by fewer terms", name, n, maxSelector)
		}
	}
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

func metadataListOf(meta metav1.ListMeta, found []objects.Stored) ([]byte, error) {
	items := make([]objects.Stored, len(found))
	for i, item := range found {
		body, err := metadataOf(item.Body)
		if err != nil {
			return nil, err
		}
		items[i] = objects.Stored{Rev: item.Rev, Body: body}
	}
	return listOf("meta.k8s.io/v1", "PartialObjectMetadataList", meta, items)
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
