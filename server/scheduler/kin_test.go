package scheduler_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"bramble.dev/bramble/server/scheduler"
)

// What is counted of pods is what there is now, whatever came and went before: a
// snapshot with a past decides as one that was made at once.
func TestDecisionsDoNotDependOnThePast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scheduler.NewSnapshot()
		nodes, pods := map[string]*corev1.Node{}, map[string]*corev1.Pod{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := fmt.Sprint("n", rapid.IntRange(0, 4).Draw(t, "node"))
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				s.DeleteNode(name)
				delete(nodes, name)
			case 1, 2:
				nodes[name] = node(name, "cpu=4 memory=9Gi pods=9", nodeLabels("zone="+rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone")))
				s.PutNode(nodes[name])
			case 3:
				gone := pod(fmt.Sprint("p", rapid.IntRange(0, 9).Draw(t, "gone")), "")
				s.DeletePod(keyOf(scheduler.NewPod(gone)))
				delete(pods, gone.Name)
			default:
				p := drawPod(t, fmt.Sprint("p", rapid.IntRange(0, 9).Draw(t, "pod")))
				on(name)(p)
				if rapid.IntRange(0, 3).Draw(t, "leaving") == 0 {
					p.DeletionTimestamp = &metav1.Time{}
				}
				s.PutPod(p)
				pods[p.Name] = p
			}
		}
		fresh := scheduler.NewSnapshot()
		for _, n := range nodes {
			fresh.PutNode(n)
		}
		for _, p := range pods {
			fresh.PutPod(p)
		}
		p := scheduler.NewPod(drawPod(t, "new"))
		was, is := profile().Decide(s, p), profile().Decide(fresh, p)
		if was.Message() != is.Message() || was.Node != is.Node {
			t.Fatalf("with a past: %q on %q; without: %q on %q", was.Message(), was.Node, is.Message(), is.Node)
		}
		for i := range was.Verdicts {
			if was.Verdicts[i].Total != is.Verdicts[i].Total || was.Verdicts[i].Fits() != is.Verdicts[i].Fits() {
				t.Fatalf("%s: with a past %+v, without %+v", was.Verdicts[i].Node.Name, was.Verdicts[i], is.Verdicts[i])
			}
		}
	})
}
