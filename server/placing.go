package server

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/eviction"
	"bramble.dev/bramble/server/objects"
	"bramble.dev/bramble/server/scheduler"
)

// schedulerName is who the scheduler's writes and events are by.
const schedulerName = "bramble-scheduler"

// placing is the scheduler's view of the registry.
type placing struct {
	registry                *objects.Registry
	pods, nodes, namespaces *objects.Kind
	hardware                *objects.Kind
	now                     func() time.Time
	evictor                 *eviction.Evictor // told of the same nodes and pods
	boards                  *boardHistory     // told of the same boards
}

// Follow tells the scheduler of nodes, pods, namespaces and boards, and the evictor of
// the first two: they share what is decoded.
func (p placing) Follow(ctx context.Context, f func(scheduler.Event)) error {
	return followAll(ctx, func() { f(scheduler.Event{Synced: true}) },
		&follower{registry: p.registry, kind: p.nodes, reduce: reduceNode, tell: func(obj objects.Object, deleted bool) {
			p.evictor.Node(obj.(*corev1.Node), deleted)
			f(scheduler.Event{Node: obj.(*corev1.Node), Deleted: deleted})
		}},
		&follower{registry: p.registry, kind: p.hardware, tell: func(obj objects.Object, deleted bool) {
			p.boards.note(obj.(*api.NodeHardware), deleted)
			f(scheduler.Event{Hardware: obj.(*api.NodeHardware), Deleted: deleted})
		}},
		&follower{registry: p.registry, kind: p.namespaces, tell: func(obj objects.Object, deleted bool) {
			f(scheduler.Event{Namespace: obj.(*corev1.Namespace), Deleted: deleted})
		}},
		&follower{registry: p.registry, kind: p.pods, reduce: reducePod, tell: func(obj objects.Object, deleted bool) {
			p.evictor.Pod(obj.(*corev1.Pod), deleted)
			f(scheduler.Event{Pod: obj.(*corev1.Pod), Deleted: deleted})
		}},
	)
}

func (p placing) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	stored, err := p.registry.Get(ctx, p.pods, namespace, name)
	if err != nil {
		return nil, err
	}
	obj, err := p.pods.Decode(stored.Body.Bytes())
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Pod), nil
}

func (p placing) Bind(ctx context.Context, pod *corev1.Pod, node string) error {
	return p.change(ctx, pod, "binding", func(current *corev1.Pod) {
		admission.BindPod(current, node, metav1.NewTime(p.now()))
	})
}

func (p placing) Unschedulable(ctx context.Context, pod *corev1.Pod, message, nominated string) error {
	return p.change(ctx, pod, "status", func(current *corev1.Pod) {
		current.Status.NominatedNodeName = nominated
		admission.SetPodCondition(&current.Status, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable, Message: message,
			ObservedGeneration: current.Generation,
		}, metav1.NewTime(p.now()))
	})
}

// Evict makes room for a pod that matters more.
func (p placing) Evict(ctx context.Context, pod *corev1.Pod) error {
	return disruption{p.registry, p.pods, p.now, schedulerName, corev1.PodReasonPreemptionByScheduler,
		schedulerName + ": preempting to accommodate a higher priority pod"}.Evict(ctx, pod)
}

// change writes to pod while it waits for a node; else it is a conflict.
func (p placing) change(ctx context.Context, pod *corev1.Pod, sub string, do func(*corev1.Pod)) error {
	change := func(current objects.Object) (objects.Object, error) {
		now := current.(*corev1.Pod)
		var why string
		switch {
		case now.UID != pod.UID:
			return nil, apierrors.NewNotFound(p.pods.GroupResource(), pod.Name)
		case now.DeletionTimestamp != nil:
			why = "it is being deleted"
		case now.Spec.NodeName != "":
			why = "it is bound to " + now.Spec.NodeName
		default:
			do(now)
			return now, nil
		}
		return nil, apierrors.NewConflict(p.pods.GroupResource(), pod.Name, fmt.Errorf("pod %s waits for no node: %s", pod.Name, why))
	}
	_, err := p.registry.Update(ctx, p.pods, sub, pod.Namespace, pod.Name, change, objects.WriteOptions{FieldManager: schedulerName})
	return err
}
