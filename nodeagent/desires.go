package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/pod"
	"bramble.dev/bramble/nodeagent/state"
	"bramble.dev/bramble/server/api"
)

// workers is what the desired pods are handed to; *pod.Workers.
type workers interface {
	Set(d pod.Desired)
	Remove(uid string)
	Known(uid string) bool
}

// lister lists what there is of pods, wanted or not.
type lister interface {
	List(ctx context.Context) ([]container.Pod, error)
}

// desires holds what is wanted of this node: the server's pods, or the record's
// until the server has been heard. It is the store that the reflector fills. It
// removes pods only by a server whose epoch the node knows.
type desires struct {
	record  *state.Record
	workers workers
	engine  lister
	known   func() bool // the server's epoch is the one known
	forget  func(uid string)
	remains func(ctx context.Context) ([]string, error) // uids of pods of which the engine may know nothing
	log     *slog.Logger

	listed chan struct{} // closed when the server's list has come
	sweep  chan struct{} // asks for a sweep of what nobody wants

	mu      sync.Mutex               // protects what follows
	current map[string]pod.Desired   // by uid
	ended   map[string]bool          // gone from here and from the server; its last events may be on their way
	leased  bool                     // a lease was renewed since boot
	heard   bool                     // listed is closed
	waiting map[string]chan struct{} // by uid: closed when the pod is gone
}

func newDesires(record *state.Record, engine lister, known func() bool, log *slog.Logger) *desires {
	return &desires{
		record: record, engine: engine, known: known, log: log,
		listed: make(chan struct{}), sweep: make(chan struct{}, 1),
		current: map[string]pod.Desired{}, ended: map[string]bool{}, waiting: map[string]chan struct{}{},
	}
}

var _ cache.ReflectorStore = (*desires)(nil)

// Add follows cache.ReflectorStore.
func (d *desires) Add(obj any) error { return d.Update(obj) }

// Update follows cache.ReflectorStore.
func (d *desires) Update(obj any) error {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("cannot take a %T for a pod", obj)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.take(p)
	return nil
}

// Delete follows cache.ReflectorStore.
func (d *desires) Delete(obj any) error {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("cannot take a %T for a pod", obj)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lose(string(p.UID))
	return nil
}

// Replace follows cache.ReflectorStore: the list is complete.
func (d *desires) Replace(list []any, _ string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	present := make(map[string]bool, len(list))
	// Those with an address first: of one whose record was lost no new pod gets it.
	for _, addressed := range []bool{true, false} {
		for _, obj := range list {
			if p, ok := obj.(*corev1.Pod); ok && (p.Status.PodIP != "") == addressed {
				present[string(p.UID)] = true
				d.take(p)
			}
		}
	}
	if d.known() {
		for _, kept := range d.record.Pods() {
			if uid := string(kept.Pod.UID); !present[uid] {
				d.lose(uid)
			}
		}
		clear(d.ended)
		select {
		case d.sweep <- struct{}{}:
		default:
		}
	} else {
		d.log.Error("the server's database is not the one that this node knows (a restored backup, or another cluster): nothing is deleted until that is confirmed")
		d.wantRecord() // what this node knows of goes on, and comes back
	}
	if !d.heard {
		d.heard = true
		close(d.listed)
	}
	return nil
}

// Resync follows cache.ReflectorStore.
func (d *desires) Resync() error { return nil }

// take makes the server's pod what is wanted; the caller holds d.mu.
func (d *desires) take(p *corev1.Pod) {
	uid := string(p.UID)
	kept := d.record.Pod(uid)
	if d.ended[uid] || kept != nil && !d.known() {
		return
	}
	p.ManagedFields = nil
	next, err := d.record.Keep(p)
	if next == nil {
		d.log.Error("cannot take up a pod", "pod", p.Namespace+"/"+p.Name, "err", err)
		return
	}
	if err != nil { // it runs all the same, but would not come back by itself
		d.log.Error("cannot record a pod", "pod", p.Namespace+"/"+p.Name, "err", err)
	}
	d.want(pod.Desired{Pod: p, Address: next.Address}, next.Failover)
}

func (d *desires) want(desired pod.Desired, failover string) {
	desired.Hold = failover == api.FailoverExclusive && !d.leased
	d.current[string(desired.Pod.UID)] = desired
	d.workers.Set(desired)
}

// lose makes a pod unwanted that the server no longer has; the caller holds d.mu.
func (d *desires) lose(uid string) {
	if !d.known() {
		return
	}
	d.unwant(uid)
	delete(d.ended, uid)
	if d.record.Pod(uid) == nil && !d.workers.Known(uid) {
		return
	}
	if err := d.record.Condemn(uid); err != nil {
		d.log.Error("cannot record that a pod is deleted", "pod", uid, "err", err)
	}
	d.forget(uid)
	d.workers.Remove(uid)
}

// end forgets a pod of which nothing is left here nor on the server.
func (d *desires) end(uid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current[uid].Pod != nil {
		d.ended[uid] = true
	}
	d.unwant(uid)
	d.drop(uid)
	if d.workers.Known(uid) {
		d.workers.Remove(uid)
	}
}

// unwant forgets a pod and tells those who wait for that; the caller holds d.mu.
func (d *desires) unwant(uid string) {
	delete(d.current, uid)
	if gone := d.waiting[uid]; gone != nil {
		close(gone)
		delete(d.waiting, uid)
	}
}

// gone returns a channel that is closed when the pod is wanted no more.
func (d *desires) gone(uid string) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	gone := d.waiting[uid]
	if gone == nil {
		gone = make(chan struct{})
		if d.current[uid].Pod == nil {
			close(gone)
			return gone
		}
		d.waiting[uid] = gone
	}
	return gone
}

// drop forgets the record of a pod of which nothing is left here.
func (d *desires) drop(uid string) {
	if err := d.record.Drop(uid); err != nil {
		d.log.Error("cannot forget a pod", "pod", uid, "err", err)
	}
}

// restore makes the record's pods wanted, where the server has not been heard.
func (d *desires) restore() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.heard {
		return
	}
	d.log.Info("the server is not in reach: running the pods of the local record", "pods", d.wantRecord())
}

// wantRecord makes those of the record's pods wanted that are not yet, and
// returns how many the record has; the caller holds d.mu.
func (d *desires) wantRecord() int {
	pods := d.record.Pods()
	for _, kept := range pods {
		if d.current[string(kept.Pod.UID)].Pod == nil {
			d.want(pod.Desired{Pod: kept.Pod, Address: kept.Address}, kept.Failover)
		}
	}
	return len(pods)
}

// lease lets exclusive pods start: the server has renewed this node's lease
// since the machine booted.
func (d *desires) lease() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.leased {
		return
	}
	d.leased = true
	for uid, desired := range d.current {
		if desired.Hold {
			desired.Hold = false
			d.current[uid] = desired
			d.workers.Set(desired)
		}
	}
}

// find returns a wanted pod by its name.
func (d *desires) find(namespace, name string) (pod.Desired, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found pod.Desired
	for _, desired := range d.current {
		if desired.Pod.Namespace == namespace && desired.Pod.Name == name &&
			(found.Pod == nil || found.Pod.DeletionTimestamp != nil) {
			found = desired
		}
	}
	return found, found.Pod != nil
}

// runSweeps removes, after each complete list, what there is of pods that nobody
// wants. It blocks until ctx ends.
func (d *desires) runSweeps(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.sweep:
		}
		for {
			err := d.sweepOnce(ctx)
			if err == nil {
				break
			}
			d.log.Debug("cannot look for pods that nobody wants", "err", err)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
			}
		}
	}
}

// sweepOnce looks in the engine, and for networks and directories without
// containers: a record that was lost leaves them, and the address with them.
func (d *desires) sweepOnce(ctx context.Context) error {
	pods, err := d.engine.List(ctx)
	uids, remainsErr := d.remains(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range pods {
		d.sweepPod(p.UID, p.Namespace+"/"+p.Name)
	}
	for _, uid := range uids {
		d.sweepPod(uid, "")
	}
	return errors.Join(err, remainsErr)
}

// sweepPod removes what there is of a pod that nobody wants; the caller holds d.mu.
func (d *desires) sweepPod(uid, name string) {
	if d.known() && d.current[uid].Pod == nil && !d.workers.Known(uid) {
		d.log.Info("removing a pod that nobody wants", "pod", name, "uid", uid)
		d.workers.Remove(uid)
	}
}
