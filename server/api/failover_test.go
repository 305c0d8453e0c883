package api_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/api"
)

func TestFailover(t *testing.T) {
	controlled := func(kind string) *corev1.Pod {
		p := &corev1.Pod{}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Controller: new(true)}}
		return p
	}
	annotated := func(value string) *corev1.Pod {
		p := controlled("ReplicaSet")
		p.Annotations = map[string]string{api.AnnotationFailover: value}
		return p
	}
	for _, c := range []struct {
		pod  *corev1.Pod
		want string
	}{
		{&corev1.Pod{}, api.FailoverKeep}, {controlled("DaemonSet"), api.FailoverKeep},
		{controlled("ReplicaSet"), api.FailoverMove}, {controlled("StatefulSet"), api.FailoverMove},
		{annotated("exclusive"), api.FailoverExclusive}, {annotated("keep"), api.FailoverKeep}, {annotated("bogus"), api.FailoverKeep},
	} {
		if got := api.Failover(c.pod); got != c.want {
			t.Errorf("Failover(%v) = %s, want %s", c.pod.ObjectMeta, got, c.want)
		}
	}
}
