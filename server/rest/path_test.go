package rest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePath(t *testing.T) {
	resource := func(verb, group, version, namespace, res, name, sub, tail string) info {
		return info{Verb: verb, IsResource: true, Group: group, Version: version, Namespace: namespace, Resource: res, Name: name, Subresource: sub, Tail: tail}
	}
	tests := []struct {
		method, path string
		watch        bool
		want         info
	}{
		{"GET", "/", false, info{Verb: "get"}},
		{"GET", "/api", false, info{Verb: "get"}},
		{"GET", "/api/v1", false, info{Verb: "get"}},
		{"GET", "/apis/g/v1", false, info{Verb: "get"}},
		{"POST", "/version", false, info{Verb: "post"}},
		{"GET", "/api/v1/pods", false, resource("list", "", "v1", "", "pods", "", "", "")},
		{"GET", "/api/v1/pods", true, resource("watch", "", "v1", "", "pods", "", "", "")},
		{"GET", "/api/v1/nodes/n", true, resource("get", "", "v1", "", "nodes", "n", "", "")},
		{"HEAD", "/api/v1/nodes/n", false, resource("get", "", "v1", "", "nodes", "n", "", "")},
		{"PATCH", "/api/v1/nodes/n/status", false, resource("patch", "", "v1", "", "nodes", "n", "status", "")},
		{"POST", "/apis/g/v1/namespaces/a/things", false, resource("create", "g", "v1", "a", "things", "", "", "")},
		{"DELETE", "/apis/g/v1/namespaces/a/things", false, resource("deletecollection", "g", "v1", "a", "things", "", "", "")},
		{"DELETE", "/apis/g/v1/namespaces/a/things/b", false, resource("delete", "g", "v1", "a", "things", "b", "", "")},
		{"GET", "/api/v1/namespaces", false, resource("list", "", "v1", "", "namespaces", "", "", "")},
		{"PUT", "/api/v1/namespaces/a", false, resource("update", "", "v1", "a", "namespaces", "a", "", "")},
		{"PUT", "/api/v1/namespaces/a/finalize", false, resource("update", "", "v1", "a", "namespaces", "a", "finalize", "")},
		{"PUT", "/api/v1/namespaces/status/pods/p", false, resource("update", "", "v1", "status", "pods", "p", "", "")},
		{"GET", "/api/v1/namespaces/a/pods/p:80/proxy", false, resource("get", "", "v1", "a", "pods", "p:80", "proxy", "")},
		{"GET", "/api/v1/namespaces/a/pods/p/proxy/", false, resource("get", "", "v1", "a", "pods", "p", "proxy", "/")},
		{"POST", "/api/v1/namespaces/a/pods/p/proxy/x/y/", false, resource("create", "", "v1", "a", "pods", "p", "proxy", "/x/y/")},
	}
	for _, test := range tests {
		test.want.Path = test.path
		if diff := cmp.Diff(test.want, parsePath(test.method, test.path, test.watch)); diff != "" {
			t.Errorf("%s %s:\n%s", test.method, test.path, diff)
		}
	}
}
