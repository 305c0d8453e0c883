package auth_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/auth"
)

func openAuthority(t *testing.T, dir string) *auth.Authority {
	t.Helper()
	ca, err := auth.OpenAuthority(dir, buildDate())
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func TestAuthorityIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	first := openAuthority(t, dir)
	if second := openAuthority(t, dir); !bytes.Equal(first.PEM(), second.PEM()) {
		t.Error("opened again, it is another authority")
	}
	for _, name := range []string{"ca.crt", "ca.key"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	other := t.TempDir()
	openAuthority(t, other)
	key, err := os.ReadFile(filepath.Join(other, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func() error{
		"another's key":  func() error { return os.WriteFile(filepath.Join(dir, "ca.key"), key, 0o600) },
		"not PEM":        func() error { return os.WriteFile(filepath.Join(dir, "ca.key"), []byte("x"), 0o600) },
		"key is missing": func() error { return os.Remove(filepath.Join(dir, "ca.key")) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if _, err := auth.OpenAuthority(dir, buildDate()); err == nil {
			t.Errorf("%s: it opened", name)
		}
	}
}

// Whatever the client's clock says, the server's certificate is good.
func TestServerCertificateAtAnyClock(t *testing.T) {
	ca := openAuthority(t, t.TempDir())
	cert, err := ca.ServerCertificate([]string{"board.lan", "192.168.1.10", ""})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM())
	for _, year := range []int{1970, 2000, 2026, 2099} {
		for _, name := range []string{api.ServerName, "localhost", "board.lan", "127.0.0.1", "192.168.1.10"} {
			_, err := cert.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: time.Date(year, 1, 2, 0, 0, 0, 0, time.UTC)})
			if err != nil {
				t.Errorf("%d, %s: %v", year, name, err)
			}
		}
	}
}

func TestAdminKubeconfig(t *testing.T) {
	ca := openAuthority(t, t.TempDir())
	clock := auth.NewClock(buildDate())
	path := filepath.Join(t.TempDir(), "sub", "admin.kubeconfig")
	read := func() []byte {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	write := func(url string) {
		t.Helper()
		if err := ca.WriteAdminKubeconfig(path, url, clock); err != nil {
			t.Fatal(err)
		}
	}
	write("https://10.0.0.1:6443")
	first := read()
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(first)
	if err != nil || config.Host != "https://10.0.0.1:6443" || config.TLSClientConfig.ServerName != api.ServerName {
		t.Errorf("client-go reads %+v, %v", config, err)
	}
	if _, err := tls.X509KeyPair(config.CertData, config.KeyData); err != nil {
		t.Error(err)
	}
	keys, err := auth.OpenNodeKeys(newMemory(), prefix("10.0.0.0/16"), 24)
	if err != nil {
		t.Fatal(err)
	}
	user, err := auth.NewAuthenticator(ca, clock, keys).User([]*x509.Certificate{certificate(t, string(config.CertData))})
	if !user.InGroup(api.GroupMasters) || err != nil {
		t.Errorf("it belongs to %+v, %v", user, err)
	}
	write("https://10.0.0.1:6443")
	if !bytes.Equal(first, read()) {
		t.Error("a good file was replaced")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	write("https://10.0.0.1:6443")
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Error("a readable file was left alone")
	}
	write("https://10.0.0.2:6443")
	if !strings.Contains(string(read()), "https://10.0.0.2:6443") {
		t.Error("a file with an old address was left alone")
	}
	ca = openAuthority(t, t.TempDir())
	before := read()
	write("https://10.0.0.2:6443")
	if bytes.Equal(before, read()) {
		t.Error("a file of another authority was left alone")
	}
}

func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the wall clock is at 2000-01-01
		behind := auth.NewClock(buildDate())
		if got := behind.Now(); !got.Equal(buildDate()) {
			t.Errorf("with a clock at 2000 it is %v", got)
		}
		time.Sleep(time.Hour) // of the bubble
		if got := behind.Now(); !got.Equal(buildDate().Add(time.Hour)) {
			t.Errorf("an hour later it is %v", got)
		}
		if got := auth.NewClock(time.Unix(0, 0)).Now(); !got.Equal(time.Now()) {
			t.Errorf("with a floor in the past it is %v", got)
		}
	})
}

func TestAuthenticate(t *testing.T) {
	c := newCluster(t)
	_, joined, _ := c.join(t, c.token(t, 0, 1), "kitchen", newKey(t))
	good := certificate(t, joined.Certificate)
	foreign := newCluster(t)
	_, strange, _ := foreign.join(t, foreign.token(t, 0, 1), "kitchen", newKey(t))
	server, err := c.CA.ServerCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	expired, err := c.CA.ClientCertificate(api.User{Name: "u"}, newKey(t).Public(), time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, user, want string
		state            *tls.ConnectionState
		header           string
	}{
		{name: "a node", state: shown(good), user: "system:node:kitchen"},
		{name: "again, from memory", state: shown(good), user: "system:node:kitchen"},
		{name: "nobody", state: shown()},
		{name: "no TLS"},
		{name: "a password", header: "Basic eDp5", want: "not by passwords"},
		{name: "another CA's", state: shown(certificate(t, strange.Certificate)), want: "not issued by this cluster"},
		{name: "another CA's with ours beside it", state: shown(certificate(t, strange.Certificate), good), want: "not issued by this cluster"},
		{name: "a server's", state: shown(server.Leaf), want: "not issued by this cluster"},
		{name: "expired", state: shown(expired), want: "has expired"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.TLS = test.state
		if test.header != "" {
			r.Header.Set("Authorization", test.header)
		}
		user, ok, err := c.Authenticator.Authenticate(r)
		switch {
		case test.want != "":
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", test.name, err, test.want)
			}
		case err != nil || ok != (test.user != "") || user.Name != test.user:
			t.Errorf("%s: %+v, %v, %v", test.name, user, ok, err)
		}
	}
}

// The whole handshake: a stranger's certificate is no broken connection.
func TestForeignCertificateOverTLS(t *testing.T) {
	c, foreign := newCluster(t), newCluster(t)
	cert, err := c.CA.ServerCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok, err := c.Authenticator.Authenticate(r); !ok || err != nil {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequestClientCert}
	srv.StartTLS()
	defer srv.Close()
	for name, from := range map[string]struct {
		*cluster
		code int
	}{"ours": {c, 200}, "theirs": {foreign, 401}} {
		key := newKey(t)
		leaf, err := from.CA.ClientCertificate(api.User{Name: "u"}, key.Public(), time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(c.CA.PEM())
		transport := &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: api.ServerName,
				Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}}},
			DialContext: (&net.Dialer{}).DialContext,
		}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Get(srv.URL)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		resp.Body.Close()
		if resp.StatusCode != from.code {
			t.Errorf("%s: %d, want %d", name, resp.StatusCode, from.code)
		}
	}
}
