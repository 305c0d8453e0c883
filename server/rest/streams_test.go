package rest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"bramble.dev/bramble/server/rest"
)

// readers may get all and create nothing.
type readers struct{ users }

func (readers) Authorize(_ context.Context, a attributes) (bool, string, error) {
	return a.Verb == "get", "", nil
}

// A WebSocket's GET does what a POST does, and needs as much.
func TestStreamsNeedCreate(t *testing.T) {
	f := serve(t, func(c *rest.Config) { c.Authorizer = readers{} })
	for _, path := range []string{"/exec?command=true&stdout=true", "/portforward"} {
		a := f.must(http.StatusForbidden, "GET", "/api/v1/namespaces/default/pods/web"+path, "")
		if !strings.Contains(a.body, "cannot create resource") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}

func TestStreamsThatCannotBe(t *testing.T) {
	f := serve(t, nil)
	for query, want := range map[string]string{
		"stdout=true":                 "command: Required value",
		"command=true":                "at least 1 of stdin, stdout, stderr",
		"command=true&stdout=perhaps": "stdout: Invalid value",
	} {
		a := f.must(http.StatusBadRequest, "POST", "/api/v1/namespaces/default/pods/web/exec?"+query, "")
		if !strings.Contains(a.body, want) {
			t.Errorf("%s: %s, want %s", query, a.body, want)
		}
	}
	f.must(http.StatusNotFound, "POST", "/api/v1/namespaces/default/pods/web/exec?command=true&stdout=true", "")
}
