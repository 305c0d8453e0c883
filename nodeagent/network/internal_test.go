package network

import (
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/network/netapi"
)

func TestClash(t *testing.T) {
	n := netapi.Node{
		ClusterCIDR: netip.MustParsePrefix("10.100.0.0/14"), ServiceCIDR: netip.MustParsePrefix("10.104.0.0/16"),
	}.WithDefaults()
	for route, setting := range map[string]string{
		"192.168.1.0/24": "", "10.88.0.0/16": "", "10.96.0.0/14": "",
		"10.100.7.0/24": "clusterCIDR", "10.0.0.0/8": "clusterCIDR", "10.104.3.4/32": "serviceCIDR", "198.18.0.0/15": "linkCIDR",
	} {
		err := clash(n, []hostRoute{{netip.MustParsePrefix(route), "wlan0"}})
		if setting == "" && err != nil || setting != "" && (err == nil || !strings.HasPrefix(err.Error(), setting) || !strings.Contains(err.Error(), route+" by wlan0")) {
			t.Errorf("%s: %v, want %q", route, err, setting)
		}
	}
}

// A pod that is stuck takes a connection and never says anything: the connection ends
// with its client, and with nothing less.
func TestAConnectionToAStuckPodEndsWithItsClient(t *testing.T) {
	dir := t.TempDir()
	pod, ours := pairOf(t, "tcp", "127.0.0.1:0")
	defer pod.Close()
	theirs, client := pairOf(t, "unix", filepath.Join(dir, "api"))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		both(ours, client, client)
	}()
	if _, err := io.WriteString(theirs, "GET /healthz"); err != nil {
		t.Fatal(err)
	}
	if err := theirs.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if asked, err := io.ReadAll(pod); string(asked) != "GET /healthz" || err != nil {
		t.Fatalf("the pod gets %q, %v", asked, err)
	}
	if _, err := io.WriteString(pod, "half"); err != nil { // the client is there to read
		t.Fatal(err)
	}
	if _, err := io.ReadFull(theirs, make([]byte, 4)); err != nil {
		t.Fatalf("the answer to a client that has sent all: %v", err)
	}
	theirs.Close()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the connection outlives its client")
	}
}

// pairOf is both ends of a connection.
func pairOf(t *testing.T, kind, address string) (dialled, accepted halfCloser) {
	t.Helper()
	l, err := net.Listen(kind, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	from, err := net.Dial(kind, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	to, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return from.(halfCloser), to.(halfCloser)
}

func TestParseResolvers(t *testing.T) {
	for text, want := range map[string]string{
		"":                                        "127.0.0.1",
		"# nameserver 1.1.1.1\nsearch lan\n":      "127.0.0.1",
		"nameserver 10.0.0.1\nnameserver x\n":     "10.0.0.1",
		"nameserver\t127.0.0.53\noptions edns0":   "127.0.0.53",
		"nameserver fe80::1%eth0":                 "fe80::1%eth0",
		strings.Repeat("nameserver 9.9.9.9\n", 5): "9.9.9.9 9.9.9.9 9.9.9.9",
	} {
		var got []string
		for _, a := range parseResolvers(text) {
			got = append(got, a.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", text, got, want)
		}
	}
}

func FuzzParseResolvers(f *testing.F) {
	f.Add("nameserver 10.0.0.1\n")
	f.Fuzz(func(t *testing.T, text string) {
		servers := parseResolvers(text)
		if len(servers) == 0 || len(servers) > maxServers || slices.Contains(servers, netip.Addr{}) {
			t.Fatalf("%q: %v", text, servers)
		}
	})
}

func FuzzServerFailure(f *testing.F) {
	f.Add([]byte("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, query []byte) {
		if len(query) < dnsHeader {
			return
		}
		answer := serverFailure(query)
		if len(answer) != len(query) || answer[0] != query[0] || answer[1] != query[1] || answer[2]&0x80 == 0 || answer[3]&0x0f != 2 {
			t.Fatalf("%x: %x", query, answer)
		}
	})
}
