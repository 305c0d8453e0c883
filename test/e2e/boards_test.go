package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/test/cluster"
)

// boardDir is a recorded board of a node: its files can be written anew.
type boardDir struct {
	t    *testing.T
	path string
}

// startBoard starts a node whose board is a folder of files.
func startBoard(t *testing.T, s *cluster.Server, name, milliC string) boardDir {
	t.Helper()
	u := cluster.ForTest(t)
	b := boardDir{t, filepath.Join(u.Home, "board")}
	b.write("proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4")
	b.write("proc/sys/kernel/random/boot_id", name)
	b.write("sys/class/thermal/thermal_zone0/type", "cpu-thermal")
	b.heat(milliC, "throttled=0x0")
	s.StartNodeAs(t, name, u, "--hw-root="+b.path)
	return b
}

// heat is what the board says from now on.
func (b boardDir) heat(milliC, throttled string) {
	b.write("sys/class/thermal/thermal_zone0/temp", milliC)
	b.write("vcgencmd/get_throttled", throttled)
}

func (b boardDir) write(path, text string) {
	b.t.Helper()
	file := filepath.Join(b.path, path)
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(text+"\n"), 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestTheCoolBoard has pods go where it is cool, say why, and follow when the heat
// passes on; readings that flicker around a limit move nothing.
func TestTheCoolBoard(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	attic, cellar := startBoard(t, s, "attic", "77000"), startBoard(t, s, "cellar", "45000")
	temperature := func(node, milliC string) {
		t.Helper()
		cluster.Eventually(t, time.Minute, func() string {
			got, err := s.Edgectl("get", "nodehardware", node, "-o", "jsonpath={.status.socTemperatureMilliC}")
			if err != nil || !strings.HasPrefix(got, milliC) {
				return node + " reports " + got
			}
			return ""
		})
	}
	pod := func(name, node string) {
		t.Helper()
		s.Apply("apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec:\n  terminationGracePeriodSeconds: 0\n" +
			"  containers: [{name: c, image: " + cluster.TestImage + ", command: [sleep, '1000000']}]\n")
		s.WaitFor("condition=Ready", "pod/"+name)
		if got := s.Must("get", "pod", name, "-o", "jsonpath={.spec.nodeName}"); got != node {
			t.Errorf("%s is on %s, want it on %s: %s", name, got, node, s.Must("why", "pod", name))
		}
	}
	temperature("attic", "77")
	temperature("cellar", "45")
	if all := s.Must("hw"); !strings.Contains(all, "45.0 °C") || !strings.Contains(all, "Raspberry Pi 4 Model B") {
		t.Errorf("hw: %s", all)
	}
	pod("first", "cellar")
	if why := s.Must("why", "pod", "first"); !strings.Contains(why, "Thermal") || !strings.Contains(why, "45 °C") || !strings.Contains(why, "slows down at 80") {
		t.Errorf("why: %s", why)
	}

	metrics := s.Must("get", "--raw", "/api/v1/nodes/cellar/proxy/metrics")
	for _, line := range []string{`node_thermal_zone_temp{zone="0",type="cpu-thermal"} 45`, `bramble_board_condition{condition="Hot"} 0`, "bramble_throttled_bits 0"} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no line %s in the metrics:\n%s", line, metrics)
		}
	}
	if out, err := s.Edgectl("get", "--raw", "/api/v1/nodes/cellar/proxy/stats"); err == nil || !strings.Contains(out+err.Error(), "only /metrics is served") {
		t.Errorf("another path: %s, %v", out, err)
	}

	cellar.heat("82000", "throttled=0x20002")
	attic.heat("50000", "throttled=0x0")
	s.WaitFor("condition=Hot", "node/cellar")
	s.WaitFor("condition=Throttled", "nodehardware/cellar")
	if one := s.Must("hw", "cellar"); !strings.Contains(one, "slows down at 80.0 °C") || !strings.Contains(one, "Throttled") || !strings.Contains(one, "in the last hour") {
		t.Errorf("hw cellar: %s", one)
	}
	pod("second", "attic")
	if why := s.Must("why", "pod", "second"); !strings.Contains(why, "1/2 nodes fit: 1 was throttled, 1 was too hot") {
		t.Errorf("why: %s", why)
	}

	// Half a minute of jumps across both limits of Hot: nothing begins or ends by them.
	since := func(node string) string {
		return s.Must("get", "node", node, "-o", `jsonpath={.status.conditions[?(@.type=="Hot")].status} {.status.conditions[?(@.type=="Hot")].lastTransitionTime}`)
	}
	before := since("attic") + since("cellar")
	values := []string{"79500", "71000", "78500", "70500"}
	i, began := 0, time.Now()
	cluster.Eventually(t, time.Minute, func() string {
		i++
		attic.heat(values[i%len(values)], "throttled=0x0")
		cellar.heat(values[(i+1)%len(values)], "throttled=0x20002")
		if time.Since(began) < 30*time.Second {
			return "it flickers"
		}
		return ""
	})
	if after := since("attic") + since("cellar"); after != before {
		t.Errorf("Hot was %s, and is %s", before, after)
	}
	for pod, node := range map[string]string{"first": "cellar", "second": "attic"} {
		if got := s.Must("get", "pod", pod, "-o", "jsonpath={.spec.nodeName} {.status.phase} {.status.containerStatuses[0].restartCount}"); got != node+" Running 0" {
			t.Errorf("%s: %s", pod, got)
		}
	}
}
