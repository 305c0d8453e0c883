package server_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/scheduler"
)

// placedPod has a node, and something of all that others of it may ask.
func placedPod() *corev1.Pod {
	always, seconds, priority := corev1.ContainerRestartPolicyAlways, int64(30), int32(7)
	takes := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), "example.org/gpio": resource.MustParse("1")}}
	}
	term := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "p", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"},
			Annotations: map[string]string{api.AnnotationFailover: api.FailoverMove, "notes": "long"},
		},
		Spec: corev1.PodSpec{
			NodeName: "node", Priority: &priority, Overhead: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")},
			Tolerations: []corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds}},
			Affinity:    &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}},
			Containers:  []corev1.Container{{Name: "c", Image: "i", Resources: takes("1"), Ports: []corev1.ContainerPort{{HostPort: 80}}}, {Name: "d"}},
			InitContainers: []corev1.Container{
				{Name: "side", RestartPolicy: &always, Resources: takes("2"), Ports: []corev1.ContainerPort{{HostPort: 81}}},
				{Name: "first", Resources: takes("8")},
			},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &metav1.Time{Time: time.Unix(1, 0)}, Message: "long"},
	}
}

// A placed pod counts for the scheduler as if all of it were kept.
func TestReducedPodCountsTheSame(t *testing.T) {
	whole, reduced := placedPod(), placedPod()
	server.ReducePod(reduced)
	if reduced.Status.Message != "" || reduced.Annotations["notes"] != "" || reduced.Spec.Containers[0].Image != "" {
		t.Errorf("it was not reduced: %+v", reduced)
	}
	// The plugins' own views of a pod are in the unexported fields.
	all := cmp.Exporter(func(reflect.Type) bool { return true })
	got, want := scheduler.NewPod(reduced), scheduler.NewPod(whole)
	got.Pod, want.Pod = nil, nil
	if diff := cmp.Diff(want, got, all); diff != "" {
		t.Errorf("it counts otherwise (-whole +reduced):\n%s", diff)
	}
	if api.Failover(reduced) != api.Failover(whole) || !cmp.Equal(reduced.Spec.Tolerations, whole.Spec.Tolerations) || !reduced.Status.StartTime.Equal(whole.Status.StartTime) {
		t.Errorf("it is evicted otherwise: %+v", reduced)
	}
	if !cmp.Equal(reduced.Labels, whole.Labels) || reduced.UID != whole.UID || reduced.ResourceVersion != whole.ResourceVersion {
		t.Errorf("selectors and changes see another pod: %+v", reduced.ObjectMeta)
	}
	waiting := placedPod()
	waiting.Spec.NodeName = ""
	server.ReducePod(waiting)
	if waiting.Spec.Containers[0].Image == "" {
		t.Error("a pod that waits for a node lost what its filters ask")
	}
}

func fullNode() *corev1.Node {
	return &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "n", UID: "u", ResourceVersion: "7", CreationTimestamp: metav1.Unix(5, 0),
			Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{"notes": "long"},
		},
		Spec: corev1.NodeSpec{PodCIDR: "10.100.1.0/24", Unschedulable: true, Taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{
			Capacity:    corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")},
			Images:      []corev1.ContainerImage{{Names: []string{"i"}, SizeBytes: 9}},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "r"},
			},
		},
	}
}

func TestReducedNode(t *testing.T) {
	want, got := fullNode(), fullNode()
	want.Annotations, want.Status.Capacity, want.Status.Conditions = nil, nil, nil
	server.ReduceNode(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("for the scheduler (-want +got):\n%s", diff)
	}
	want, got = fullNode(), fullNode()
	want.Labels, want.Annotations = nil, nil
	want.Spec = corev1.NodeSpec{Taints: want.Spec.Taints}
	want.Status = corev1.NodeStatus{Conditions: want.Status.Conditions[1:]}
	server.ReduceHeard(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("for its controller (-want +got):\n%s", diff)
	}
}
