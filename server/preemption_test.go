package server_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"bramble.dev/bramble/server/client"
)

// ready joins a node that is ready and has that many CPUs.
func (r *running) ready(t *testing.T, name, cpus string) *node {
	t.Helper()
	n := r.join(t, name, nil)
	p, err := client.StrategicPatch(map[string]any{"status": corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpus), corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourcePods: resource.MustParse("10")},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.PatchNodeStatus(t.Context(), name, p); err != nil {
		t.Fatal(err)
	}
	return n
}

func created(t *testing.T, c kubernetes.Interface, name string, change func(*corev1.PodSpec)) *corev1.Pod {
	t.Helper()
	p := podOf(name, "", "s")
	change(&p.Spec)
	p, err := c.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func podNow(t *testing.T, c kubernetes.Interface, name string) *corev1.Pod {
	t.Helper()
	p, err := c.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func conditionOf(p *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

func TestPodsGetThePriorityOfTheirClass(t *testing.T) {
	ctx := t.Context()
	s := start(t, t.TempDir(), nil)
	c := s.admin(t)
	classes := c.SchedulingV1().PriorityClasses()
	class := func(name string, value int32, isDefault bool) error {
		never := corev1.PreemptNever
		_, err := classes.Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: isDefault, PreemptionPolicy: &never}, metav1.CreateOptions{})
		return err
	}
	if p := created(t, c, "plain", func(*corev1.PodSpec) {}); *p.Spec.Priority != 0 || *p.Spec.PreemptionPolicy != corev1.PreemptLowerPriority {
		t.Errorf("without a class: %v", p.Spec)
	}
	if err := class("usual", 5, true); err != nil {
		t.Fatal(err)
	}
	if err := class("other", 6, true); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "usual is already marked as default") {
		t.Errorf("a second default class: %v", err)
	}
	if err := class("system-mine", 6, false); !apierrors.IsInvalid(err) {
		t.Errorf("a class of the system's: %v", err)
	}
	if err := classes.Delete(ctx, "system-node-critical", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a class of the system may be deleted: %v", err)
	}
	usual := created(t, c, "usual", func(*corev1.PodSpec) {})
	if usual.Spec.PriorityClassName != "usual" || *usual.Spec.Priority != 5 || *usual.Spec.PreemptionPolicy != corev1.PreemptNever {
		t.Errorf("with a default class: %+v", usual.Spec)
	}
	critical := created(t, c, "critical", func(s *corev1.PodSpec) { s.PriorityClassName = "system-node-critical" })
	if *critical.Spec.Priority != 2_000_001_000 {
		t.Errorf("critical: %+v", critical.Spec)
	}
	// Who replaces a pod need not know its priority.
	usual.Spec.Priority, usual.Spec.PreemptionPolicy, usual.ResourceVersion = nil, nil, ""
	if p, err := c.CoreV1().Pods("default").Update(ctx, usual, metav1.UpdateOptions{}); err != nil || *p.Spec.Priority != 5 {
		t.Errorf("replaced: %v, %v", p.Spec.Priority, err)
	}
	for want, change := range map[string]func(*corev1.PodSpec){
		"no PriorityClass with name none was found":                            func(s *corev1.PodSpec) { s.PriorityClassName = "none" },
		"the integer value of priority (7) must not be provided in pod spec":   func(s *corev1.PodSpec) { s.Priority = new(int32); *s.Priority = 7 },
		"the string value of PreemptionPolicy (PreemptLowerPriority) must not": func(s *corev1.PodSpec) { p := corev1.PreemptLowerPriority; s.PreemptionPolicy = &p },
	} {
		p := podOf("refused", "", "s")
		change(&p.Spec)
		if _, err := c.CoreV1().Pods("default").Create(ctx, p, metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A more important pod gets its place: the other is told why, is given its
// grace period, and only then is the place free.
func TestPreemptedPodLeavesInItsGracePeriod(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	s := start(t, dir, nil)
	c := s.admin(t)
	if _, err := c.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	whole := func(s *corev1.PodSpec) {
		s.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	}
	n := s.ready(t, "kitchen", "2")
	created(t, c, "low", whole)
	eventually(t, "the first is placed", func() bool { return podNow(t, c, "low").Spec.NodeName == "kitchen" })
	high := created(t, c, "high", func(s *corev1.PodSpec) { whole(s); s.PriorityClassName = "high" })
	eventually(t, "the first has to leave", func() bool { return podNow(t, c, "low").DeletionTimestamp != nil })
	low := podNow(t, c, "low")
	if d := conditionOf(low, corev1.DisruptionTarget); d.Status != corev1.ConditionTrue || d.Reason != "PreemptionByScheduler" {
		t.Errorf("its conditions: %v", low.Status.Conditions)
	}
	if *low.DeletionGracePeriodSeconds != 30 {
		t.Errorf("it has %d seconds", *low.DeletionGracePeriodSeconds)
	}
	eventually(t, "it is told so", func() bool {
		events, err := c.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=low,reason=Preempted"})
		return err == nil && len(events.Items) == 1 && strings.Contains(events.Items[0].Message, string(high.UID))
	})
	if p := podNow(t, c, "high"); p.Status.NominatedNodeName != "kitchen" || p.Spec.NodeName != "" || conditionOf(p, corev1.PodScheduled).Reason != corev1.PodReasonUnschedulable {
		t.Errorf("meanwhile: %+v", p.Status)
	}
	for name, want := range map[string]string{"low": "has to leave kitchen, for one of priority 1000; its own is 0", "high": "gets kitchen from 1 pod of lower priority"} {
		why, err := c.RESTClient().Get().AbsPath("/apis/edge.bramble.dev/v1alpha1/namespaces/default/placements/" + name).DoRaw(ctx)
		if err != nil || !strings.Contains(string(why), want) {
			t.Errorf("why %s: %s, %v", name, why, err)
		}
	}
	now := int64(0)
	if err := n.DeletePod(ctx, "default", "low", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil { // the node has ended it
		t.Fatal(err)
	}
	eventually(t, "the other has its place", func() bool {
		p := podNow(t, c, "high")
		return p.Spec.NodeName == "kitchen" && p.Status.NominatedNodeName == ""
	})
}

// Gates keep a pod from a node until the last is removed, by kubectl's patch.
func TestGatesKeepAPodFromANode(t *testing.T) {
	ctx := t.Context()
	s := start(t, t.TempDir(), nil)
	c := s.admin(t)
	s.ready(t, "kitchen", "2")
	created(t, c, "free", func(*corev1.PodSpec) {})
	created(t, c, "gated", func(s *corev1.PodSpec) { s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.org/quota"}} })
	eventually(t, "the one without is placed", func() bool { return podNow(t, c, "free").Spec.NodeName != "" })
	p := podNow(t, c, "gated")
	if d := conditionOf(p, corev1.PodScheduled); p.Spec.NodeName != "" || d.Reason != corev1.PodReasonSchedulingGated || d.Status != corev1.ConditionFalse {
		t.Errorf("gated: %+v", p.Status)
	}
	bind := func(ctx context.Context) error {
		return c.CoreV1().Pods("default").Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "gated"}, Target: corev1.ObjectReference{Kind: "Node", Name: "kitchen"}}, metav1.CreateOptions{})
	}
	if err := bind(ctx); err == nil || !strings.Contains(err.Error(), "remove the gates first") {
		t.Errorf("a gated pod is bound: %v", err)
	}
	p.Spec.SchedulingGates = slices.Clone(p.Spec.SchedulingGates[:0])
	if _, err := c.CoreV1().Pods("default").Update(ctx, p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is placed then", func() bool { return podNow(t, c, "gated").Spec.NodeName == "kitchen" })
}

// Through the API, pods that want distance get it, and the one too many says
// what kept it.
func TestPodsThatKeepTheirDistance(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	c := s.admin(t)
	s.ready(t, "kitchen", "2")
	s.ready(t, "attic", "2")
	for _, name := range []string{"a", "b", "c"} {
		p := podOf(name, "", "s")
		p.Labels = map[string]string{"app": "web", "pod-template-hash": "1"}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, MatchLabelKeys: []string{"pod-template-hash"},
		}}}}
		if _, err := c.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "two are placed apart", func() bool {
		nodes := map[string]int{}
		for _, name := range []string{"a", "b", "c"} {
			nodes[podNow(t, c, name).Spec.NodeName]++
		}
		return nodes["kitchen"] == 1 && nodes["attic"] == 1
	})
	eventually(t, "the third says why not", func() bool {
		for _, name := range []string{"a", "b", "c"} {
			if strings.Contains(conditionOf(podNow(t, c, name), corev1.PodScheduled).Message, "0/2 nodes fit: 2 had a pod near") {
				return true
			}
		}
		return false
	})
}
