package report_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/nodeagent/report"
)

// TestPressureDoesNotFlap: around a threshold the node's condition changes once,
// not at each look.
func TestPressureDoesNotFlap(t *testing.T) {
	const mib = 1 << 20
	all := func(memory, disk, processes int64) report.Facts {
		return report.Facts{
			MemoryBytes: 512 * mib, MemoryAvailableBytes: memory * mib,
			StorageBytes: 1000, StorageAvailableBytes: disk, ProcessesMax: 1000, Processes: processes,
		}
	}
	var before []corev1.NodeCondition
	for i, look := range []struct {
		facts report.Facts
		want  corev1.ConditionStatus
	}{
		{all(101, 101, 899), corev1.ConditionFalse},
		{all(99, 99, 901), corev1.ConditionTrue},
		{all(101, 101, 899), corev1.ConditionTrue},
		{all(149, 119, 851), corev1.ConditionTrue},
		{all(151, 121, 849), corev1.ConditionFalse},
		{all(101, 101, 899), corev1.ConditionFalse},
	} {
		st := report.NodeStatus("pi", look.facts, report.Health{}, before, time.Unix(int64(i), 0))
		before = st.Conditions
		for _, c := range st.Conditions {
			switch c.Type {
			case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure:
				if c.Status != look.want {
					t.Errorf("look %d: %s is %s, want %s", i, c.Type, c.Status, look.want)
				}
			}
		}
	}
}

// TestDiskPressureByInodes: a disk that has room and no inode left takes no file.
func TestDiskPressureByInodes(t *testing.T) {
	var before []corev1.NodeCondition
	for i, look := range []struct {
		inodes, free int64
		want         corev1.ConditionStatus
	}{
		{0, 0, corev1.ConditionFalse}, // btrfs and others have no table of them
		{1000, 51, corev1.ConditionFalse},
		{1000, 49, corev1.ConditionTrue},
		{1000, 55, corev1.ConditionTrue},
		{1000, 61, corev1.ConditionFalse},
	} {
		facts := report.Facts{StorageBytes: 1000, StorageAvailableBytes: 900, Inodes: look.inodes, InodesFree: look.free}
		st := report.NodeStatus("pi", facts, report.Health{}, before, time.Unix(int64(i), 0))
		before = st.Conditions
		for _, c := range st.Conditions {
			if c.Type == corev1.NodeDiskPressure && c.Status != look.want {
				t.Errorf("%d of %d inodes free: %s, want %s", look.free, look.inodes, c.Status, look.want)
			}
		}
	}
	if facts := (report.System{Root: "/", Data: "/dev/shm"}).Read(); facts.Inodes == 0 || facts.InodesFree == 0 {
		t.Errorf("a tmpfs has inodes: %+v", facts)
	}
}

// TestFindingsAreConditions: what the doctor finds is told once, and is False when it is
// over, for the server keeps what is left out. Before a look all stays as it was.
func TestFindingsAreConditions(t *testing.T) {
	slow := report.Finding{Type: "StorageSlow", Message: "slow: replace it"}
	var before []corev1.NodeCondition
	for i, look := range []struct {
		findings []report.Finding
		want     string // of StorageSlow: its status
	}{
		{nil, ""},
		{[]report.Finding{}, ""},
		{[]report.Finding{slow}, "True"},
		{nil, "True"}, // a start of the agent
		{[]report.Finding{slow, {Type: "DiskPressure"}, {Type: "Hot"}, {Type: report.ResourceLimitsUnenforced}, {Type: corev1.NodeReady}, slow}, "True"},
		{[]report.Finding{}, "False"},
		{[]report.Finding{}, "False"},
		{nil, "False"},
		{[]report.Finding{slow}, "True"},
	} {
		health := report.Health{Findings: look.findings, Board: []hw.Condition{{Type: hw.Hot, Known: true}}}
		st := report.NodeStatus("pi", report.Facts{}, health, before, time.Unix(int64(i), 0))
		before = st.Conditions
		got, seen := "", map[corev1.NodeConditionType]bool{}
		for _, c := range st.Conditions {
			if seen[c.Type] {
				t.Errorf("look %d: %s comes twice", i, c.Type)
			}
			seen[c.Type] = true
			if c.Type == "StorageSlow" {
				if got = string(c.Status); got == "True" && c.Message != slow.Message {
					t.Errorf("look %d: %+v", i, c)
				}
			}
			if c.Type == "Hot" && c.Status != corev1.ConditionFalse {
				t.Errorf("look %d: the board's own condition is replaced: %+v", i, c)
			}
		}
		if got != look.want {
			t.Errorf("look %d: StorageSlow is %q, want %q", i, got, look.want)
		}
	}
}
