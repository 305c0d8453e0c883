package auth

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Errors of node keys that callers decide on.
var (
	errNameTaken = errors.New("the name belongs to a node with another key")
	errRevoked   = errors.New("the node was revoked")
	// What keeps a revoked name from being taken again.
	errKeyRevoked = errors.New("this key was revoked")
	errOldToken   = errors.New("the node was revoked after this token was made")
	errNoCIDR     = errors.New("all pod address ranges are given out")
)

// nodeRecord is what the server knows for good of a node that joined.
type nodeRecord struct {
	Key     string `json:"key,omitempty"` // SHA-256 of its SubjectPublicKeyInfo, hex; "": any that our CA signed
	PodCIDR string `json:"podCIDR"`       // its pods' addresses
	Revoked bool   `json:"revoked,omitempty"`
	// RevokedAt is the server's Clock: a token that is older lets nobody take the
	// name again.
	RevokedAt time.Time `json:"revokedAt,omitzero"`
	// RevokedKeys are never believed again, whatever becomes of the name.
	RevokedKeys []string `json:"revokedKeys,omitempty"`
}

// NodeKeys knows which key and which pod addresses belong to which node's name.
// It outlives the Node object: a node whose object was deleted may register
// again, until another key has taken its name. It is safe for concurrent use.
type NodeKeys struct {
	records Records
	cluster netip.Prefix
	bits    int // of a node's range

	mu    sync.Mutex // protects nodes, and is held while a record is written
	nodes map[string]nodeEntry
}

type nodeEntry struct {
	nodeRecord
	rev uint64
}

// OpenNodeKeys reads the records. Nodes get a range of the given length out of
// cluster, such as a /24 of 10.100.0.0/14.
func OpenNodeKeys(records Records, cluster netip.Prefix, bits int) (*NodeKeys, error) {
	k := &NodeKeys{records: records, cluster: cluster.Masked(), bits: bits, nodes: make(map[string]nodeEntry)}
	list, err := records.ListRecords(recordNodes)
	if err != nil {
		return nil, fmt.Errorf("cannot read the nodes' keys: %w", err)
	}
	for _, r := range list {
		var n nodeRecord
		if err := decodeRecord(r, &n); err != nil {
			return nil, err
		}
		k.nodes[r.Name] = nodeEntry{n, r.Rev}
	}
	return k, nil
}

// check says whether a certificate with this key may still act as node. A node
// without a record, as after a backup was restored, is believed by its
// certificate.
func (k *NodeKeys) check(node, key string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.nodes[node].admits(key)
}

// Admits says whether a node may still act, by whatever key it has shown.
func (k *NodeKeys) Admits(node string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.nodes[node].Revoked {
		return errRevoked
	}
	return nil
}

// knows reports whether there is a record of the node.
func (k *NodeKeys) knows(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.nodes[name]
	return ok
}

func (n nodeEntry) admits(key string) error {
	switch {
	case n.Revoked || slices.Contains(n.RevokedKeys, key):
		return errRevoked
	case n.Key != "" && n.Key != key:
		return errNameTaken
	}
	return nil
}

// revoke ends a node: its key, and every certificate of its name, is not believed
// from now on. It is so for a name without a record too.
func (k *NodeKeys) revoke(ctx context.Context, name string, now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.nodes[name]
	if n.Key != "" && !slices.Contains(n.RevokedKeys, n.Key) {
		n.RevokedKeys = append(slices.Clone(n.RevokedKeys), n.Key)
	}
	n.Key, n.Revoked, n.RevokedAt = "", true, now
	return k.put(ctx, name, n)
}

// claim gives name to key, and returns its pod addresses. A name that another
// key has is taken over only if gone says that its Node no longer exists; one
// that was revoked, by another key and a token that was made after that.
func (k *NodeKeys) claim(ctx context.Context, name, key string, made time.Time, gone func(name string) bool) (podCIDR string, replaced bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, err := k.claimable(name, key, made, gone)
	if err != nil {
		return "", false, err
	}
	if n.Key == key && !n.Revoked {
		return n.PodCIDR, false, nil
	}
	replaced = n.rev != 0
	if n.PodCIDR == "" {
		if n.PodCIDR, err = k.allot(ctx, gone); err != nil {
			return "", false, err
		}
	}
	n.Key, n.Revoked = key, false
	return n.PodCIDR, replaced, k.put(ctx, name, n)
}

// mayClaim says whether claim would let key have name.
func (k *NodeKeys) mayClaim(name, key string, made time.Time, gone func(string) bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, err := k.claimable(name, key, made, gone)
	return err
}

func (k *NodeKeys) claimable(name, key string, made time.Time, gone func(string) bool) (nodeEntry, error) {
	n := k.nodes[name]
	switch {
	case slices.Contains(n.RevokedKeys, key):
		return n, errKeyRevoked
	case n.Revoked && !made.After(n.RevokedAt):
		return n, errOldToken
	case n.Revoked, n.Key == key, gone(name):
		return n, nil
	}
	return n, errNameTaken
}

// adopt returns the pod addresses of a node, which has some from now on: a
// node's certificate may be older than our records.
func (k *NodeKeys) adopt(ctx context.Context, name string) (podCIDR string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := k.nodes[name]; n.rev != 0 {
		return n.PodCIDR, nil
	}
	n := nodeEntry{}
	if n.PodCIDR, err = k.allot(ctx, func(string) bool { return false }); err != nil {
		return "", err
	}
	return n.PodCIDR, k.put(ctx, name, n)
}

// allot finds the lowest range that no node has; when there is none it takes
// that of a node that is gone, and forgets that node.
func (k *NodeKeys) allot(ctx context.Context, gone func(string) bool) (string, error) {
	used := make(map[string]string, len(k.nodes))
	for name, n := range k.nodes {
		used[n.PodCIDR] = name
	}
	for p := range subnets(k.cluster, k.bits) {
		if _, ok := used[p.String()]; !ok {
			return p.String(), nil
		}
	}
	for cidr, name := range used {
		if cidr == "" || !gone(name) {
			continue
		}
		if n := k.nodes[name]; n.Revoked || len(n.RevokedKeys) > 0 { // never forgotten
			n.PodCIDR = ""
			return cidr, k.put(ctx, name, n)
		}
		if err := k.records.DeleteRecord(ctx, recordNodes, Record{Name: name, Rev: k.nodes[name].rev}); err != nil {
			return "", fmt.Errorf("cannot forget node %s: %w", name, err)
		}
		delete(k.nodes, name)
		return cidr, nil
	}
	return "", errNoCIDR
}

func (k *NodeKeys) put(ctx context.Context, name string, n nodeEntry) error {
	r, err := encodeRecord(name, n.rev, n.nodeRecord)
	if err != nil {
		return err
	}
	if n.rev, err = k.records.PutRecord(ctx, recordNodes, r); err != nil {
		return fmt.Errorf("cannot record the key of node %s: %w", name, err)
	}
	k.nodes[name] = n
	return nil
}

// subnets yields the subnets of p that have the given prefix length.
func subnets(p netip.Prefix, bits int) func(yield func(netip.Prefix) bool) {
	return func(yield func(netip.Prefix) bool) {
		for a := p.Addr(); a.IsValid() && p.Contains(a); a = following(a, bits) {
			if !yield(netip.PrefixFrom(a, bits)) {
				return
			}
		}
	}
}

// following is the address after the subnet of the given length that begins at a.
func following(a netip.Addr, bits int) netip.Addr {
	raw := a.AsSlice()
	for i := (bits - 1) / 8; i >= 0; i-- {
		step := byte(1)
		if i == (bits-1)/8 {
			step = 1 << (7 - (bits-1)%8)
		}
		raw[i] += step
		if raw[i] >= step {
			next, _ := netip.AddrFromSlice(raw)
			return next
		}
	}
	return netip.Addr{} // past the last address there is
}
