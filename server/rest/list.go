package rest

import (
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
	switch f {
	case formTable:
		return s.sendTable(w, r, meta, found.Items)
	case formMetadata:
		return sendList(w, r.Request, "meta.k8s.io/v1", "PartialObjectMetadataList", meta, found.Items, metadataOf)
	}
	return sendList(w, r.Request, r.kind.GroupVersion().String(), r.kind.Kind+"List", meta, found.Items, nil)
}

// find lists by what a client asked for.
func (s *server) find(r *request, opts listQuery) (objects.List, error) {
	found, err := s.cfg.Registry.List(r.Context(), r.kind, r.Namespace, opts.ListOptions)
	if err == nil && opts.minRev > found.Rev {
		opts.At = opts.minRev // it is not there yet: the registry's error says so
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

// listQuery is what the query of a list says.
type listQuery struct {
	objects.ListOptions
	minRev uint64        // the revision that the answer must have reached
	token  *continuation // of what the client goes on with
}

// listOptions reads the query of a list.
func listOptions(q url.Values) (opts listQuery, err error) {
	if opts.Labels, opts.Fields, err = selectors(q); err != nil {
		return opts, err
	}
	if opts.Limit, err = limit(q); err != nil {
		return opts, err
	}
	if _, err := timeoutSeconds(q); err != nil { // a list is done long before
		return opts, err
	}
	if token := q.Get("continue"); token != "" {
		return opts, opts.goOn(token, q)
	}
	if opts.minRev, err = revision(q); err != nil {
		return opts, err
	}
	switch match := metav1.ResourceVersionMatch(q.Get("resourceVersionMatch")); {
	case match == "":
		if opts.Limit > 0 && opts.minRev > 0 {
			opts.At = opts.minRev // Kubernetes' rule for a first page
		}
	case q.Get("resourceVersion") == "":
		return opts, badRequest("resourceVersionMatch is forbidden unless resourceVersion is provided")
	case match == metav1.ResourceVersionMatchNotOlderThan:
	case match != metav1.ResourceVersionMatchExact:
		return opts, badRequest("resourceVersionMatch: Unsupported value: %q: supported values: %q, %q", match,
			metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan)
	case opts.minRev == 0:
		return opts, badRequest("resourceVersionMatch %q is forbidden for resourceVersion \"0\"", match)
	default:
		opts.At = opts.minRev
	}
	return opts, nil
}

// goOn makes opts those of the next page.
func (opts *listQuery) goOn(text string, q url.Values) error {
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
