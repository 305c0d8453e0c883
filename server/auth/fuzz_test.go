package auth

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// FuzzJoinBody feeds what a stranger may send before it is known.
func FuzzJoinBody(f *testing.F) {
	f.Add("POST", `{"nodeName":"a","csr":"-----BEGIN CERTIFICATE REQUEST-----\nAA==\n-----END CERTIFICATE REQUEST-----\n"}`)
	f.Add("POST", `{"nodeName":1}`)
	f.Add("POST", `{} {}`)
	f.Add("GET", ``)
	f.Fuzz(func(t *testing.T, method, body string) {
		if strings.ContainsFunc(method, func(r rune) bool { return r < 'A' || r > 'Z' }) || method == "" {
			return // net/http refuses such methods
		}
		r := httptest.NewRequest(method, "/", strings.NewReader(body))
		w := httptest.NewRecorder()
		serve(w, r, slog.New(slog.DiscardHandler), func(in struct{ NodeName, CSR string }) (any, int, error) {
			req, err := parseNodeRequest(in.CSR)
			if err == nil && (req.name == "" || req.public == nil) {
				t.Errorf("%q gave %+v", in.CSR, req)
			}
			return in, http.StatusOK, nil
		})
		if w.Code == http.StatusInternalServerError {
			t.Errorf("%d for %q", w.Code, body)
		}
	})
}

func TestSubnets(t *testing.T) {
	for _, test := range []struct {
		of          string
		bits        int
		first, last string
		n           int
	}{
		{"10.100.0.0/14", 24, "10.100.0.0/24", "10.103.255.0/24", 1024},
		{"10.0.0.0/24", 24, "10.0.0.0/24", "10.0.0.0/24", 1},
		{"10.0.0.0/22", 26, "10.0.0.0/26", "10.0.3.192/26", 16},
		{"255.255.254.0/23", 24, "255.255.254.0/24", "255.255.255.0/24", 2},
		{"fd00::/48", 56, "fd00::/56", "fd00:0:0:ff00::/56", 256},
	} {
		var got []netip.Prefix
		for p := range subnets(netip.MustParsePrefix(test.of), test.bits) {
			got = append(got, p)
		}
		if len(got) != test.n || got[0].String() != test.first || got[len(got)-1].String() != test.last {
			t.Errorf("%s by /%d: %d, %v to %v", test.of, test.bits, len(got), got[0], got[len(got)-1])
		}
	}
}
