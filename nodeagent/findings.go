package nodeagent

import (
	"context"
	"os/user"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/doctor"
	"bramble.dev/bramble/nodeagent/report"
)

// How often it is looked for what keeps the board from being a good node, and how long
// the first look waits for the board's sensors.
const (
	examineEvery = 5 * time.Minute
	firstReading = 10 * time.Second
)

// examine reports what keeps the board from being a good node. Programs are asked once,
// when the node's network stands: a start has more urgent work.
func (a *Agent) examine(ctx context.Context) error {
	self, err := user.Current()
	if err != nil {
		a.log.Warn("cannot look for what keeps this board from being a good node", "err", err)
		<-ctx.Done()
		return ctx.Err()
	}
	place := doctor.Place{
		User: self, Self: true, StateDir: a.cfg.StateDir, RuntimeDir: a.cfg.RuntimeDir, BoardRoot: a.cfg.HWRoot,
		Run: doctor.Execute, Answers: &doctor.Answers{},
	}
	select {
	case <-ctx.Done():
	case <-a.board.Changed():
	case <-time.After(firstReading):
	}
	tick := time.NewTicker(examineEvery)
	defer tick.Stop()
	networked := a.networked
	for ctx.Err() == nil {
		findings := serious(doctor.Diagnose(place.Look(ctx, a.board.Snapshot())))
		if ctx.Err() == nil && a.health.setFindings(findings) {
			a.node.Look()
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-networked:
			networked = nil
			answers := place.Ask(ctx)
			place.Answers = &answers
		}
	}
	return ctx.Err()
}

// serious are the findings that a Node's conditions are to tell.
func serious(all []doctor.Finding) []report.Finding {
	found := []report.Finding{}
	for _, f := range all {
		if f.Level < doctor.Warning {
			continue
		}
		message := f.Message
		if f.Fix != "" {
			message += ": " + f.Fix
		}
		found = append(found, report.Finding{Type: corev1.NodeConditionType(f.Condition()), Message: message})
	}
	return found
}
