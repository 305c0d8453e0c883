package rest_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/rest"
)

func TestAuthentication(t *testing.T) {
	f := serve(t, nil)
	for _, user := range []string{"none", "forged"} {
		a := f.must(http.StatusUnauthorized, "GET", configmaps, "", "Test-User", user)
		if a.at(t, "reason") != "Unauthorized" || a.header.Get("Bramble-Epoch") != "test-epoch" {
			t.Errorf("got %s", a.body)
		}
		for _, path := range []string{"/version", "/livez", "/readyz", "/healthz"} {
			f.must(http.StatusOK, "GET", path, "", "Test-User", user)
		}
		for _, path := range []string{"/", "/api", "/apis", "/metrics", "/openapi/v3", "/version/", "/readyz/x"} {
			f.must(http.StatusUnauthorized, "GET", path, "", "Test-User", user)
		}
	}
}

func TestAuthorisation(t *testing.T) {
	f := serve(t, nil)
	tests := []struct{ method, path, message string }{
		{"GET", pods + "/x", `pods "x" is forbidden: User "nobody" cannot get resource "pods" in API group "" in the namespace "default"`},
		{"GET", pods, `pods is forbidden: User "nobody" cannot list resource "pods" in API group "" in the namespace "default"`},
		{"GET", pods + "?watch=true", `pods is forbidden: User "nobody" cannot watch resource "pods" in API group "" in the namespace "default"`},
		{"GET", pods + "/x/log", `pods "x" is forbidden: User "nobody" cannot get resource "pods/log" in API group "" in the namespace "default"`},
		{"POST", "/api/v1/namespaces", `namespaces is forbidden: User "nobody" cannot create resource "namespaces" in API group "" at the cluster scope`},
		{"DELETE", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", `leases.coordination.k8s.io "b" is forbidden: User "nobody" cannot delete resource "leases" in API group "coordination.k8s.io" in the namespace "a"`},
		{"GET", "/metrics", `forbidden: User "nobody" cannot get path "/metrics"`},
	}
	for _, test := range tests {
		a := f.must(http.StatusForbidden, test.method, test.path, "{}", "Test-User", "nobody")
		if a.message(t) != test.message || a.at(t, "reason") != "Forbidden" {
			t.Errorf("%s %s:\ngot  %s\nwant %s", test.method, test.path, a.message(t), test.message)
		}
	}
}

func TestHealth(t *testing.T) {
	var broken error
	f := serve(t, func(c *rest.Config) {
		c.Checks = []rest.Check{
			{Name: "store", Run: func(context.Context) error { return broken }},
			{Name: "loop", Live: true, Run: func(context.Context) error { return nil }},
		}
	})
	if a := f.must(200, "GET", "/readyz", ""); a.body != "ok" {
		t.Errorf("got %q", a.body)
	}
	if a := f.must(200, "GET", "/readyz?verbose", ""); a.body != "[+]ping ok\n[+]store ok\n[+]loop ok\nreadyz check passed\n" {
		t.Errorf("got %q", a.body)
	}
	broken = errors.New("secret path /var/lib/x")
	a := f.must(500, "GET", "/readyz", "")
	if !strings.Contains(a.body, "[-]store failed") || strings.Contains(a.body, "secret") {
		t.Errorf("got %q", a.body)
	}
	f.must(200, "GET", "/livez", "")
}

func TestVersion(t *testing.T) {
	f := serve(t, nil)
	if a := f.must(200, "GET", "/version", ""); a.at(t, "gitVersion") != "v1.37.2+bramble-0.1.0" || a.at(t, "minor") != "37" || a.at(t, "buildDate") != api.BuildDate {
		t.Errorf("got %s", a.body)
	}
}

func TestMetrics(t *testing.T) {
	f := serve(t, nil)
	f.must(200, "GET", configmaps, "")
	f.must(404, "GET", configmaps+"/nope", "")
	f.must(404, "GET", "/api/v1/inventions/x", "")
	a := f.must(200, "GET", "/metrics", "")
	for _, want := range []string{
		`bramble_server_requests_total{code="200",resource="configmaps",verb="list"} 1`,
		`bramble_server_requests_total{code="404",resource="configmaps",verb="get"} 1`,
		`bramble_server_requests_total{code="404",resource="",verb="get"} 1`,
		`bramble_server_request_duration_seconds_count{resource="configmaps",verb="list"} 1`,
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("no %s in\n%s", want, a.body)
		}
	}
}

// What nobody expected is 500 to the client, and once in the log.
func TestUnknownErrorsStayInside(t *testing.T) {
	f := serve(t, func(c *rest.Config) {
		c.Authorizer = failing{}
	})
	a := f.must(http.StatusInternalServerError, "GET", configmaps, "")
	if strings.Contains(a.body, "hidden") || a.at(t, "reason") != "InternalError" {
		t.Errorf("got %s", a.body)
	}
	if got := strings.Count(f.log.String(), "hidden"); got != 1 {
		t.Errorf("logged %d times: %s", got, f.log)
	}
}

type failing struct{ users }

func (failing) Authorize(context.Context, attributes) (bool, string, error) {
	return false, "", errors.New("hidden cause")
}

func TestPanicsAreAnswered(t *testing.T) {
	f := serve(t, func(c *rest.Config) {
		c.Routes = []rest.Route{{Path: "/boom", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oh no") })}}
	})
	a := f.must(http.StatusInternalServerError, "GET", "/boom", "")
	if a.at(t, "kind") != "Status" || !strings.Contains(f.log.String(), "oh no") {
		t.Errorf("got %s, logged %s", a.body, f.log)
	}
	f.must(200, "GET", "/version", "")
}

func TestRoutesAndSlots(t *testing.T) {
	var passed []string
	slot := func(name string) rest.Middleware {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				user, _ := api.UserFrom(r.Context())
				passed = append(passed, name+":"+user.Name)
				next.ServeHTTP(w, r)
			})
		}
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _ := api.UserFrom(r.Context())
		_, _ = w.Write([]byte(user.Name))
	})
	f := serve(t, func(c *rest.Config) {
		c.Slots = rest.Slots{Audit: slot("audit"), Impersonation: slot("impersonation")}
		c.Routes = []rest.Route{{Path: api.JoinPath, Public: true, Handler: handler}, {Path: api.TokensPath, Handler: handler}}
	})
	if a := f.must(200, "POST", api.JoinPath, "", "Test-User", "none"); a.body != api.UserAnonymous {
		t.Errorf("public route for %q", a.body)
	}
	f.must(401, "POST", api.TokensPath, "", "Test-User", "none")
	f.must(403, "POST", api.TokensPath, "", "Test-User", "nobody")
	passed = nil
	if a := f.must(200, "POST", api.TokensPath, ""); a.body != "admin" {
		t.Errorf("route for %q", a.body)
	}
	if got := strings.Join(passed, " "); got != "audit:admin impersonation:admin" {
		t.Errorf("passed %s", got)
	}
}
