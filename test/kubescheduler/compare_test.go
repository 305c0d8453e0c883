// Package kubescheduler measures our scheduler beside Kubernetes' own, in one
// process and on the same nodes and pods. It is a module of its own, so that no
// other depends on Kubernetes' program.
package kubescheduler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	kube "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	ours "bramble.dev/bramble/server/scheduler"
)

const (
	nodes  = 1000
	placed = 10_000 // pods that are there before
	coming = 300    // pods to be placed, one after the other
	budget = 5      // times as fast as Kubernetes' own
)

// TestBesideKubernetes places pods on 1,000 nodes with 10,000 pods by both
// schedulers, in turn: each decides, and counts the pod on its node before the
// next. Neither binds anything through an API. Kubernetes' has its default
// profile, and so looks for 42 % of the nodes that fit and stops; ours looks at all.
func TestBesideKubernetes(t *testing.T) {
	klog.SetLogger(klog.Background().V(-1))
	for _, kind := range []struct {
		name string
		pod  func(i int) *corev1.Pod
	}{
		{"plain", plain}, {"anti-affinity by node", antiAffine}, {"affinity to a zone", affine}, {"spread over zones", spread},
	} {
		var us, them []time.Duration
		for range 3 {
			us = append(us, byOurs(t, kind.pod))
			them = append(them, byKubernetes(t, kind.pod))
		}
		slices.Sort(us)
		slices.Sort(them)
		times := them[1].Seconds() / us[1].Seconds()
		rate := func(d time.Duration) float64 { return coming / d.Seconds() }
		fmt.Printf("| decisions on %d nodes with %d pods, %s: ours / Kubernetes' (of 3 runs in turn) | %.0f /s / %.0f /s = %.3g × | at least %d × |\n",
			nodes, placed, kind.name, rate(us[1]), rate(them[1]), times, budget)
		if times < budget {
			t.Errorf("%s: %.3g times as fast as Kubernetes' own, the budget is %d", kind.name, times, budget)
		}
	}
}

// byOurs places the pods by ours and returns how long it took.
func byOurs(t *testing.T, next func(i int) *corev1.Pod) time.Duration {
	t.Helper()
	snapshot := ours.NewSnapshot()
	for i := range nodes {
		snapshot.PutNode(node(i))
	}
	for i := range placed {
		snapshot.PutPod(there(i))
	}
	p := ours.Default(rand.IntN)
	pods := make([]*corev1.Pod, coming)
	for i := range pods {
		pods[i] = next(i)
	}
	began := time.Now()
	for _, pod := range pods {
		q := ours.NewPod(pod)
		d := p.Decide(snapshot, q)
		if d.Node == "" {
			t.Fatal(d.Message())
		}
		snapshot.Assume(q, d.Node)
	}
	return time.Since(began)
}

// byKubernetes places the pods by Kubernetes' scheduler and returns how long it took.
func byKubernetes(t *testing.T, next func(i int) *corev1.Pod) time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := klog.FromContext(ctx)
	client := fake.NewClientset()
	snapshot := cache.NewEmptySnapshot()
	s, err := kube.New(ctx, client, kube.NewInformerFactory(client, 0, nil), nil, profile.NewRecorderFactory(silent(ctx)), kube.WithNodeInfoSnapshot(snapshot))
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		s.Cache.AddNode(log, node(i))
	}
	for i := range placed {
		if err := s.Cache.AddPod(log, there(i)); err != nil {
			t.Fatal(err)
		}
	}
	pods := make([]*corev1.Pod, coming)
	for i := range pods {
		pods[i] = next(i)
	}
	p := s.Profiles[corev1.DefaultSchedulerName]
	if err := s.Cache.UpdateSnapshot(log, snapshot); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, pod := range pods {
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Cache.UpdateSnapshot(log, snapshot); err != nil {
			t.Fatal(err)
		}
		result, err := s.SchedulePod(ctx, p, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
		if err != nil {
			t.Fatal(err)
		}
		bound := pod.DeepCopy()
		bound.Spec.NodeName = result.SuggestedHost
		if err := s.Cache.AssumePod(log, bound); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(began)
}

// silent drops events.
func silent(ctx context.Context) events.EventBroadcaster {
	return events.NewBroadcaster(&events.EventSinkImpl{Interface: fake.NewClientset().EventsV1()})
}

func node(i int) *corev1.Node {
	name := fmt.Sprintf("n%04d", i)
	has := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("z%d", i%10)}},
		Status: corev1.NodeStatus{
			Capacity: has, Allocatable: has, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// there is a pod that runs already; one in ten keeps away from its own kind.
func there(i int) *corev1.Pod {
	p := pod(fmt.Sprintf("there-%d", i), fmt.Sprintf("web%d", i%50))
	p.Spec.NodeName = fmt.Sprintf("n%04d", i%nodes)
	p.Status.Phase = corev1.PodRunning
	if i%10 == 0 {
		p.Spec.Affinity = away(p.Labels["app"])
	}
	return p
}

func plain(i int) *corev1.Pod { return pod(fmt.Sprintf("new-%d", i), "new") }

func antiAffine(i int) *corev1.Pod {
	p := plain(i)
	p.Spec.Affinity = away("new")
	return p
}

func affine(i int) *corev1.Pod {
	p := plain(i)
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{LabelSelector: app("web3"), TopologyKey: corev1.LabelTopologyZone},
	}}}
	return p
}

func spread(i int) *corev1.Pod {
	p := plain(i)
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: app("new"),
	}}
	return p
}

func away(from string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{LabelSelector: app(from), TopologyKey: corev1.LabelHostname},
	}}}
}

func app(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

func pod(name, of string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"app": of}},
		Spec: corev1.PodSpec{
			SchedulerName: corev1.DefaultSchedulerName,
			Containers: []corev1.Container{{Name: "c", Image: "app:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
			}}}},
		},
	}
}
