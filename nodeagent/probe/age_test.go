package probe_test

import (
	"os/exec"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/probe"
)

func TestAgeIsByTheKernel(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if age := probe.Age(cmd.Process.Pid); age < 0 || age > 5*time.Second {
		t.Errorf("a new process is %v old", age)
	}
	if young, old := probe.Age(cmd.Process.Pid), probe.Age(1); old <= young {
		t.Errorf("process 1 is %v old", old)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if age := probe.Age(cmd.Process.Pid); age != 0 {
		t.Errorf("a process that is gone is %v old", age)
	}
}

func FuzzStartTime(f *testing.F) {
	f.Add([]byte("7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 0 0 0 0 20 0 1 0 250 8192"))
	f.Add([]byte("7"))
	f.Fuzz(func(_ *testing.T, stat []byte) { probe.StartTime(stat) })
}

func TestStartTime(t *testing.T) {
	stat := "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 0 0 0 0 20 0 1 0 250 8192"
	if got := probe.StartTime([]byte(stat)); got != 2500*time.Millisecond {
		t.Errorf("%v", got)
	}
}
