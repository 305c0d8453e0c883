package report

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/api"
)

// LeaseServer is what the server does with a node's lease; *client.Client is one.
type LeaseServer interface {
	GetLease(ctx context.Context, node string) (*coordinationv1.Lease, error)
	CreateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error)
	UpdateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error)
	// Beat renews the lease by next to no bytes, where that can be.
	Beat(ctx context.Context) error
}

// Lease renews the node's Lease in kube-node-lease: the node's heartbeat. Its
// waits are by the monotonic clock; renewTime is of a wall clock, for
// people alone.
type Lease struct {
	Server   LeaseServer
	Node     string
	Every    time.Duration // default 10 s; each wait is up to a fiftieth shorter
	Duration time.Duration // leaseDurationSeconds; default 40 s
	Log      *slog.Logger
	// Renewed, when set, is called after each renewal. It must not block.
	Renewed func()
	// Resumed, when set, is called after a renewal that follows a failed one, or
	// for which the lease had to be made: the server may have taken this node for
	// lost, or have forgotten it, and wants its status again. It is called once
	// more after the renewal that follows: the server may have been about to write
	// that the node is lost when it heard of it. It must not block.
	Resumed func()

	renewed bool // by the last renewal: it is there, and a heartbeat will do
	made    bool // the lease was made, and not renewed since
}

// Run renews until ctx ends.
func (l *Lease) Run(ctx context.Context) error {
	every := l.Every
	if every == 0 {
		every = 10 * time.Second
	}
	failures, again := 0, false
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		wait := every - rand.N(every/50)
		if err := l.renew(ctx, every); err != nil {
			failures++
			wait = min(wait, delay(failures))
			l.Log.Debug("cannot renew the node's lease", "err", err)
		} else {
			resumed := failures > 0 || l.made
			failures, l.made = 0, false
			if l.Renewed != nil {
				l.Renewed()
			}
			if (resumed || again) && l.Resumed != nil {
				l.Resumed()
			}
			again = resumed
		}
		timer.Reset(wait)
	}
}

// renew renews by a heartbeat, or else by the API: whatever is in the way of the
// former, the latter mends or names it.
func (l *Lease) renew(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if l.renewed && l.beat(ctx, limit/2) == nil {
		return nil
	}
	l.renewed = false
	held, err := l.hold(ctx)
	if err != nil {
		return err
	}
	next := held.DeepCopy()
	now := metav1.NewMicroTime(time.Now())
	next.Spec.RenewTime = &now
	_, err = l.Server.UpdateLease(ctx, next)
	l.renewed = err == nil
	return err
}

func (l *Lease) beat(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := l.Server.Beat(ctx)
	if err != nil {
		l.Log.Debug("no heartbeat, renewing by the API", "err", err)
	}
	return err
}

// hold reads the lease, or makes it.
func (l *Lease) hold(ctx context.Context) (*coordinationv1.Lease, error) {
	held, err := l.Server.GetLease(ctx, l.Node)
	if apierrors.IsNotFound(err) {
		held, err = l.Server.CreateLease(ctx, l.lease())
		l.made = err == nil
	}
	return held, err
}

func (l *Lease) lease() *coordinationv1.Lease {
	seconds := int32(40)
	if l.Duration > 0 {
		seconds = int32(l.Duration.Seconds())
	}
	now := metav1.NewMicroTime(time.Now())
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: l.Node, Namespace: api.NamespaceNodeLeases},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &l.Node, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
}
