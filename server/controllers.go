package server

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"bramble.dev/bramble/server/gc"
	"bramble.dev/bramble/server/objects"
	"bramble.dev/bramble/server/scheduler"
)

// addControllers makes all that runs beside the API.
func (p *parts) addControllers(ctx context.Context) error {
	served := func(plural string) *objects.Kind {
		k, _ := p.registry.Kind("", plural)
		return k
	}
	pods, nodes, events := served("pods"), served("nodes"), served("events")
	if pods == nil || nodes == nil || events == nil {
		return fmt.Errorf("cannot do without the kinds Pod, Node and Event")
	}
	ring := p.registry.NewRing(objects.RingConfig{Kind: events, File: filepath.Join(p.cfg.DataDir, "events.gz")})
	if err := ring.Load(ctx); err != nil {
		return fmt.Errorf("cannot load the events: %w", err)
	}
	recorder := newRecorder(p.registry, events, schedulerName, p.log)
	p.scheduler = scheduler.New(scheduler.Config{
		Cluster:  placing{p.registry, pods, nodes, time.Now},
		Recorder: recorder,
		Log:      p.log,
	})
	p.controllers = []controller{
		{"bound on events", ring.Run},
		{"recorder of events", recorder.run},
		{"scheduler", p.scheduler.Run},
		{"namespace controller", gc.New(p.registry, p.log).Run},
	}
	return nil
}
