package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/test/cluster"
)

// plug adds an adapter with a serial number, or none, to a board: a node of /dev/zero
// or of the like, which its list of rights opens to the node's user.
func (b boardDir) plug(name, serial string, minor uint32, uid int) {
	b.t.Helper()
	b.write("sys/class/tty/"+name+"/device/uevent", "")
	dev := filepath.Join(b.path, "dev")
	if err := os.MkdirAll(filepath.Join(dev, "serial/by-id"), 0o755); err != nil {
		b.t.Fatal(err)
	}
	cluster.MakeNode(b.t, filepath.Join(dev, name), 1, minor)
	cluster.GiveNode(b.t, filepath.Join(dev, name), uid)
	if serial != "" {
		if err := os.Symlink("../../"+name, filepath.Join(dev, "serial/by-id", serial)); err != nil {
			b.t.Fatal(err)
		}
	}
}

// unplug is the contrary of plug.
func (b boardDir) unplug(name, serial string) {
	b.t.Helper()
	for _, path := range []string{"sys/class/tty/" + name, "dev/" + name, "dev/serial/by-id/" + serial} {
		if err := os.RemoveAll(filepath.Join(b.path, path)); err != nil {
			b.t.Fatal(err)
		}
	}
}

const zero, random, urandom = 5, 8, 9 // minor numbers of major 1

// devicePod asks for one device, reads of it, and says so.
func devicePod(name, resource string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n  - name: c\n    image: " +
		cluster.TestImage + "\n    command: [sh, -c, 'echo $(head -c 3 $BRAMBLE_SERIAL | wc -c) of $BRAMBLE_SERIAL; echo x >$BRAMBLE_SERIAL; ls /dev/serial/by-id; exec sleep 1000000']\n" +
		"    resources: {limits: {edge.bramble.dev/" + resource + ": 1}}\n"
}

// TestPodsHaveDevices has pods ask for devices by class and by name, which none gets
// that another has; also after the agent was started again, and after a device came
// back elsewhere.
func TestPodsHaveDevices(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	u := cluster.ForTest(t)
	b := boardDir{t, filepath.Join(u.Home, "board")}
	b.write("proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4")
	b.write("proc/sys/kernel/random/boot_id", "boot")
	b.plug("ttyUSB0", "usb-FTDI_A5-if00-port0", zero, u.UID)
	b.plug("ttyUSB1", "", random, u.UID)
	b.write("sys/bus/gpio/devices/gpiochip0/dev", "254:0")
	cluster.MakeNode(t, filepath.Join(b.path, "dev/gpiochip0"), 1, urandom) // which no user may open
	n := s.StartNodeAs(t, "shed", u, "--hw-root="+b.path)

	amounts := func(want string) {
		t.Helper()
		cluster.Eventually(t, time.Minute, func() string {
			var got []string
			for _, name := range []string{"serial", "serial.ttyUSB0", "serial.usb-FTDI_A5-if00-port0", "serial.ttyUSB1", "gpio"} {
				got = append(got, s.Must("get", "node", "shed", "-o", `jsonpath={.status.allocatable.edge\.bramble\.dev/`+strings.ReplaceAll(name, ".", `\.`)+`}`))
			}
			if text := strings.Join(got, ","); text != want {
				return "allocatable is " + text + ", want " + want
			}
			return ""
		})
	}
	says := func(pod, want string) {
		t.Helper()
		s.WaitFor("condition=Ready", "pod/"+pod)
		cluster.Eventually(t, time.Minute, func() string {
			if got, err := s.Edgectl("logs", pod); err != nil || strings.TrimSpace(got) != want {
				return pod + " says " + got
			}
			return ""
		})
	}
	waits := func(pod string) {
		t.Helper()
		cluster.Eventually(t, time.Minute, func() string {
			return without(s.Must("get", "pod", pod, "-o", "jsonpath={.status.conditions}"), "had not enough edge.bramble.dev/serial.")
		})
	}

	amounts("2,1,1,1,")
	labels := s.Must("get", "node", "shed", "-o", "jsonpath={.metadata.labels}")
	for _, label := range []string{`"edge.bramble.dev/model":"Raspberry-Pi-4-Model-B-Rev-1.4"`, `"edge.bramble.dev/serial":"true"`, `"edge.bramble.dev/gpio":"true"`} {
		if !strings.Contains(labels, label) {
			t.Errorf("no label %s: %s", label, labels)
		}
	}
	s.Apply(devicePod("any", "serial"))
	says("any", "3 of /dev/ttyUSB0\nusb-FTDI_A5-if00-port0")
	amounts("2,0,0,1,")
	s.Apply(devicePod("named", "serial.usb-FTDI_A5-if00-port0"))
	waits("named")

	n.Kill()
	n.Start()
	s.Apply(devicePod("other", "serial.ttyUSB1"))
	says("other", "3 of /dev/ttyUSB1\nls: /dev/serial/by-id: No such file or directory")
	amounts("1,0,0,1,")
	waits("named")
	s.Must("delete", "pod", "any", "--grace-period=0")
	says("named", "3 of /dev/ttyUSB0\nusb-FTDI_A5-if00-port0")

	b.unplug("ttyUSB0", "usb-FTDI_A5-if00-port0")
	amounts("0,,,1,")
	event := func(pod, reason string) {
		t.Helper()
		cluster.Eventually(t, time.Minute, func() string {
			return without(s.Must("get", "events", "--field-selector=involvedObject.name="+pod, "-o", "jsonpath={.items[*].reason}"), reason)
		})
	}
	event("named", "DeviceGone")
	if got := s.Must("get", "pod", "named", "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].restartCount}"); got != "Running 0" {
		t.Errorf("without its device it is %s", got)
	}
	b.plug("ttyUSB2", "usb-FTDI_A5-if00-port0", urandom, u.UID)
	event("named", "DeviceMoved")
	says("named", "3 of /dev/ttyUSB2\nusb-FTDI_A5-if00-port0")
	for pod, want := range map[string]string{"named": "Running 1", "other": "Running 0"} {
		if got := s.Must("get", "pod", pod, "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].restartCount}"); got != want {
			t.Errorf("%s: %s, want %s", pod, got, want)
		}
	}
}

// without is what a text has instead of words; "" if it has them.
func without(text, words string) string {
	if strings.Contains(text, words) {
		return ""
	}
	return "no " + words + ": " + text
}
