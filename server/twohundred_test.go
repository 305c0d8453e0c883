package server_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/client"
)

// actor plays a node's agent without a runtime: what is bound runs at once, what
// is deleted is gone at once.
type actor struct {
	cache.ReflectorStore
	*node
	ctx context.Context
	t   *testing.T
}

func (a *actor) Add(obj any) error { return a.Update(obj) }

func (a *actor) Update(obj any) error {
	p := obj.(*corev1.Pod)
	var err error
	switch {
	case p.DeletionTimestamp != nil:
		zero := int64(0)
		err = a.DeletePod(a.ctx, p.Namespace, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero})
	case p.Status.Phase == corev1.PodPending:
		var patch client.Patch
		if patch, err = client.StrategicPatch(map[string]any{"status": map[string]any{"phase": corev1.PodRunning}}); err == nil {
			_, err = a.PatchPodStatus(a.ctx, p.Namespace, p.Name, patch)
		}
	}
	if err != nil && a.ctx.Err() == nil {
		a.t.Errorf("%s: %v", p.Name, err)
	}
	return nil
}

func (a *actor) Delete(any) error { return nil }
func (a *actor) Resync() error    { return nil }

func (a *actor) Replace(list []any, _ string) error {
	for _, obj := range list {
		_ = a.Update(obj)
	}
	return nil
}

// heartbeats keep a node Ready until ctx ends: on a busy machine the test may take
// longer than a silent node is believed.
func heartbeats(ctx context.Context, n *node) {
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for {
		_ = n.Beat(ctx) // the next may do
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// TestTwoHundredPods puts 200 pods on three nodes that are nearly full then:
// all run, no node is given more than it has, and all can be deleted again.
func TestTwoHundredPods(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	admin := s.admin(t).CoreV1()
	ctx, cancel := context.WithCancel(t.Context())
	var agents sync.WaitGroup
	defer agents.Wait()
	defer cancel()
	for _, name := range []string{"bow", "mast", "stern"} {
		n := s.join(t, name, nil)
		status, err := client.StrategicPatch(map[string]any{"status": corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourcePods: resource.MustParse("70"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.PatchNodeStatus(ctx, name, status); err != nil {
			t.Fatal(err)
		}
		if _, err := n.CreateLease(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.NamespaceNodeLeases, Name: name}}); err != nil {
			t.Fatal(err)
		}
		agents.Go(func() { heartbeats(ctx, n) })
		a := &actor{node: n, ctx: ctx, t: t}
		agents.Go(func() { a.WatchPods(ctx, name, a) })
	}
	for i := range 200 {
		p := podOf(fmt.Sprintf("p%03d", i), "", "s")
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(20+10*(i%8)), resource.DecimalSI), // 11 of 12 in all
			corev1.ResourceMemory: *resource.NewQuantity(int64(1+i%20)<<20, resource.BinarySI),
		}
		if _, err := admin.Pods("default").Create(ctx, p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	within(t, 3*time.Minute, "all pods run", func() bool {
		list, err := admin.Pods("default").List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		return err == nil && len(list.Items) == 200
	})
	list, err := admin.Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cpu, memory, count := map[string]int64{}, map[string]int64{}, map[string]int{}
	for _, p := range list.Items {
		cpu[p.Spec.NodeName] += p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		memory[p.Spec.NodeName] += p.Spec.Containers[0].Resources.Requests.Memory().Value()
		count[p.Spec.NodeName]++
	}
	for name := range count {
		if cpu[name] > 4000 || memory[name] > 1<<30 || count[name] > 70 {
			t.Errorf("node %s has %d pods with %d m of 4000 and %d bytes", name, count[name], cpu[name], memory[name])
		}
	}
	if err := admin.Pods("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	within(t, 3*time.Minute, "no pod is left", func() bool {
		list, err := admin.Pods("default").List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
}
