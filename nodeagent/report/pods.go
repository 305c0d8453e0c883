package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bramble.dev/bramble/server/client"
)

// PodServer is what the server does with pods for a node; *client.Client is one.
type PodServer interface {
	PatchPodStatus(ctx context.Context, namespace, name string, p client.Patch) (*corev1.Pod, error)
	DeletePod(ctx context.Context, namespace, name string, opts metav1.DeleteOptions) error
}

// Pods sends pods' statuses and, of pods that are gone from the node, the final
// deletion. Only the latest status of a pod is kept for sending, and one
// request is under way at a time.
type Pods struct {
	server PodServer
	log    *slog.Logger
	// Deleted is called when the server has no pod of this uid any more. It may
	// block, and must be set before Run.
	Deleted func(uid string)

	wake chan struct{}
	mu   sync.Mutex // protects entries and what they point to
	// entries is by pod uid.
	entries map[string]*entry
}

// entry is what is to be said of one pod.
type entry struct {
	pod      *corev1.Pod
	status   []byte // wanted, as JSON
	sent     []byte // what the server has
	gone     bool
	failures int
	due      time.Time
}

func (e *entry) idle() bool { return !e.gone && bytes.Equal(e.status, e.sent) }

// NewPods returns a reporter of pods; nothing is sent before Run.
func NewPods(server PodServer, log *slog.Logger) *Pods {
	return &Pods{server: server, log: log, wake: make(chan struct{}, 1), entries: map[string]*entry{}}
}

// Status takes a pod's status for sending. It does not block.
func (p *Pods) Status(pod *corev1.Pod, status corev1.PodStatus) {
	data := encode(status)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[string(pod.UID)]
	if e == nil {
		e = &entry{sent: encode(ours(pod.Status, status))}
		p.entries[string(pod.UID)] = e
	}
	e.pod, e.status = pod, data
	if !e.idle() {
		p.signal()
	}
}

// Gone takes that a pod's last container, network and volume are gone. It is
// told to the server after the pod's last status. It does not block.
func (p *Pods) Gone(uid string, pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pod == nil {
		delete(p.entries, uid)
		return
	}
	e := p.entries[uid]
	if e == nil {
		e = &entry{}
		p.entries[uid] = e
	}
	e.pod, e.gone = pod, true
	p.signal()
}

// Retry makes the reporter try at once what waits: the server is back.
func (p *Pods) Retry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.entries {
		e.due = time.Time{}
	}
	p.signal()
}

// Forget drops what is to be said of a pod that the server no longer has.
func (p *Pods) Forget(uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.entries, uid)
}

func (p *Pods) signal() {
	select {
	case p.wake <- struct{}{}:
	default: // it is awake
	}
}

// Run sends until ctx ends.
func (p *Pods) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.wake:
		case <-timer.C:
		}
		next := p.flush(ctx)
		timer.Stop()
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// flush sends all that is due, and returns when the next is; zero: nothing waits.
func (p *Pods) flush(ctx context.Context) time.Time {
	for ctx.Err() == nil {
		uid, e, next := p.next(time.Now())
		if uid == "" {
			return next
		}
		p.send(ctx, uid, e)
	}
	return time.Time{}
}

// next returns a copy of an entry that is due, or when the first one will be.
func (p *Pods) next(now time.Time) (string, entry, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first time.Time
	for uid, e := range p.entries {
		switch {
		case e.idle():
		case !e.due.After(now):
			return uid, *e, time.Time{}
		case first.IsZero() || e.due.Before(first):
			first = e.due
		}
	}
	return "", entry{}, first
}

// send says one thing of a pod: its status, else that it is gone.
func (p *Pods) send(ctx context.Context, uid string, e entry) {
	if !bytes.Equal(e.status, e.sent) {
		patch, err := statusPatch(e.pod.UID, e.status)
		if err == nil {
			_, err = p.server.PatchPodStatus(ctx, e.pod.Namespace, e.pod.Name, patch)
		}
		if apierrors.IsNotFound(err) {
			err = nil // there is nobody to tell
		}
		p.done(uid, e, e.status, err)
		return
	}
	var now int64
	err := p.server.DeletePod(ctx, e.pod.Namespace, e.pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &e.pod.UID},
	})
	if err == nil || absent(err) {
		p.Forget(uid)
		if p.Deleted != nil {
			p.Deleted(uid)
		}
		return
	}
	p.done(uid, e, e.sent, err)
}

// statusPatch is what makes the node's part of a pod's status equal to status: a
// merge leaves what is not named, so that what is empty is named as null.
func statusPatch(uid types.UID, status []byte) (client.Patch, error) {
	var fields map[string]any
	if err := json.Unmarshal(status, &fields); err != nil {
		return client.Patch{}, fmt.Errorf("cannot make a patch of a pod's status: %w", err)
	}
	clear := func(of map[string]any, names ...string) {
		for _, name := range names {
			if _, set := of[name]; !set {
				of[name] = nil
			}
		}
	}
	clear(fields, "reason", "message", "podIP", "hostIP")
	conditions, _ := fields["conditions"].([]any)
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok {
			clear(condition, "reason", "message")
		}
	}
	return client.StrategicPatch(map[string]any{"metadata": map[string]any{"uid": uid}, "status": fields})
}

// done notes how the sending of status went.
func (p *Pods) done(uid string, sent entry, status []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[uid]
	if e == nil {
		return
	}
	switch {
	case err == nil:
		e.sent, e.failures, e.due = status, 0, time.Time{}
	default:
		e.failures++
		e.due = time.Now().Add(delay(e.failures))
		p.log.Debug("cannot report a pod", "pod", sent.pod.Namespace+"/"+sent.pod.Name, "err", err)
	}
}

// absent reports, of a deletion, whether the server has no such pod: none of the
// name, or another of the name, which the precondition saves.
func absent(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}

// ours returns of the server's status what this node would have written, so
// that the two compare.
func ours(server, wanted corev1.PodStatus) corev1.PodStatus {
	var conditions []corev1.PodCondition
	for _, w := range wanted.Conditions {
		for _, c := range server.Conditions {
			if c.Type == w.Type {
				conditions = append(conditions, c)
			}
		}
	}
	server.Conditions = conditions
	return server
}

func encode(status corev1.PodStatus) []byte {
	data, err := json.Marshal(status)
	if err != nil {
		panic("a pod's status cannot be encoded: " + err.Error())
	}
	return data
}
