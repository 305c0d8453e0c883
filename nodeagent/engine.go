package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/network/netapi"
	"bramble.dev/bramble/nodeagent/network/process"
	"bramble.dev/bramble/nodeagent/network/supervise"
	"bramble.dev/bramble/nodeagent/pod"
	"bramble.dev/bramble/nodeagent/runtime"
)

// runEngine keeps Podman's service up.
func (a *Agent) runEngine(ctx context.Context) error {
	return (&runtime.Service{
		Socket: a.cfg.PodmanSocket, RuntimeDir: a.cfg.RuntimeDir, TempDir: a.cfg.fetchDir(), Log: a.log, Idle: a.engine.Idle,
		OnChange: func(err error) {
			if err == nil && a.health.podmanVersion() == "" {
				a.health.set(&a.health.podman, podmanVersion(ctx))
			}
			a.report(&a.health.engine, err)
		},
	}).Run(ctx)
}

// podmanVersion is what "podman --version" says, or empty.
func podmanVersion(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "podman", "--version").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.TrimPrefix(string(out), "podman version "))
}

// report notes why a part of the node does not work, nil that it does, and lets
// the server know.
func (a *Agent) report(part *string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if a.health.set(part, text) {
		a.node.Look()
	}
}

// runNetwork keeps the network process running where that is ours to do.
func (a *Agent) runNetwork(ctx context.Context) error {
	if a.cfg.NetworkBin == "" {
		<-ctx.Done()
		return ctx.Err()
	}
	return supervise.New(supervise.Config{
		Command: []string{a.cfg.NetworkBin, "run"}, Socket: a.cfg.NetworkSock, Log: a.log,
	}).Run(ctx)
}

// watchNetwork sets up the node's network, and again in each new process, which
// may know nothing of it; the workers then make sure of their pods.
func (a *Agent) watchNetwork(ctx context.Context) error {
	for first := true; ctx.Err() == nil; first = false {
		if err := a.setUpNetwork(ctx); err != nil {
			return err
		}
		if first {
			close(a.networked)
		} else {
			a.workers.Refresh()
		}
		health, err := a.network.Health(ctx)
		if err == nil {
			err = process.Wait(ctx, health.PID)
		}
		if err == nil {
			a.report(&a.health.net, errors.New("the network process has ended and is started again"))
			continue
		}
		a.report(&a.health.net, err)
		pause(ctx, networkPause)
	}
	return ctx.Err()
}

// setUpNetwork makes sure of the node's network; it tries until it stands or
// ctx ends.
func (a *Agent) setUpNetwork(ctx context.Context) error {
	var errs [3]error
	var node netapi.Node
	node.PodCIDR, errs[0] = netip.ParsePrefix(a.facts.PodCIDR)
	node.ClusterCIDR, errs[1] = netip.ParsePrefix(a.facts.ClusterCIDR)
	node.ServiceCIDR, errs[2] = netip.ParsePrefix(a.facts.ServiceCIDR)
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("cannot use the address ranges that this node joined with (join again): %w", err)
		}
	}
	for {
		status, err := a.network.PutNode(ctx, node)
		a.report(&a.health.net, err)
		if err == nil {
			a.health.setResolver(status.DNS)
			return nil
		}
		a.log.Warn("cannot set up the node's network", "err", err)
		if pause(ctx, networkPause); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// networkPause is between attempts to use the network process.
const networkPause = time.Second

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// resolver is what pods have for name resolution: the node's relay, with the
// host's search domains.
func (a *Agent) resolver(hostNetwork bool) pod.Resolver {
	if hostNetwork {
		return nodeResolver()
	}
	r := nodeResolver()
	if servers := a.health.resolver(); len(servers) > 0 {
		r.Servers = servers
	}
	return r
}

// watchEngine hands what happens in the engine to the workers.
func (a *Agent) watchEngine(ctx context.Context) error {
	events, err := a.engine.Events(ctx)
	if err != nil {
		return err
	}
	for event := range events {
		if event.PodUID == "" {
			a.lookAtImages()
		}
		if event.What == container.ImagesChanged {
			continue
		}
		if event.PodUID == "" { // the engine is there again: anything may have changed
			a.workers.NudgeAll()
			continue
		}
		a.workers.Nudge(event.PodUID)
	}
	return ctx.Err()
}
