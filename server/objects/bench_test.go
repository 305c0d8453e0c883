package objects_test

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"bramble.dev/bramble/server/objects"
)

// status is what an agent reports of a pod, so that bodies have a real size.
func status(p *corev1.Pod, phase corev1.PodPhase) {
	now := metav1.Now()
	p.Status.Phase = phase
	p.Status.HostIP, p.Status.PodIP = "192.0.2.1", "10.100.3.4"
	p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
	p.Status.StartTime = &now
	for _, c := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "c", Ready: true, Image: "i", ImageID: "sha256:0123456789abcdef", ContainerID: "podman://0123456789abcdef",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
	}}
}

func fill(b *testing.B, n int) *objects.Registry {
	b.Helper()
	r := open(b)
	for i := range n {
		p := pod(fmt.Sprint("p", i))
		p.Labels = map[string]string{"app": fmt.Sprint(i % 10)}
		p.Spec.NodeName = fmt.Sprint("n", i%100)
		create(b, r, pods, p)
		update(b, r, pods, "status", p.Name, func(p *corev1.Pod) { status(p, corev1.PodRunning) })
	}
	return r
}

func BenchmarkStatusUpdate(b *testing.B) {
	r := fill(b, 1)
	restarts := int32(0)
	for b.Loop() {
		restarts++
		update(b, r, pods, "status", "p0", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = restarts })
	}
}

// One node's pods of 1,000 on 100 nodes, and what the state weighs.
func BenchmarkListByNode(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := fill(b, 1000)
	runtime.GC()
	runtime.ReadMemStats(&after)
	opts := objects.ListOptions{Fields: fields.OneTermEqualSelector("spec.nodeName", "n7")}
	for b.Loop() {
		if l, err := r.List(b.Context(), pods, "", opts); err != nil || len(l.Items) != 10 {
			b.Fatal(len(l.Items), err)
		}
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1000, "heapB/pod")
}
