package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/client"
)

// NodeServer is what the server does with a Node; *client.Client is one.
type NodeServer interface {
	GetNode(ctx context.Context, name string) (*corev1.Node, error)
	CreateNode(ctx context.Context, n *corev1.Node) (*corev1.Node, error)
	PatchNode(ctx context.Context, name string, p client.Patch) (*corev1.Node, error)
	PatchNodeStatus(ctx context.Context, name string, p client.Patch) (*corev1.Node, error)
}

// Node registers this node and keeps its status. It looks every Every, and
// writes when what it finds differs from what the server has.
type Node struct {
	Server NodeServer
	Name   string
	System System
	Health func() Health
	// Labels are those of the board, once they are known; nil: there are none.
	Labels func() (labels map[string]string, known bool)
	Every  time.Duration // default 10 s
	Log    *slog.Logger

	wake  chan struct{}
	again atomic.Bool // forget what was sent
	sent  []byte      // what the server has; nil: not known
	// conditions are the last written.
	conditions []corev1.NodeCondition
	twin       twin
	labels     map[string]string            // of the board, as they were last settled; nil: not yet
	devices    map[corev1.ResourceName]bool // of which the server has amounts
}

// NewNode returns a reporter of the node; nothing is sent before Run.
func NewNode(server NodeServer, name string, system System, health func() Health, log *slog.Logger) *Node {
	return &Node{Server: server, Name: name, System: system, Health: health, Log: log, Every: 10 * time.Second, wake: make(chan struct{}, 1)}
}

// Look makes the reporter look at once. It does not block.
func (n *Node) Look() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Again has the whole status sent at once, though it did not change: the server
// may have changed it. It does not block.
func (n *Node) Again() {
	n.again.Store(true)
	n.Look()
}

// Run reports until ctx ends.
func (n *Node) Run(ctx context.Context) error {
	failures := 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.wake:
		case <-timer.C:
		}
		wait := n.Every
		if err := n.report(ctx); err != nil {
			failures++
			wait = delay(failures)
			n.sent = nil
			n.Log.Debug("cannot report the node", "err", err)
		} else {
			failures = 0
		}
		timer.Reset(wait)
	}
}

// report sends the node's status where it changed, after making sure of the
// Node object where that is not known.
func (n *Node) report(ctx context.Context) error {
	if n.again.Swap(false) {
		n.sent = nil
	}
	if _, news := n.labelNews(); n.sent == nil || news {
		if err := n.register(ctx); err != nil {
			return err
		}
	}
	health := n.Health()
	health.IdentityShared = n.twin.complaint()
	st := NodeStatus(n.Name, n.System.Read(), health, n.conditions, time.Now())
	data, err := json.Marshal(stable(st))
	if err != nil {
		return fmt.Errorf("cannot encode the node's status: %w", err)
	}
	if bytes.Equal(data, n.sent) {
		return nil
	}
	patch, err := n.statusPatch(st, health.Devices != nil)
	if err != nil {
		return err
	}
	if _, err := n.Server.PatchNodeStatus(ctx, n.Name, patch); err != nil {
		return err
	}
	n.sent, n.conditions = data, st.Conditions
	if health.Devices != nil {
		n.devices = deviceResources(st)
	}
	n.twin.own = st.NodeInfo.BootID
	if n.twin.suspected() {
		n.sent = nil // look each time
	}
	return nil
}

// labelNews are the labels of the board, and whether they differ from those settled.
func (n *Node) labelNews() (labels map[string]string, news bool) {
	if n.Labels == nil {
		return nil, false
	}
	labels, known := n.Labels()
	if !known {
		return n.labels, false
	}
	return labels, n.labels == nil || !maps.Equal(labels, n.labels)
}

// register makes sure of the Node object and its labels.
func (n *Node) register(ctx context.Context) error {
	base := baseLabels(n.Name, runtime.GOARCH, runtime.GOOS)
	labels, _ := n.labelNews() // nil: the board has not been read yet
	node, err := n.Server.GetNode(ctx, n.Name)
	if apierrors.IsNotFound(err) {
		n.devices, n.labels = nil, nil // the board's labels come next
		_, err = n.Server.CreateNode(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: base}})
		if err == nil {
			n.Log.Info("registered this node", "node", n.Name)
		}
		return err
	}
	if err != nil {
		return err
	}
	n.conditions, n.devices = node.Status.Conditions, deviceResources(node.Status)
	if n.twin.note(node.Status.NodeInfo.BootID) {
		n.Log.Error("another board shares this node's identity", "hint", n.twin.complaint())
	}
	if labels == nil { // what was set before stays
		labels = owned(node)
	} else {
		n.labels = labels
	}
	return n.label(ctx, labelChange(node, base, labels))
}

// label changes the node's labels. That a server refuses them, perhaps an older one,
// keeps the node from nothing.
func (n *Node) label(ctx context.Context, change map[string]any) error {
	if change == nil {
		return nil
	}
	patch, err := client.MergePatch(map[string]any{"metadata": change})
	if err == nil {
		_, err = n.Server.PatchNode(ctx, n.Name, patch)
	}
	if refused(err) {
		n.Log.Warn("the server refuses this node's labels", "err", err)
		return nil
	}
	if err != nil {
		n.labels = nil
	}
	return err
}

// statusPatch is the change to a status; where its devices are known, without those
// that the node has no more.
func (n *Node) statusPatch(st corev1.NodeStatus, known bool) (client.Patch, error) {
	data, err := json.Marshal(st)
	if err != nil {
		return client.Patch{}, fmt.Errorf("cannot encode the node's status: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return client.Patch{}, fmt.Errorf("cannot encode the node's status: %w", err)
	}
	now := deviceResources(st)
	for name := range n.devices {
		for _, list := range []string{"capacity", "allocatable"} {
			if amounts, ok := fields[list].(map[string]any); ok && known && !now[name] {
				amounts[string(name)] = nil
			}
		}
	}
	return client.StrategicPatch(map[string]any{"status": fields})
}

// stable is the status without what is of no news: the capacity of a disk stays,
// and times say only when something changed.
func stable(st corev1.NodeStatus) corev1.NodeStatus {
	conditions := make([]corev1.NodeCondition, len(st.Conditions))
	for i, c := range st.Conditions {
		c.LastHeartbeatTime, c.LastTransitionTime = metav1.Time{}, metav1.Time{}
		conditions[i] = c
	}
	st.Conditions = conditions
	return st
}
