package rest

import (
	"net/http"
	"strings"
)

// info is what a request's method and path say, by Kubernetes' rules: resource
// requests lie under /api/VERSION and /apis/GROUP/VERSION.
type info struct {
	Verb       string // get, list, watch, create, update, patch, delete, deletecollection; or the method in lower case
	IsResource bool
	Path       string

	Group, Version, Namespace   string
	Resource, Name, Subresource string
	Tail                        string // the path after the subresource, with its leading slash
}

// parsePath does not know the table of kinds: an unknown resource is still
// a resource request, so that authorisation sees it.
func parsePath(method, path string, watch bool) info {
	in := info{Verb: strings.ToLower(method), Path: path}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) >= 3:
		in.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) >= 4:
		in.Group, in.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return in
	}
	in.IsResource = true
	if parts[0] == "namespaces" && len(parts) >= 2 {
		in.Namespace = parts[1]
		if len(parts) > 2 && !namespaceSubresource(parts[2]) {
			parts = parts[2:]
		}
	}
	in.Resource = parts[0]
	if len(parts) > 1 {
		in.Name = parts[1]
	}
	if len(parts) > 2 {
		in.Subresource = parts[2]
	}
	if len(parts) > 3 || len(parts) == 3 && strings.HasSuffix(path, "/") {
		in.Tail = "/" + strings.Join(parts[3:], "/")
		if strings.HasSuffix(path, "/") && len(parts) > 3 {
			in.Tail += "/"
		}
	}
	in.Verb = resourceVerb(method, in.Name != "", watch)
	return in
}

// namespaceSubresource tells /namespaces/NAME/status from
// /namespaces/NAMESPACE/pods.
func namespaceSubresource(s string) bool { return s == "status" || s == "finalize" }

func resourceVerb(method string, named, watch bool) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		switch {
		case named:
			return "get"
		case watch:
			return "watch"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	}
	return strings.ToLower(method)
}
