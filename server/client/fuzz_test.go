package client

import (
	"net/http"
	"strings"
	"testing"
)

func FuzzSplitToken(f *testing.F) {
	f.Add("bramble1." + strings.Repeat("a", 64) + ".id.secret")
	f.Add("bramble1...")
	f.Add("")
	f.Fuzz(func(t *testing.T, token string) {
		hash, bearer, err := splitToken(token)
		if err == nil && "bramble1."+hash+"."+bearer != strings.TrimSpace(token) {
			t.Errorf("%q was read as %q and %q", token, hash, bearer)
		}
	})
}

func FuzzStatusError(f *testing.F) {
	f.Add([]byte(`{"kind":"Status","message":"m","code":401}`))
	f.Add([]byte(`<html>`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if statusError(&http.Response{Status: "502 Bad Gateway"}, body) == nil {
			t.Error("an error became none")
		}
	})
}

func FuzzCertificate(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := parseCertificate(text); (c == nil) == (err == nil) {
			t.Errorf("%v, %v", c, err)
		}
	})
}
