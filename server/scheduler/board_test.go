package scheduler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/scheduler"
)

// board is what a node's board says.
func board(node string, change ...func(*api.NodeHardwareStatus)) *api.NodeHardware {
	h := &api.NodeHardware{ObjectMeta: metav1.ObjectMeta{Name: node}}
	h.Status.BootID = "boot"
	for _, f := range change {
		f(&h.Status)
	}
	return h
}

func celsius(c float64) func(*api.NodeHardwareStatus) {
	return func(s *api.NodeHardwareStatus) {
		milli, soft := int64(c*1000), int64(80_000)
		s.SoCTemperatureMilliC, s.SoCTemperatureSoftMilliC = &milli, &soft
	}
}

func rising(k float64) func(*api.NodeHardwareStatus) {
	return func(s *api.NodeHardwareStatus) {
		milli := int64(k * 1000)
		s.SoCTemperatureRiseMilliC = &milli
	}
}

func with(conditions ...string) func(*api.NodeHardwareStatus) {
	return func(s *api.NodeHardwareStatus) {
		for _, c := range conditions {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue})
		}
	}
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} }
}

// TestBoards decides among nodes by what their boards say.
func TestBoards(t *testing.T) {
	mains, battery, full, low := false, true, int64(90), int64(25)
	for _, tt := range []struct {
		name    string
		boards  []*api.NodeHardware
		pod     *corev1.Pod
		node    string
		message string
		why     string // of the chosen node
	}{
		{"the cool one", []*api.NodeHardware{board("a", celsius(72)), board("b", celsius(45))}, pod("p", "cpu=1"), "b", "2/2 nodes fit", "Thermal"},
		{"both cool enough: as without", []*api.NodeHardware{board("a", celsius(30)), board("b", celsius(25))}, pod("p", "cpu=1"), "a", "2/2 nodes fit", ""},
		{"the one that does not heat up", []*api.NodeHardware{board("a", celsius(60), rising(8)), board("b", celsius(61))}, pod("p", "cpu=1"), "b", "2/2 nodes fit", ""},
		{"not the hot one", []*api.NodeHardware{board("a", celsius(50), with("Hot")), board("b", celsius(74))}, pod("p", ""), "b", "1/2 nodes fit: 1 was too hot", ""},
		{"hot, but named", []*api.NodeHardware{board("a", celsius(50), with("Hot"))}, pod("p", "", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "a"} }), "a", "1/2 nodes fit: 1 did not match the pod's node selector", "waived: was too hot"},
		{"all too hot: the cooler", []*api.NodeHardware{board("a", celsius(82), with("Hot", "Throttled")), board("b", celsius(70), with("Hot"))}, pod("p", ""), "b", "2/2 nodes fit", "waived: was too hot"},
		{"heat ignored", []*api.NodeHardware{board("a", with("Hot")), board("b", with("LowBattery"))}, pod("p", "", annotated(api.AnnotationIgnoreConditions, "Hot, Throttled")), "a", "1/2 nodes fit: 1 had little battery left", ""},
		{"all ignored", []*api.NodeHardware{board("a", with("UnderVoltage", "ReadOnlyFilesystem")), board("b")}, pod("p", "", annotated(api.AnnotationIgnoreConditions, "*")), "a", "2/2 nodes fit", ""},
		{"avoided, though nothing is left", []*api.NodeHardware{board("a", with("ClockUnsynced")), board("b", with("ClockUnsynced"))}, pod("p", "", annotated(api.AnnotationAvoidConditions, "ClockUnsynced")), "", "0/2 nodes fit: 2 had a clock that nobody sets", ""},
		{"never a node that cannot write", []*api.NodeHardware{board("a", with("ReadOnlyFilesystem")), board("b", with("ReadOnlyFilesystem"))}, pod("p", ""), "", "0/2 nodes fit: 2 had a file system that became read-only", ""},
		{"on mains", []*api.NodeHardware{board("a", func(s *api.NodeHardwareStatus) { s.OnBattery, s.BatteryPercent = &battery, &low }), board("b", func(s *api.NodeHardwareStatus) { s.OnBattery, s.BatteryPercent = &mains, &full })}, pod("p", ""), "b", "2/2 nodes fit", "on mains power"},
		{"one that says nothing has no opinion", []*api.NodeHardware{board("a", celsius(79))}, pod("p", ""), "b", "2/2 nodes fit", "not known"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := snapshot(node("a", big), node("b", big))
			for _, h := range tt.boards {
				s.PutHardware(h, time.Time{})
			}
			d := profile().Decide(s, scheduler.NewPod(tt.pod))
			if d.Node != tt.node || d.Message() != tt.message {
				t.Errorf("%q: %s, want %q: %s", d.Node, d.Message(), tt.node, tt.message)
			}
			if why := whyOf(&d); !strings.Contains(why, tt.why) {
				t.Errorf("explained as %q, want %q", why, tt.why)
			}
		})
	}
}

func whyOf(d *scheduler.Decision) (why string) {
	for _, v := range d.Verdicts {
		if v.Node.Name != d.Node {
			continue
		}
		for _, r := range v.Waived {
			why += "waived: " + r.One + "; "
		}
	}
	for _, n := range profile().Explain(d).Nodes {
		for _, s := range n.Scores {
			if n.Name == d.Node {
				why += s.Plugin + " " + s.Detail + "; "
			}
		}
	}
	return why
}

// TestPodsHeatBeforeTheyAreReported places pods faster than boards report: they do not
// all go where it was cool.
func TestPodsHeatBeforeTheyAreReported(t *testing.T) {
	s := snapshot(node("a", "cpu=64 memory=64Gi pods=110"), node("b", "cpu=64 memory=64Gi pods=110"))
	s.PutHardware(board("a", celsius(50)), time.Time{})
	s.PutHardware(board("b", celsius(56)), time.Time{})
	count := map[string]int{}
	for i := range 6 {
		p := scheduler.NewPod(pod(string(rune('p'+i)), "cpu=500m"))
		d := profile().Decide(s, p)
		count[d.Node]++
		s.Assume(p, d.Node)
	}
	if count["a"] == 6 || count["b"] == 0 {
		t.Errorf("placed %v", count)
	}
}

// TestOldReports has a report count less and less.
func TestOldReports(t *testing.T) {
	for _, tt := range []struct {
		age  time.Duration
		node string
	}{{0, "b"}, {2 * api.HardwareEvery, "b"}, {11 * api.HardwareEvery, "a"}} {
		s := snapshot(node("a", big), node("b", big))
		now := time.Now()
		s.PutHardware(board("a", celsius(79), with("Hot")), now.Add(-tt.age))
		s.PutHardware(board("b", celsius(40)), now.Add(-tt.age))
		s.At(now)
		if d := profile().Decide(s, scheduler.NewPod(pod("p", ""))); d.Node != tt.node {
			t.Errorf("after %v: %s", tt.age, d.Node)
		}
	}
}

// TestAPodWaitsForABoard has a pod that avoids a condition be placed when it ends, and a
// warning where what speaks against all nodes was waived.
func TestAPodWaitsForABoard(t *testing.T) {
	run(t, func(t *testing.T, c *cluster, _ *scheduler.Scheduler) {
		c.put(node("a", big), board("a", with("OnBattery", "Hot")), pod("p", "", annotated(api.AnnotationAvoidConditions, "OnBattery")), pod("q", ""))
		c.synced()
		expect(t, c, "q a")
		<-time.After(time.Minute) // of the bubble: it waits
		c.put(board("a", with("Hot")))
		expect(t, c, "p a")
		if !slices.Contains(c.events, "q BoardConditionsWaived") {
			t.Errorf("nobody was warned: %v", c.events)
		}
	})
}

// TestHeatComesLate has a board report half a minute after it was given work: it is
// about to get warmer than it says, and after half an hour it is as warm as it says.
func TestHeatComesLate(t *testing.T) {
	for _, tt := range []struct {
		after time.Duration
		node  string
	}{{30 * time.Second, "b"}, {30 * time.Minute, "a"}} {
		s := snapshot(node("a", "cpu=64 memory=64Gi pods=110"), node("b", "cpu=64 memory=64Gi pods=110"))
		now := time.Now()
		s.PutHardware(board("a", celsius(50)), now)
		s.PutHardware(board("b", celsius(62)), now)
		s.PutPod(pod("busy", "cpu=3", on("a")))
		s.PutHardware(board("a", celsius(50)), now.Add(tt.after))
		s.At(now.Add(tt.after))
		if d := profile().Decide(s, scheduler.NewPod(pod("p", ""))); d.Node != tt.node {
			t.Errorf("after %v it goes to %s, want %s: %s", tt.after, d.Node, tt.node, whyOf(&d))
		}
	}
}
