package server

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/eviction"
	"bramble.dev/bramble/server/gc"
	"bramble.dev/bramble/server/nodes"
	"bramble.dev/bramble/server/objects"
	"bramble.dev/bramble/server/scheduler"
)

// addControllers makes all that runs beside the API.
func (p *parts) addControllers(ctx context.Context) error {
	var missing []string
	served := func(group, plural string) *objects.Kind {
		k, ok := p.registry.Kind(group, plural)
		if !ok {
			missing = append(missing, plural)
		}
		return k
	}
	podKind, nodeKind, eventKind, spaceKind := served("", "pods"), served("", "nodes"), served("", "events"), served("", "namespaces")
	hardwareKind := served(api.Group, "nodehardwares")
	leaseKind := served(coordinationv1.GroupName, "leases")
	roles := served(rbacv1.GroupName, "clusterroles")
	if len(missing) > 0 {
		return fmt.Errorf("cannot do without the kinds %v", missing)
	}
	ring := p.registry.NewRing(objects.RingConfig{Kind: eventKind, File: filepath.Join(p.cfg.DataDir, "events.gz")})
	if err := ring.Load(ctx); err != nil {
		return fmt.Errorf("cannot load the events: %w", err)
	}
	placed := newRecorder(p.registry, eventKind, schedulerName, p.log)
	heard := newRecorder(p.registry, eventKind, nodesName, p.log)
	watcher := nodes.New(nodes.Config{
		Cluster:  leases{p.registry, nodeKind, leaseKind},
		Recorder: heard,
		Grace:    p.cfg.NodeLeaseTimeout,
		Log:      p.log,
	})
	evicted := newRecorder(p.registry, eventKind, evictionName, p.log)
	evictor := eviction.New(eviction.Config{
		Cluster: disruption{p.registry, podKind, time.Now, evictionName, reasonTaint,
			"Taint manager: deleting due to NoExecute taint"},
		Recorder: evicted,
		Log:      p.log,
	})
	p.scheduler = scheduler.New(scheduler.Config{
		Cluster:  placing{p.registry, podKind, nodeKind, spaceKind, hardwareKind, time.Now, evictor, &p.boards},
		Recorder: placed,
		Log:      p.log,
	})
	p.controllers = []controller{
		{"bound on events", ring.Run},
		{"scheduler's events", placed.run},
		{"node controller's events", heard.run},
		{"node controller", watcher.Run},
		{"scheduler", after(watcher.Settled(), p.scheduler.Run)},
		{"evictions' events", evicted.run},
		{"eviction controller", after(watcher.Settled(), evictor.Run)},
		{"namespace controller", gc.New(p.registry, p.log).Run},
		{"garbage collector", gc.NewOwners(newOwning(p.registry), p.log).Run},
		{"renewal of certificates", p.serving.Run},
		{"service account controller", p.accounts.run},
		{"aggregation of roles", aggregation{p.registry, roles}.run},
	}
	return nil
}

// after runs run once ready is closed.
func after(ready <-chan struct{}, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-ready:
			return run(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}
