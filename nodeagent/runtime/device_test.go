package runtime_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/runtime"
	"bramble.dev/bramble/test/cluster"
)

// TestContainerOpensItsDevices has a container open nodes of /dev/zero: one by its
// list of rights and one by its mode; not one that only a group of its user may open.
func TestContainerOpensItsDevices(t *testing.T) {
	t.Parallel()
	n := emptyNode(t)
	const adm = 4
	n.Groups = []uint32{adm} // Podman is in it, the container is not
	n.StartPodman(t)
	dev := filepath.Join(n.Home, "dev")
	n.mkdir(t, dev)
	node := func(name string) string {
		t.Helper()
		path := filepath.Join(dev, name)
		cluster.MakeNode(t, path, 1, 5)
		return path
	}
	listed, open, group, shut := node("listed"), node("iio:device0"), node("group"), node("shut")
	cluster.GiveNode(t, listed, n.UID)
	if err := os.Chmod(open, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(group, 0, adm); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(group, 0o660); err != nil {
		t.Fatal(err)
	}
	devices := []container.Device{
		{Resource: "edge.bramble.dev/x", Key: "x.listed", Class: "x", Number: "1:5", Nodes: []container.Node{{Source: listed, Target: "/dev/listed"}, {Source: listed, Target: "/dev/by-id/of it"}}},
		{Resource: "edge.bramble.dev/x", Key: "x.open", Nodes: []container.Node{{Source: open, Target: "/dev/iio:device0"}}},
		{Resource: "edge.bramble.dev/x", Key: "x.group", Nodes: []container.Node{{Source: group, Target: "/dev/group"}}},
		{Resource: "edge.bramble.dev/x", Key: "x.shut", Nodes: []container.Node{{Source: shut, Target: "/dev/shut"}}},
	}
	spec := shell(n.makePod(t, "u1"), `for d in listed "by-id/of it" iio:device0 group shut; do
		if [ "$(head -c 3 "/dev/$d" 2>/dev/null | wc -c)" = 3 ]; then echo "$d opens"; else echo "$d is shut"; fi; done; echo x >/dev/listed && echo written`)
	spec.Devices = devices
	id := n.run(t, spec)
	if s := n.awaitExit(t, "u1"); s.ExitCode != 0 || !cmp.Equal(s.Devices, devices) {
		t.Errorf("it ended with %d and has %+v", s.ExitCode, s.Devices)
	}
	var said bytes.Buffer
	if err := n.Logs(t.Context(), id, runtime.LogOptions{Tail: -1}, &said); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{"listed opens", "by-id/of it opens", "iio:device0 opens", "group is shut", "shut is shut", "written", ""}, "\n")
	if got := said.String(); got != want {
		t.Errorf("it said %q, want %q", got, want)
	}
}
