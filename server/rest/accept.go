package rest

import (
	"mime"
	"net/http"
	"sort"
	"strconv"
	"strings"
)

// form is the shape of an answer that a client asked for.
type form int

const (
	formObject   form = iota // the objects themselves
	formTable                // meta.k8s.io/v1 Table
	formMetadata             // meta.k8s.io/v1 PartialObjectMetadata, one or a list
)

// accepts returns the first of the request's media types that we can answer
// with: JSON, alone or as one of meta.k8s.io's shapes. Shapes are for objects of
// the table of kinds only.
func accepts(r *http.Request, shapes bool) (form, error) {
	headers := r.Header.Values("Accept")
	if len(headers) == 0 {
		return formObject, nil
	}
	for _, c := range parseAccept(headers) {
		switch c.media {
		case "application/json", "application/*", "*/*":
		default:
			continue
		}
		as := c.params["as"]
		if as == "" {
			return formObject, nil
		}
		if !shapes || c.params["g"] != "meta.k8s.io" || c.params["v"] != "v1" {
			continue
		}
		switch as {
		case "Table":
			return formTable, nil
		case "PartialObjectMetadata", "PartialObjectMetadataList":
			return formMetadata, nil
		}
	}
	return formObject, notAcceptable()
}

type clause struct {
	media  string
	params map[string]string
	q      float64
}

// parseAccept returns the clauses of Accept headers, best first (RFC 9110
// §12.5.1). A clause with q=0 is left out. A media type that RFC 9110 does not
// allow is taken as it is: kubectl asks for one with "@" in it.
func parseAccept(headers []string) []clause {
	var all []clause
	for _, header := range headers {
		for _, part := range strings.Split(header, ",") {
			media, params, err := mime.ParseMediaType(strings.TrimSpace(part))
			if err != nil {
				media, _, _ = strings.Cut(strings.TrimSpace(part), ";")
			}
			q := 1.0
			if s, ok := params["q"]; ok {
				if q, err = strconv.ParseFloat(s, 64); err != nil || q <= 0 {
					continue
				}
			}
			all = append(all, clause{media, params, q})
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].q > all[j].q })
	return all
}
