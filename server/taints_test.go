package server_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bramble.dev/bramble/server"
	"bramble.dev/bramble/server/api"
)

// A taint takes from a node the pods that do not tolerate it, and tells them why.
func TestNoExecuteTaintEvicts(t *testing.T) {
	ctx := t.Context()
	s := start(t, t.TempDir(), nil)
	c := s.admin(t)
	s.ready(t, "kitchen", "4")
	created(t, c, "intolerant", func(*corev1.PodSpec) {})
	created(t, c, "tolerant", func(s *corev1.PodSpec) {
		s.Tolerations = []corev1.Toleration{{Key: "paint", Operator: corev1.TolerationOpExists}}
	})
	for _, name := range []string{"intolerant", "tolerant"} {
		eventually(t, name+" is placed", func() bool { return podNow(t, c, name).Spec.NodeName == "kitchen" })
	}
	taint := `{"spec":{"taints":[{"key":"paint","value":"wet","effect":"NoExecute"}]}}`
	if _, err := c.CoreV1().Nodes().Patch(ctx, "kitchen", types.MergePatchType, []byte(taint), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the one has to leave", func() bool { return podNow(t, c, "intolerant").DeletionTimestamp != nil })
	left := podNow(t, c, "intolerant")
	if d := conditionOf(left, corev1.DisruptionTarget); d.Status != corev1.ConditionTrue || d.Reason != "DeletionByTaintManager" {
		t.Errorf("its conditions: %v", left.Status.Conditions)
	}
	eventually(t, "it is told so", func() bool {
		events, err := c.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=intolerant,reason=TaintManagerEviction"})
		return err == nil && len(events.Items) == 1 && strings.Contains(events.Items[0].Message, "Marking for deletion")
	})
	if p := podNow(t, c, "tolerant"); p.DeletionTimestamp != nil {
		t.Errorf("the other leaves too: %v", p.Status.Conditions)
	}
}

// Of a node that is out of reach the pods that may move are taken after their
// tolerationSeconds; those to be kept are not.
func TestOnlyPodsThatMayMoveLeaveALostNode(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := start(t, t.TempDir(), func(cfg *server.Config) { cfg.NodeLeaseTimeout = 5 * time.Second })
	c := s.admin(t)
	s.ready(t, "mast", "4")
	for name, policy := range map[string]string{"kept": api.FailoverKeep, "moving": api.FailoverMove} {
		p := podOf(name, "mast", "s")
		p.Annotations = map[string]string{api.AnnotationFailover: policy}
		one := int64(1)
		p.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, TolerationSeconds: &one, Effect: corev1.TaintEffectNoExecute}}
		if _, err := c.CoreV1().Pods("default").Create(ctx, p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the one leaves", func() bool { return podNow(t, c, "moving").DeletionTimestamp != nil })
	if p := podNow(t, c, "kept"); p.DeletionTimestamp != nil || p.Spec.NodeName != "mast" {
		t.Errorf("the other: %+v", p.ObjectMeta)
	}
}
