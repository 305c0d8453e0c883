package probe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// ErrNoAnswer: whether the pod is well could not be found out, through no fault
// of the pod. Such a probe does not count.
var ErrNoAnswer = errors.New("the probe could not be made")

// attempts is how often a probe that could not be made is tried at once.
const attempts = 3

// settled is the age from which on a container is taken for one that ran
// before this agent did.
const settled = 5 * time.Second

// firstDelay is when to probe first: what is left of the initial delay and, of
// containers that ran before the agent, some part of the period, so that not all
// are probed in one moment. age is how long the container has run, and running
// how long this agent has.
func firstDelay(p *corev1.Probe, age, running time.Duration) time.Duration {
	initial, period := seconds(p.InitialDelaySeconds), seconds(p.PeriodSeconds)
	delay := max(0, initial-age)
	if age > settled && running < period {
		delay = max(delay, rand.N(period))
	}
	return delay
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// prober is one probe of one container.
type prober struct {
	set     *Probers
	watched *watched
	kind    container.ProbeKind
	probe   *corev1.Probe
	delay   time.Duration // before the first time

	healthy bool  // the last outcome, and
	inRow   int32 // how often it came in a row
}

// run probes until ctx ends or the probe has done its work: a startup probe
// when the container has started, it and a liveness probe when the container is
// to be killed.
func (p *prober) run(ctx context.Context) {
	if p.kind != container.Startup {
		select {
		case <-ctx.Done():
			return
		case <-p.watched.started:
		}
	}
	first := time.NewTimer(p.delay)
	defer first.Stop()
	select {
	case <-ctx.Done():
		return
	case <-first.C:
	}
	ticks := time.NewTicker(max(time.Second, seconds(p.probe.PeriodSeconds)))
	defer ticks.Stop()
	for {
		if over := p.once(ctx); over {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// once probes and counts, and reports whether that was the last time.
func (p *prober) once(ctx context.Context) (over bool) {
	healthy, err := p.attempt(ctx)
	if err != nil || ctx.Err() != nil {
		return false
	}
	if p.inRow > 0 && p.healthy != healthy {
		p.inRow = 0
	}
	p.healthy = healthy
	p.inRow++
	if healthy && p.inRow < p.probe.SuccessThreshold || !healthy && p.inRow < p.probe.FailureThreshold {
		return false
	}
	switch {
	case p.kind == container.Readiness:
		p.set.set(p.watched, func(h *container.Health) { h.Ready = healthy })
		return false
	case !healthy:
		p.set.set(p.watched, func(h *container.Health) { h.Failed = p.kind })
		return true
	case p.kind == container.Startup:
		p.set.set(p.watched, func(h *container.Health) { h.Started = true })
		return true
	}
	return false
}

// attempt probes once within the probe's time, and again at once where that
// could not be done.
func (p *prober) attempt(ctx context.Context) (healthy bool, err error) {
	var o outcome
	for range attempts {
		within, cancel := context.WithTimeout(ctx, limitOf(p.probe))
		o, err = p.set.check(within, p.watched.probed.Target, p.probe)
		cancel()
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	name := strings.ToUpper(string(p.kind[:1])) + string(p.kind[1:])
	switch {
	case ctx.Err() != nil:
	case err != nil:
		p.event("Unhealthy", fmt.Sprintf("%s probe errored: %v", name, err))
	case !o.healthy:
		p.event("Unhealthy", fmt.Sprintf("%s probe failed: %s", name, o.words))
	case o.warning:
		p.event("ProbeWarning", fmt.Sprintf("%s probe warning: %s", name, o.words))
	}
	return o.healthy, err
}

func (p *prober) event(reason, message string) {
	p.set.cfg.Event(p.watched.pod, p.watched.probed.Spec.Name, corev1.EventTypeWarning, reason, message)
}
