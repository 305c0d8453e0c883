package device_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/device"
)

var open = hw.Reading[bool]{Value: true, Source: "test"}

// board has two adapters, of which one has a serial number, an expander's chip of
// lines, and what no container gets.
func board() []hw.Device {
	return []hw.Device{
		{Class: hw.Audio, Name: "card0", Path: "/dev/snd/controlC0", Number: "116:0", More: []string{"/dev/snd/pcmC0D0p"}, Stable: "Headphones", Access: open},
		{Class: hw.GPIO, Name: "gpiochip0", Path: "/dev/gpiochip0", Number: "254:0", Label: "pinctrl-rp1", Access: open},
		{Class: hw.GPIO, Name: "gpiochip10", Path: "/dev/gpiochip10", Number: "254:10", Label: "brcm", Access: hw.Reading[bool]{Source: "test"}},
		{Class: hw.NPU, Name: "1-1", Path: "/dev/bus/usb/001/004", Number: "189:3", Label: "Coral USB Accelerator", Access: open},
		{Class: hw.NPU, Name: "hailo0", Path: "/dev/hailo0", Number: "235:0", Label: "hailo", Access: open},
		{Class: hw.Serial, Name: "ttyUSB0", Path: "/dev/ttyUSB0", Number: "188:0", Stable: "/dev/serial/by-id/usb-FTDI_A5-if00-port0", Access: open},
		{Class: hw.Serial, Name: "ttyUSB1", Path: "/dev/ttyUSB1", Number: "188:1", Access: open},
		{Class: hw.USB, Name: "1-1", Path: "/dev/bus/usb/001/004", Number: "189:3", Access: open},
		{Class: hw.USB, Name: "usb1", Path: "/dev/bus/usb/001/001", Number: "189:0", Type: "09", Access: open},
		{Class: hw.Bluetooth, Name: "hci0"},
	}
}

// pod has a container main that asks for devices, by name=count.
func pod(uid string, asked ...string) (*corev1.Pod, *corev1.Container) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Spec: corev1.PodSpec{Containers: []corev1.Container{container1("main", asked...)}}}
	return p, &p.Spec.Containers[0]
}

func container1(name string, asked ...string) corev1.Container {
	limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}
	for _, a := range asked {
		name, count, _ := strings.Cut(a, "=")
		limits[corev1.ResourceName(device.Domain+name)] = resource.MustParse(count)
	}
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Limits: limits}}
}

func loaded(t *testing.T, pods ...container.Pod) *device.Table {
	t.Helper()
	table := device.New("")
	if _, _, known := table.Resources(); known {
		t.Error("something is known before it was loaded")
	}
	table.Load(board(), pods)
	return table
}

// give has a pod given what it asks for, and returns the first nodes; "" if refused.
func give(t *testing.T, table *device.Table, p *corev1.Pod, c *corev1.Container) string {
	t.Helper()
	devices, err := table.Allocate(t.Context(), p, c)
	if err != nil {
		if !errors.Is(err, device.ErrUnavailable) {
			t.Fatal(err)
		}
		return ""
	}
	return nodes(devices)
}

func nodes(devices []container.Device) string {
	var all []string
	for _, d := range devices {
		all = append(all, strings.TrimPrefix(d.Nodes[0].Target, "/dev/"))
	}
	return strings.Join(all, " ")
}

// amounts are the resources with "allocatable/capacity".
func amounts(t *testing.T, table *device.Table) map[string]string {
	t.Helper()
	capacity, allocatable, known := table.Resources()
	if !known || len(capacity) != len(allocatable) {
		t.Fatalf("%v, %v, %v", capacity, allocatable, known)
	}
	all := map[string]string{}
	for name, n := range capacity {
		if errs := validation.IsQualifiedName(string(name)); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
		all[strings.TrimPrefix(string(name), device.Domain)] = resource.NewQuantity(allocatable[name], resource.DecimalSI).String() + "/" +
			resource.NewQuantity(n, resource.DecimalSI).String()
	}
	return all
}

func TestResources(t *testing.T) {
	table := loaded(t)
	want := map[string]string{
		"audio": "1/1", "audio.card0": "1/1", "audio.Headphones": "1/1",
		"gpio": "1/1", "gpio.gpiochip0": "1/1", "gpio.pinctrl-rp1": "1/1",
		"npu": "2/2", "coral": "1/1", "npu.1-1": "1/1", "usb.1-1": "1/1", "hailo": "1/1", "npu.hailo0": "1/1",
		"serial": "2/2", "serial.ttyUSB0": "1/1", "serial.ttyUSB1": "1/1", "serial.usb-FTDI_A5-if00-port0": "1/1",
	}
	if diff := cmp.Diff(want, amounts(t, table)); diff != "" {
		t.Error(diff)
	}
	give(t, table, first(pod("a", "serial.ttyUSB1=1")), second(pod("a", "serial.ttyUSB1=1")))
	p, c := pod("b", "coral=1")
	give(t, table, p, c)
	want["serial"], want["npu"], want["npu.1-1"], want["usb.1-1"] = "1/2", "1/2", "0/1", "0/1"
	if diff := cmp.Diff(want, amounts(t, table)); diff != "" {
		t.Errorf("what one has by name, another could have by class: %s", diff)
	}
	table.Set(nil)
	if got := amounts(t, table); len(got) != 0 {
		t.Errorf("all was unplugged: %v", got)
	}
}

func first(p *corev1.Pod, _ *corev1.Container) *corev1.Pod        { return p }
func second(_ *corev1.Pod, c *corev1.Container) *corev1.Container { return c }

func TestNothingIsGivenTwice(t *testing.T) {
	table := loaded(t)
	for _, step := range []struct{ uid, asked, want string }{
		{"a", "serial=1", "ttyUSB0"},
		{"a", "serial=1", "ttyUSB0"}, // made anew
		{"b", "serial.usb-FTDI_A5-if00-port0=1", ""},
		{"b", "serial.ttyUSB0=1", ""},
		{"b", "serial=2", ""},
		{"b", "serial.ttyUSB1=1", "ttyUSB1"},
		{"c", "serial=1", ""},
		{"-a", "", ""},
		{"c", "serial=1", "ttyUSB0"},
		{"d", "audio=1", "snd/controlC0"},
		{"e", "usb.1-1=1", "bus/usb/001/004"},
		{"f", "coral=1", ""},
		{"f", "npu=1", "hailo0"},
		{"g", "gpio.gpiochip10=1", ""}, // not for containers
		{"g", "nothing=1", ""},
		{"g", "gpio=0", ""},
	} {
		if uid, freed := strings.CutPrefix(step.uid, "-"); freed {
			if !table.Release(uid) || table.Release(uid) {
				t.Errorf("%s was not released once", uid)
			}
			continue
		}
		p, c := pod(step.uid, step.asked)
		if got := give(t, table, p, c); got != step.want {
			t.Errorf("%s asks for %s and gets %q, want %q", step.uid, step.asked, got, step.want)
		}
	}
	p, c := pod("h", "serial=1", "serial.ttyUSB0=1")
	table.Release("b")
	table.Release("c")
	if got := give(t, table, p, c); got != "ttyUSB0 ttyUSB1" {
		t.Errorf("by name and by class: %q", got)
	}
	p, c = pod("i", "serial=1")
	_, err := table.Allocate(t.Context(), p, c)
	if err == nil || !strings.Contains(err.Error(), "of edge.bramble.dev/serial it has 2, and 2 of them given") {
		t.Errorf("it says %v", err)
	}
}

// TestARestartKeepsWhatIsGiven loads a table from what containers say.
func TestARestartKeepsWhatIsGiven(t *testing.T) {
	p, c := pod("a", "serial=1")
	before := loaded(t)
	give(t, before, first(pod("x", "serial=1")), second(pod("x", "serial=1")))
	devices, err := before.Allocate(t.Context(), p, c)
	if err != nil || nodes(devices) != "ttyUSB1" {
		t.Fatalf("%v, %v", devices, err)
	}
	want := []container.Node{{Source: "/dev/ttyUSB1", Target: "/dev/ttyUSB1"}}
	if diff := cmp.Diff(want, devices[0].Nodes); diff != "" {
		t.Error(diff)
	}
	table := loaded(t, container.Pod{UID: "a", Containers: []container.State{
		{Name: "main", Restarts: 1, Devices: devices}, {Name: "main", Devices: []container.Device{{Resource: "edge.bramble.dev/serial", Key: "edge.bramble.dev/serial.ttyUSB0"}}},
	}})
	other, o := pod("b", "serial.ttyUSB1=1")
	if got := give(t, table, other, o); got != "" {
		t.Errorf("another gets %s", got)
	}
	if got := give(t, table, p, c); got != "ttyUSB1" {
		t.Errorf("its owner gets %q", got)
	}
}

// TestInitContainersShare: they do not run when the others do, but sidecars do.
func TestInitContainersShare(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	p, _ := pod("a", "serial.ttyUSB0=1")
	p.Spec.InitContainers = []corev1.Container{container1("one", "serial.ttyUSB0=1"), container1("side", "serial.ttyUSB1=1"), container1("two", "serial.ttyUSB0=1"), container1("greedy", "serial=2")}
	p.Spec.InitContainers[1].RestartPolicy = &always
	table := loaded(t)
	for _, c := range []struct {
		spec *corev1.Container
		want string
	}{
		{&p.Spec.InitContainers[0], "ttyUSB0"}, {&p.Spec.InitContainers[1], "ttyUSB1"}, {&p.Spec.InitContainers[2], "ttyUSB0"},
		{&p.Spec.InitContainers[3], ""}, {&p.Spec.Containers[0], "ttyUSB0"}, {&p.Spec.InitContainers[0], "ttyUSB0"},
	} {
		if got := give(t, table, p, c.spec); got != c.want {
			t.Errorf("%s gets %q, want %q", c.spec.Name, got, c.want)
		}
	}
}

func TestDevicesMove(t *testing.T) {
	table := loaded(t)
	p, c := pod("a", "serial.usb-FTDI_A5-if00-port0=1", "audio=1")
	devices, err := table.Allocate(t.Context(), p, c)
	if err != nil {
		t.Fatal(err)
	}
	nodesOf := devices[0].Nodes
	want := []container.Node{{Source: "/dev/ttyUSB0", Target: "/dev/ttyUSB0"}, {Source: "/dev/ttyUSB0", Target: "/dev/serial/by-id/usb-FTDI_A5-if00-port0"}}
	if diff := cmp.Diff(want, nodesOf); diff != "" {
		t.Error(diff)
	}
	look := func(what, gone, moved string, nudged ...string) {
		t.Helper()
		g, m := table.Look(devices)
		if nodes(g) != gone || nodes(m) != moved {
			t.Errorf("%s: gone %q, moved %q", what, nodes(g), nodes(m))
		}
	}
	now := board()
	look("at first", "", "")
	if got := table.Set(now[:5]); !cmp.Equal(got, []string{"a"}) {
		t.Errorf("of a lost device are told %v", got)
	}
	look("unplugged", "ttyUSB0", "")
	if got := table.Set(now); !cmp.Equal(got, []string{"a"}) {
		t.Errorf("of a device that came back are told %v", got)
	}
	look("as it was", "", "")
	now[5].Name, now[5].Path, now[5].Number = "ttyUSB2", "/dev/ttyUSB2", "188:2"
	table.Set(now)
	look("at another node", "", "ttyUSB0")
	now[5].Name, now[5].Path, now[0].Number = "ttyUSB0", "/dev/ttyUSB0", "116:9"
	table.Set(now)
	look("of another number", "", "ttyUSB0 snd/controlC0")
	if got := give(t, table, p, c); got != "ttyUSB0 snd/controlC0" {
		t.Errorf("made anew it gets %q", got)
	}
	if got := table.Set(now); len(got) != 0 {
		t.Errorf("of nothing are told %v", got)
	}
}

// TestTwinsAreTwo holds that devices of one maker, without serial numbers, are told
// from each other by the kernel's names.
func TestTwinsAreTwo(t *testing.T) {
	table := device.New("/root/")
	twin := func(name, number string) hw.Device {
		return hw.Device{Class: hw.USB, Name: name, Path: "/dev/bus/usb/" + name, Number: number, Stable: "1:2:0", Access: open}
	}
	table.Load([]hw.Device{twin("1-1", "189:1"), twin("1-2", "189:2")}, nil)
	p, c := pod("a", "usb.1-2-0=1")
	q, d := pod("b", "usb.1-2-0=1")
	if got := give(t, table, p, c) + ", " + give(t, table, q, d); got != "bus/usb/1-1, bus/usb/1-2" {
		t.Errorf("they get %s", got)
	}
	given, _ := table.Allocate(t.Context(), q, d)
	unplugged, _ := table.Allocate(t.Context(), p, c)
	table.Set([]hw.Device{twin("1-2", "189:2")}) // it is the only one now, and could be called by its number
	if gone, moved := table.Look(given); len(gone)+len(moved) > 0 {
		t.Errorf("the other twin went: %v, %v", gone, moved)
	}
	if gone, moved := table.Look(unplugged); len(gone) != 1 || len(moved) > 0 {
		t.Errorf("the other twin passes for the one that is unplugged: %v, %v", gone, moved)
	}
	if given[0].Nodes[0].Source != "/root/dev/bus/usb/1-2" {
		t.Errorf("it is at %+v", given[0].Nodes)
	}
}

// TestAllocateWaits for the table to be loaded, not for ever.
func TestAllocateWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := device.New("")
		p, c := pod("a", "serial=1")
		if got := give(t, table, p, c); got != "" {
			t.Errorf("it gets %s of nothing", got)
		}
		result := make(chan string)
		go func() { result <- give(t, table, p, c) }()
		synctest.Wait()
		table.Load(board(), nil)
		if got := <-result; got != "ttyUSB0" {
			t.Errorf("it gets %q", got)
		}
	})
}
