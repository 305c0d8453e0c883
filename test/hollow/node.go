package hollow

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/report"
	"bramble.dev/bramble/server/client"
	"bramble.dev/bramble/server/tunnel"
)

// Node is a node without an engine. Join makes it, Run runs it.
type Node struct {
	Name   string
	dialer *tunnel.Dialer
	client *client.Client
	lease  *report.Lease
	node   *report.Node
	pods   *report.Pods
	events *report.Events
	engine *engine

	renewals  atomic.Int64
	connected atomic.Int64 // how often the control connection came up
}

// Join joins the cluster at address as the node name. Nothing runs before Run.
func Join(ctx context.Context, address, token, name string) (*Node, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make the key of %s: %w", name, err)
	}
	joined, err := client.Join(ctx, address, token, name, key)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(joined.Certificate))
	if block == nil {
		return nil, errors.New("the certificate in the server's answer is no PEM")
	}
	config, err := client.TLSConfig([]byte(joined.CA), tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}, nil)
	if err != nil {
		return nil, err
	}
	addresses, err := netip.ParsePrefix(joined.PodCIDR)
	if err != nil {
		return nil, fmt.Errorf("cannot use the node's range of addresses: %w", err)
	}
	n := &Node{Name: name}
	log := slog.New(slog.DiscardHandler)
	n.dialer = tunnel.NewDialer(func() []string { return []string{address} }, func() (*tls.Config, error) { return config, nil }, nil, log)
	if n.client, err = client.New(n.dialer.DialContext, client.Config{UserAgent: "bramble-agent/hollow"}); err != nil {
		return nil, err
	}
	n.report(addresses, log)
	return n, nil
}

// report makes the agent's reporters and the engine that they report of.
func (n *Node) report(addresses netip.Prefix, log *slog.Logger) {
	n.pods = report.NewPods(n.client, log)
	n.events = report.NewEvents(n.client, n.Name, log)
	n.engine = newEngine(addresses, n.pods, n.events)
	n.pods.Deleted = n.engine.forget
	n.node = report.NewNode(n.client, n.Name, report.System{Root: "/", Data: "/"}, health, log)
	n.lease = &report.Lease{Server: n.client, Node: n.Name, Log: log, Resumed: n.node.Again, Renewed: func() { n.renewals.Add(1) }}
	n.dialer.OnConnect = func(channel tunnel.Channel) {
		if channel == tunnel.Control {
			n.connected.Add(1)
			n.pods.Retry()
			n.node.Look()
		}
	}
}

// Renewals is how often the server has renewed the node's lease.
func (n *Node) Renewals() int64 { return n.renewals.Load() }

// Connections is how often the control connection came up.
func (n *Node) Connections() int64 { return n.connected.Load() }

// Run runs the node until ctx ends.
func (n *Node) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, part := range []func(context.Context) error{n.dialer.Run, n.lease.Run, n.node.Run, n.pods.Run, n.events.Run} {
		group.Go(func() { _ = part(ctx) }) // all end with ctx alone
	}
	n.client.WatchPods(ctx, n.Name, n.engine)
	group.Wait()
	n.client.Close()
}

// health is that of a node with a few images, whose parts work.
func health() report.Health {
	h := report.Health{Address: "192.0.2.1", Runtime: "podman://4.3.1", Version: "0.0.0", KubeVersion: "v1.37.2-bramble.0.0.0"}
	for i := range 5 {
		h.Images = append(h.Images, corev1.ContainerImage{
			Names:     []string{fmt.Sprintf("registry.example/app%d@sha256:%064x", i, i), fmt.Sprintf("registry.example/app%d:1", i)},
			SizeBytes: int64(i+1) << 20,
		})
	}
	return h
}

// stamp is a time as an engine notes it.
func stamp() time.Time { return time.Now().Round(0) }
