package auth_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/api"
)

// call has h serve a POST of body and decodes the answer, which is a Status
// where the code is none of success.
func call[Out any](t *testing.T, h http.HandlerFunc, bearer string, state *tls.ConnectionState, body any) (int, Out, metav1.Status) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(text))
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	r.TLS = state
	w := httptest.NewRecorder()
	h(w, r)
	var out Out
	var status metav1.Status
	into := any(&out)
	if w.Code/100 != 2 {
		into = &status
	}
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return w.Code, out, status
}

func (c *cluster) token(t *testing.T, life time.Duration, uses int) (bearer string) {
	t.Helper()
	code, out, status := call[api.TokenResponse](t, c.CreateToken, "", nil, api.TokenRequest{TTLSeconds: int64(life / time.Second), Uses: uses})
	if code != http.StatusCreated {
		t.Fatalf("no token: %d %s", code, status.Message)
	}
	parts := strings.Split(out.Token, ".")
	if len(parts) != 4 || parts[0] != "bramble1" || parts[1] != c.CA.Hash() {
		t.Fatalf("token %q is not bramble1.CAHASH.ID.SECRET", out.Token)
	}
	return parts[2] + "." + parts[3]
}

func (c *cluster) join(t *testing.T, bearer, node string, key *ecdsa.PrivateKey) (int, api.JoinResponse, metav1.Status) {
	t.Helper()
	return call[api.JoinResponse](t, c.Enrolment.Join, bearer, nil, api.JoinRequest{NodeName: node, CSR: nodeRequest(t, node, key)})
}

func TestJoin(t *testing.T) {
	c := newCluster(t)
	bearer := c.token(t, 0, 2)
	code, out, status := c.join(t, bearer, "kitchen", newKey(t))
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, status.Message)
	}
	if out.PodCIDR != "10.100.0.0/24" || out.ClusterCIDR != "10.100.0.0/14" || out.ServiceCIDR != "10.104.0.0/16" ||
		out.Epoch != "e" || out.NodeName != "kitchen" || out.CA != string(c.CA.PEM()) {
		t.Errorf("got %+v", out)
	}
	user, err := c.Authenticator.User([]*x509.Certificate{certificate(t, out.Certificate)})
	if node, ok := user.Node(); node != "kitchen" || !ok || err != nil || !user.InGroup(api.GroupAuthenticated) {
		t.Errorf("the certificate's user is %+v, %v", user, err)
	}
	if got := c.nodes.all["kitchen"]; got != out.PodCIDR {
		t.Errorf("the Node was made with podCIDR %q", got)
	}
	if _, out, _ := c.join(t, bearer, "attic", newKey(t)); out.PodCIDR != "10.100.1.0/24" {
		t.Errorf("the second node got %q", out.PodCIDR)
	}
}

func TestTokenRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		key := newKey(t)
		used, expired := c.token(t, 0, 1), c.token(t, time.Minute, 1)
		if code, _, status := c.join(t, used, "kitchen", key); code != http.StatusOK {
			t.Fatal(status.Message)
		}
		time.Sleep(2 * time.Minute) // of the bubble
		id, _, _ := strings.Cut(used, ".")
		for _, test := range []struct {
			name, bearer, want string
			code               int
		}{
			{"none", "", "needs a join token", 401},
			{"unknown", "0123456789.abc", "is not known", 401},
			{"wrong secret", id + ".abc", "is not known", 401},
			{"no dot", "abc", "is not known", 401},
			{"only a dot", ".", "is not known", 401},
			{"expired", expired, "has expired", 401},
			{"used", used, "was used already, by node kitchen", 403},
		} {
			code, _, status := c.join(t, test.bearer, "attic", newKey(t))
			if code != test.code || !strings.Contains(status.Message, test.want) || !strings.Contains(status.Message, "edgectl token create") {
				t.Errorf("%s: %d %s", test.name, code, status.Message)
			}
		}
		// The answer may have been lost: the same node may ask again.
		if code, _, status := c.join(t, used, "kitchen", key); code != http.StatusOK {
			t.Errorf("repeated: %d %s", code, status.Message)
		}
		if _, ok := c.nodes.all["attic"]; ok {
			t.Error("a refused node has a Node")
		}
	})
}

func TestExpiryHoldsAcrossRestartWithoutClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the bubble's clock is at 2000, before the build date
		dir, records := t.TempDir(), newMemory()
		c := openCluster(t, dir, records, "10.100.0.0/14", 24)
		old := c.token(t, time.Minute, 1)
		time.Sleep(2 * time.Minute) // of the bubble
		c.token(t, time.Hour, 1)    // made two minutes later, so that it is later than that
		restarted := openCluster(t, dir, records, "10.100.0.0/14", 24)
		if code, _, status := restarted.join(t, old, "kitchen", newKey(t)); code != 401 || !strings.Contains(status.Message, "expired") {
			t.Errorf("%d %s", code, status.Message)
		}
	})
}

func TestOneTimeTokenHasOneWinner(t *testing.T) {
	c := newCluster(t)
	for _, uses := range []int{1, 3} {
		bearer := c.token(t, 0, uses)
		var group sync.WaitGroup
		codes := make([]int, 20)
		for i := range codes {
			key := newKey(t)
			group.Go(func() { codes[i], _, _ = c.join(t, bearer, fmt.Sprintf("node-%d-%d", uses, i), key) })
		}
		group.Wait()
		won := 0
		for _, code := range codes {
			switch code {
			case http.StatusOK:
				won++
			case http.StatusForbidden:
			default:
				t.Errorf("a loser got %d", code)
			}
		}
		if won != uses {
			t.Errorf("%d of 20 joined by a token of %d uses", won, uses)
		}
	}
	seen := map[string]string{}
	for name, cidr := range c.nodes.all {
		if other, ok := seen[cidr]; ok {
			t.Errorf("%s and %s have both %s", name, other, cidr)
		}
		seen[cidr] = name
	}
}

func TestTakenName(t *testing.T) {
	c := newCluster(t)
	bearer := c.token(t, 0, 10)
	key := newKey(t)
	_, first, _ := c.join(t, bearer, "raspberrypi", key)
	code, _, status := c.join(t, bearer, "raspberrypi", newKey(t))
	if code != http.StatusConflict || !strings.Contains(status.Message, "--node-name") ||
		!strings.Contains(status.Message, "edgectl delete node raspberrypi") {
		t.Errorf("another key: %d %s", code, status.Message)
	}
	if code, again, _ := c.join(t, c.token(t, 0, 1), "raspberrypi", key); code != http.StatusOK || again.PodCIDR != first.PodCIDR {
		t.Errorf("the same key again: %d, %s", code, again.PodCIDR)
	}
	old := []*x509.Certificate{certificate(t, first.Certificate)}
	c.nodes.remove("raspberrypi")
	if _, err := c.Authenticator.User(old); err != nil {
		t.Errorf("nobody took the name, but its node is refused: %v", err)
	}
	code, next, status := c.join(t, bearer, "raspberrypi", newKey(t))
	if code != http.StatusOK || next.PodCIDR != first.PodCIDR {
		t.Fatalf("after the Node was deleted: %d %s", code, status.Message)
	}
	if _, err := c.Authenticator.User(old); err == nil || !strings.Contains(err.Error(), "join again") {
		t.Errorf("the old key after the name was taken: %v", err)
	}
	if len(c.replaced) != 1 || c.replaced[0] != "raspberrypi" {
		t.Errorf("replaced: %v", c.replaced)
	}
}

func TestBadJoinRequests(t *testing.T) {
	c := newCluster(t)
	bearer := c.token(t, 0, 1)
	key := newKey(t)
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	forged := []byte(nodeRequest(t, "kitchen", key))
	forged[len(forged)-50] ^= 1
	for _, test := range []struct {
		name string
		in   api.JoinRequest
		want string
	}{
		{"upper case", api.JoinRequest{NodeName: "Kitchen", CSR: nodeRequest(t, "Kitchen", key)}, "lower case"},
		{"slash", api.JoinRequest{NodeName: "a/b", CSR: nodeRequest(t, "a/b", key)}, "nodeName"},
		{"empty", api.JoinRequest{CSR: nodeRequest(t, "kitchen", key)}, "nodeName"},
		{"long", api.JoinRequest{NodeName: strings.Repeat("a", 53)}, "longer than 52"},
		{"other name", api.JoinRequest{NodeName: "attic", CSR: nodeRequest(t, "kitchen", key)}, `for node "kitchen"`},
		{"masters", api.JoinRequest{NodeName: "kitchen", CSR: request(t, "system:node:kitchen", api.GroupMasters, key)}, "subject"},
		{"no node", api.JoinRequest{NodeName: "kitchen", CSR: request(t, "kitchen", api.GroupNodes, key)}, "subject"},
		{"weak key", api.JoinRequest{NodeName: "kitchen", CSR: nodeRequest(t, "kitchen", weak)}, "2048"},
		{"no PEM", api.JoinRequest{NodeName: "kitchen", CSR: "hello"}, "PEM"},
		{"damaged", api.JoinRequest{NodeName: "kitchen", CSR: string(forged)}, "csr"},
	} {
		code, _, status := call[api.JoinResponse](t, c.Enrolment.Join, bearer, nil, test.in)
		if code != http.StatusBadRequest || !strings.Contains(status.Message, test.want) {
			t.Errorf("%s: %d %s", test.name, code, status.Message)
		}
	}
	if code, _, status := c.join(t, bearer, "kitchen", key); code != http.StatusOK {
		t.Errorf("bad requests used the token up: %d %s", code, status.Message)
	}
}

func TestRenew(t *testing.T) {
	c := newCluster(t)
	key := newKey(t)
	_, joined, _ := c.join(t, c.token(t, 0, 1), "kitchen", key)
	present := certificate(t, joined.Certificate)
	expired, err := c.CA.ClientCertificate(api.User{Name: "system:node:kitchen", Groups: []string{api.GroupNodes}}, key.Public(), buildDate().AddDate(-1, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Authenticator.User([]*x509.Certificate{expired}); err == nil {
		t.Error("an expired certificate authenticates")
	}
	for name, cert := range map[string]*x509.Certificate{"present": present, "expired": expired} {
		code, out, status := call[api.JoinResponse](t, c.Renew, "", shown(cert), api.RenewRequest{CSR: nodeRequest(t, "kitchen", key)})
		if code != http.StatusOK || out.PodCIDR != joined.PodCIDR {
			t.Errorf("%s: %d %s", name, code, status.Message)
			continue
		}
		if _, err := c.Authenticator.User([]*x509.Certificate{certificate(t, out.Certificate)}); err != nil {
			t.Errorf("%s: the new certificate: %v", name, err)
		}
	}
	admin, err := c.CA.ClientCertificate(api.User{Name: "admin", Groups: []string{api.GroupMasters}}, key.Public(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	foreign := newCluster(t)
	_, strange, _ := foreign.join(t, foreign.token(t, 0, 1), "kitchen", key)
	for _, test := range []struct {
		name string
		cert *tls.ConnectionState
		csr  string
		code int
	}{
		{"no certificate", nil, nodeRequest(t, "kitchen", key), 401},
		{"another CA's", shown(certificate(t, strange.Certificate)), nodeRequest(t, "kitchen", key), 401},
		{"an administrator's", shown(admin), nodeRequest(t, "kitchen", key), 403},
		{"another name", shown(present), nodeRequest(t, "attic", key), 400},
		{"another key", shown(present), nodeRequest(t, "kitchen", newKey(t)), 400},
	} {
		if code, _, status := call[api.JoinResponse](t, c.Renew, "", test.cert, api.RenewRequest{CSR: test.csr}); code != test.code {
			t.Errorf("%s: %d %s, want %d", test.name, code, status.Message, test.code)
		}
	}
}

func TestPodCIDRsRunOutAndAreReused(t *testing.T) {
	c := openCluster(t, t.TempDir(), newMemory(), "10.0.0.0/23", 24)
	bearer := c.token(t, 0, 10)
	c.join(t, bearer, "a", newKey(t))
	_, b, _ := c.join(t, bearer, "b", newKey(t))
	if code, _, status := c.join(t, bearer, "c", newKey(t)); code != http.StatusForbidden || !strings.Contains(status.Message, "--cluster-cidr") {
		t.Errorf("third of two: %d %s", code, status.Message)
	}
	c.nodes.remove("b")
	if code, out, status := c.join(t, bearer, "d", newKey(t)); code != http.StatusOK || out.PodCIDR != b.PodCIDR {
		t.Errorf("after b was deleted: %d %s %s", code, out.PodCIDR, status.Message)
	}
}

func TestTokenLimits(t *testing.T) {
	c := newCluster(t)
	for _, in := range []api.TokenRequest{{TTLSeconds: -1}, {TTLSeconds: 31 * 24 * 3600}, {TTLSeconds: 1 << 62}, {Uses: -1}, {Uses: 1001}} {
		if code, _, status := call[api.TokenResponse](t, c.CreateToken, "", nil, in); code != http.StatusBadRequest {
			t.Errorf("%+v: %d %s", in, code, status.Message)
		}
	}
}
