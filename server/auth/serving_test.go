package auth_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/auth"
)

// The server's certificate and the administrator's kubeconfig are made anew in
// time, while it runs, and not before.
func TestServingRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		ca, err := auth.OpenAuthority(dir, buildDate())
		if err != nil {
			t.Fatal(err)
		}
		s := &auth.Serving{
			Authority: ca, Clock: auth.NewClock(buildDate()), Kubeconfig: filepath.Join(dir, "admin.kubeconfig"),
			URL: "https://127.0.0.1:6443", Life: 90 * 24 * time.Hour, Log: slog.New(slog.DiscardHandler),
		}
		if err := s.Renew(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = s.Run(ctx) }()
		shown := func() []byte {
			cert, err := s.Certificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			return cert.Certificate[0]
		}
		kubeconfig := func() string {
			text, err := os.ReadFile(s.Kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		after := func(days int) {
			<-time.After(time.Duration(days)*24*time.Hour + 2*time.Hour)
			synctest.Wait()
		}
		first, config := shown(), kubeconfig()
		after(59)
		if !bytes.Equal(shown(), first) {
			t.Error("renewed before two thirds of its life")
		}
		after(1)
		second := shown()
		if bytes.Equal(second, first) {
			t.Error("not renewed after two thirds of its life")
		}
		if kubeconfig() != config {
			t.Error("the kubeconfig, good for ten years, was made anew after two months")
		}
		cancel() // seven years of looking each hour would take long
		after(7 * 365)
		if err := s.Renew(); err != nil {
			t.Fatal(err)
		}
		if kubeconfig() == config {
			t.Error("the kubeconfig was not renewed in its last third")
		}
	})
}

func TestUserCertificateNeedsTheRightToImpersonate(t *testing.T) {
	c := newCluster(t)
	f := defaultPolicy()
	f.put(ofCluster("ann", policyRule("impersonate", "", "users", "bob"))...)
	serve := c.CreateUser(auth.NewAuthorizer(nil, auth.NewRBAC(f)))
	root := api.User{Name: "root", Groups: []string{api.GroupMasters}}
	for _, test := range []struct {
		name        string
		by          api.User
		user, group string
		ttl         string
		code        int
		want        string
	}{
		{"administrator", root, "bob", "g", "0", 201, ""},
		{"an administrator made", root, "bob", "system:masters", "0", 201, ""},
		{"who may act as bob", member("ann"), "bob", "", "600", 201, ""},
		{"with a group", member("ann"), "bob", "system:masters", "0", 403, `groups \"system:masters\"`},
		{"who may not", member("ann"), "carol", "", "0", 403, "needs the verb impersonate"},
		{"a node", root, "system:node:shelf", "", "0", 400, "reserved"},
		{"a node's group", root, "bob", "system:nodes", "0", 400, "reserved"},
		{"no name", root, "", "", "0", 400, "common name"},
		{"short", root, "bob", "", "599", 400, "ttlSeconds"},
		{"long", root, "bob", "", "31536001", 400, "ttlSeconds"},
	} {
		csr := request(t, test.user, test.group, newKey(t))
		body := `{"csr":` + quote(csr) + `,"ttlSeconds":` + test.ttl + `}`
		r := httptest.NewRequestWithContext(api.WithUser(t.Context(), test.by), http.MethodPost, api.UsersPath, strings.NewReader(body))
		w := httptest.NewRecorder()
		serve.ServeHTTP(w, r)
		if w.Code != test.code || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s: %d %s, want %d %s", test.name, w.Code, w.Body, test.code, test.want)
		}
	}
}

func quote(s string) string { return `"` + strings.ReplaceAll(s, "\n", `\n`) + `"` }
