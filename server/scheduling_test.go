package server_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/client"
)

func TestPodsAreScheduled(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	s := start(t, dir, nil)
	admin := s.admin(t).CoreV1()
	create := func(name, cpu string) {
		t.Helper()
		p := podOf(name, "", "s")
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		if _, err := admin.Pods("default").Create(ctx, p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	condition := func(name string) corev1.PodCondition {
		t.Helper()
		p, err := admin.Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled {
				return c
			}
		}
		return corev1.PodCondition{}
	}
	create("fits", "1")
	create("large", "100")
	eventually(t, "a pod without nodes is told so", func() bool { return condition("fits").Reason == corev1.PodReasonUnschedulable })

	n := s.join(t, "kitchen", nil)
	p, err := client.StrategicPatch(map[string]any{"status": corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourcePods: resource.MustParse("10")},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.PatchNodeStatus(ctx, "kitchen", p); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod that fits is bound", func() bool { return condition("fits").Status == corev1.ConditionTrue })
	eventually(t, "the large one is told why not", func() bool {
		c := condition("large")
		return c.Status == corev1.ConditionFalse && strings.Contains(c.Message, "0/1 nodes")
	})
	eventually(t, "events say so", func() bool {
		events, err := admin.Events("default").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=fits,reason=Scheduled"})
		return err == nil && len(events.Items) == 1
	})
	why, err := s.admin(t).RESTClient().Get().AbsPath("/apis/edge.bramble.dev/v1alpha1/namespaces/default/placements/large").DoRaw(ctx)
	if err != nil || !strings.Contains(string(why), "0/1 nodes") {
		t.Errorf("why: %s, %v", why, err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, dir, nil)
	events, err := s.admin(t).CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "reason=Scheduled"})
	if err != nil || len(events.Items) != 1 {
		t.Errorf("%d events over a restart, %v", len(events.Items), err)
	}
}
