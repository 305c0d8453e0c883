package main

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// operation is one method at one path, for both versions of OpenAPI.
type operation struct {
	method, id, action, about string
	resource                  resource
	query                     []parameter
	body, answer              string // type names; "" none
	consumes                  []string
	code                      int
}

// parameter is one of the query or, with path, of the address.
type parameter struct {
	name, kind, about string
	path              bool
}

// operationsOf returns all operations of a group by path.
func operationsOf(gv schema.GroupVersion) map[string][]operation {
	all := make(map[string][]operation)
	for _, r := range resources {
		if r.GroupVersion() != gv {
			continue
		}
		collection := root(gv) + "/" + r.plural
		if r.namespaced {
			if r.lists() {
				all[collection] = []operation{listOperation(r, "ForAllNamespaces")}
			}
			collection = root(gv) + "/namespaces/{namespace}/" + r.plural
		}
		if r.lists() {
			all[collection] = append(all[collection], listOperation(r, ""))
		}
		if strings.Contains(r.verbs, "c") {
			all[collection] = append(all[collection], operation{
				method: http.MethodPost, action: "post", id: "create", about: "create a " + r.Kind, resource: r,
				query: writeQuery(), body: r.typeName, answer: r.typeName, consumes: anyBody(), code: http.StatusCreated,
			})
		}
		if strings.Contains(r.verbs, "r") {
			all[collection+"/{name}"] = itemOperations(r, "")
		}
		if r.status {
			all[collection+"/{name}/status"] = itemOperations(r, "Status")
		}
		if r.Kind == "Pod" {
			bind := r
			bind.GroupVersionKind = coreV1.WithKind("Binding")
			all[collection+"/{name}/binding"] = []operation{{
				method: http.MethodPost, action: "post", id: "create", about: "bind a Pod to a node", resource: bind,
				query: writeQuery(), body: core + "Binding", answer: core + "Binding", consumes: anyBody(), code: http.StatusCreated,
			}}
			evict := r
			evict.GroupVersionKind = policyV1.WithKind("Eviction")
			all[collection+"/{name}/eviction"] = []operation{{
				method: http.MethodPost, action: "post", id: "create", about: "evict a Pod from its node", resource: evict,
				query: writeQuery(), body: policy + "Eviction", answer: meta + "Status", consumes: anyBody(), code: http.StatusCreated,
			}}
			all[collection+"/{name}/log"] = []operation{{
				method: http.MethodGet, action: "get", id: "readLogOf", about: "read the log of one of a Pod's containers", resource: r,
				query: logQuery(), code: http.StatusOK,
			}}
		}
	}
	return all
}

func listOperation(r resource, suffix string) operation {
	return operation{
		method: http.MethodGet, action: "list", id: "list", about: "list or watch objects of kind " + r.Kind + suffix, resource: r,
		query: listQuery(), answer: r.typeName + "List", code: http.StatusOK,
	}
}

func itemOperations(r resource, part string) []operation {
	what := "the specified " + r.Kind
	if part != "" {
		what = "status of " + what
	}
	all := []operation{{
		method: http.MethodGet, action: "get", id: "read" + part, about: "read " + what, resource: r, answer: r.typeName, code: http.StatusOK,
	}}
	if strings.Contains(r.verbs, "u") {
		all = append(all, operation{
			method: http.MethodPut, action: "put", id: "replace" + part, about: "replace " + what, resource: r,
			query: writeQuery(), body: r.typeName, answer: r.typeName, consumes: anyBody(), code: http.StatusOK,
		})
	}
	if strings.Contains(r.verbs, "p") {
		all = append(all, operation{
			method: http.MethodPatch, action: "patch", id: "patch" + part, about: "partially update " + what, resource: r,
			query: append(writeQuery(), parameter{"force", "boolean", "Force takes over fields that other managers of an apply own.", false}),
			body:  meta + "Patch", answer: r.typeName, code: http.StatusOK,
			consumes: []string{
				"application/json-patch+json", "application/merge-patch+json",
				"application/strategic-merge-patch+json", "application/apply-patch+yaml",
			},
		})
	}
	if strings.Contains(r.verbs, "d") && part == "" {
		all = append(all, operation{
			method: http.MethodDelete, action: "delete", id: "delete", about: "delete " + what, resource: r,
			query: deleteQuery(), body: meta + "DeleteOptions", answer: meta + "Status", consumes: anyBody(), code: http.StatusOK,
		})
	}
	return all
}

func root(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.String()
}

func anyBody() []string {
	return []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"}
}

// operationID is unique in a document, as Kubernetes names its own.
func (o operation) operationID(path string) string {
	group := "Core"
	if g := o.resource.Group; g != "" {
		first, _, _ := strings.Cut(g, ".")
		group = upper(first)
	}
	scope := ""
	if strings.Contains(path, "{namespace}") {
		scope = "Namespaced"
	}
	id := o.id + group + upper(o.resource.Version) + scope + o.resource.Kind
	if o.resource.namespaced && o.action == "list" && scope == "" {
		id += "ForAllNamespaces"
	}
	return id
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func kindValue(gvk schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": gvk.Group, "kind": gvk.Kind, "version": gvk.Version}
}
