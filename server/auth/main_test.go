package auth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/auth"
)

// memory are Records in memory.
type memory struct {
	mu      sync.Mutex
	rev     uint64
	records map[[2]string]auth.Record
}

func newMemory() *memory { return &memory{records: map[[2]string]auth.Record{}} }

func (m *memory) ListRecords(kind string) ([]auth.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []auth.Record
	for key, r := range m.records {
		if key[0] == kind {
			list = append(list, r)
		}
	}
	return list, nil
}

func (m *memory) GetRecord(kind, name string) (auth.Record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.records[[2]string{kind, name}]
	return r, ok
}

func (m *memory) PutRecord(_ context.Context, kind string, r auth.Record) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [2]string{kind, r.Name}
	if m.records[key].Rev != r.Rev {
		return 0, auth.ErrChanged
	}
	m.rev++
	r.Rev = m.rev
	m.records[key] = r
	return m.rev, nil
}

func (m *memory) DeleteRecord(_ context.Context, kind string, r auth.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [2]string{kind, r.Name}
	if m.records[key].Rev != r.Rev {
		return auth.ErrChanged
	}
	delete(m.records, key)
	return nil
}

// nodes are NodeObjects in memory: name to podCIDR.
type nodes struct {
	mu  sync.Mutex
	all map[string]string

	revoked []string
}

func (n *nodes) NodeExists(_ context.Context, name string) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.all[name]
	return ok, nil
}

func (n *nodes) CreateNode(_ context.Context, name, podCIDR string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all[name] = podCIDR
	return nil
}

func (n *nodes) MarkRevoked(_ context.Context, name string, _ time.Time) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.revoked = append(n.revoked, name)
	return nil
}

func (n *nodes) remove(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.all, name)
}

func buildDate() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// cluster is auth put together over memory.
type cluster struct {
	*auth.Enrolment
	records  *memory
	nodes    *nodes
	replaced []string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return openCluster(t, t.TempDir(), newMemory(), "10.100.0.0/14", 24)
}

func openCluster(t *testing.T, dir string, records *memory, cidr string, bits int) *cluster {
	t.Helper()
	ca, err := auth.OpenAuthority(dir, buildDate())
	if err != nil {
		t.Fatal(err)
	}
	clock := auth.NewClock(buildDate())
	tokens, err := auth.OpenTokens(records, clock, ca.Hash())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := auth.OpenNodeKeys(records, netip.MustParsePrefix(cidr), bits)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{records: records, nodes: &nodes{all: map[string]string{}}}
	c.Enrolment = &auth.Enrolment{
		CA: ca, Clock: clock, Tokens: tokens, Keys: keys, Authenticator: auth.NewAuthenticator(ca, clock, keys),
		Nodes: c.nodes, Cluster: auth.Cluster{Epoch: "e", ClusterCIDR: cidr, ServiceCIDR: "10.104.0.0/16"},
		Log:        slog.New(slog.DiscardHandler),
		OnReplaced: func(node string) { c.replaced = append(c.replaced, node) },
	}
	return c
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func request(t *testing.T, name, group string, key crypto.Signer) string {
	t.Helper()
	subject := pkix.Name{CommonName: name}
	if group != "" {
		subject.Organization = []string{group}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

func nodeRequest(t *testing.T, node string, key crypto.Signer) string {
	t.Helper()
	return request(t, api.NodeUserPrefix+node, api.GroupNodes, key)
}

func certificate(t *testing.T, text string) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		t.Fatalf("no PEM in %q", text)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// shown is the TLS state of a connection with this certificate.
func shown(certs ...*x509.Certificate) *tls.ConnectionState {
	return &tls.ConnectionState{PeerCertificates: certs}
}
