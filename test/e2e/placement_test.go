package e2e

import (
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/test/cluster"
)

// TestPreemptionOnANode has a running pod make room for a more important one:
// its process gets the signal and its grace period, here until /tmp/go is there,
// and the other runs where it ran. The node has said which images it has.
func TestPreemptionOnANode(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	s.StartNode(t, "shelf")
	cluster.Eventually(t, 20*time.Second, func() string {
		images := s.Must("get", "node", "shelf", "-o", "jsonpath={.status.images[*].names}")
		if !strings.Contains(images, cluster.TestImage) {
			return "the node's images are " + images
		}
		return ""
	})
	s.Apply(`
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
`)
	pod := func(name, more string) {
		s.Apply(`
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `, finalizers: [example.com/held]} # so that it can be looked at to the end
spec:
  ` + more + `
  terminationGracePeriodSeconds: 60
  containers:
  - name: c
    image: ` + cluster.TestImage + `
    command: [sh, -c, "trap 'until [ -e /tmp/go ]; do sleep 0.1; done; exit 0' TERM; while :; do sleep 0.1; done"]
    resources: {requests: {memory: "` + most(t, s) + `"}}
`)
	}
	pod("usual", "enableServiceLinks: true")
	s.WaitFor("condition=Ready", "pod/usual")
	pod("urgent", "priorityClassName: urgent")
	s.WaitFor("jsonpath={.metadata.deletionGracePeriodSeconds}=60", "pod/usual")
	if got := s.Must("get", "pod", "usual", "-o", `jsonpath={.status.conditions[?(@.type=="DisruptionTarget")].reason}`); got != "PreemptionByScheduler" {
		t.Errorf("the pod that has to leave says %q", got)
	}
	if got := s.Must("get", "pod", "urgent", "-o", "wide"); !strings.Contains(got, "shelf") {
		t.Errorf("it has no nominated node meanwhile: %s", got)
	}
	why, err := s.Edgectl("why", "pod", "usual")
	if err != nil || !strings.Contains(why, "has to leave shelf, for one of priority 1000") {
		t.Errorf("why: %s, %v", why, err)
	}
	s.Must("exec", "usual", "--", "touch", "/tmp/go")
	release := `--patch={"metadata":{"finalizers":null}}`
	s.Must("patch", "pod", "usual", "--type=merge", release)
	s.WaitFor("condition=Ready", "pod/urgent")
	s.Must("exec", "urgent", "--", "touch", "/tmp/go")
	s.Must("patch", "pod", "urgent", "--type=merge", release)
	if events := s.Must("get", "events", "--field-selector=reason=Preempted", "-o", "jsonpath={.items[*].involvedObject.name}"); events != "usual" {
		t.Errorf("preempted, by the events: %q", events)
	}
	s.Must("delete", "pod", "urgent")
}

// most is so much of the node's memory that no two pods have it.
func most(t *testing.T, s *cluster.Server) string {
	t.Helper()
	all := s.Must("get", "node", "shelf", "-o", "jsonpath={.status.allocatable.memory}")
	number, isKi := strings.CutSuffix(all, "Ki")
	if !isKi || len(number) < 2 {
		t.Fatalf("the node has %s of memory", all)
	}
	return number[:len(number)-1] + "0Ki" // a few KiB less than all
}
