package runtime_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/runtime"
)

// TestContainerHasWhatItsSpecSays asks the container itself.
func TestContainerHasWhatItsSpecSays(t *testing.T) {
	t.Parallel()
	n := emptyNode(t)
	netns := filepath.Join(n.RuntimeDir, "netns-test")
	if out, err := n.Podman(t.Context(), "unshare", "sh", "-c", "touch "+netns+" && unshare --net="+netns+" ip link set lo up"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n.StartPodman(t)
	hosts := filepath.Join(n.Home, "hosts")
	volume := filepath.Join(n.Home, "volume")
	n.mkdir(t, volume)
	for _, path := range []string{hosts, volume + "/file"} {
		if err := os.WriteFile(path, []byte("10.9.8.7\tpeer\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, n.UID, n.GID); err != nil {
			t.Fatal(err)
		}
	}
	spec := n.makePod(t, "u1")
	spec.Command = []string{"sh", "-c"}
	spec.Args = []string{`hostname; pwd; echo "$GREETING"; cat /etc/hosts; grep -v '^#' /etc/resolv.conf; cat /ro/file; (echo x >/ro/file) 2>&1
		echo y >/rw/file; df -P /tmpfs | tail -n 1 | cut -d" " -f1; ls /sys/class/net; env | grep -i proxy; echo end`}
	spec.Env = []container.Env{{Name: "GREETING", Value: "hello $HOME"}}
	spec.WorkingDir = "/made/for/it"
	spec.NetNS = netns
	spec.DNSServers, spec.DNSSearches, spec.DNSOptions = []string{"10.1.2.3"}, []string{"a.example", "b.example"}, []string{"ndots:5"}
	spec.Hosts = hosts
	spec.MemoryLimitBytes, spec.CPUQuotaMilli, spec.CPUSharesMilli = 64<<20, 500, 100
	spec.Mounts = []container.Mount{
		{Source: volume, Target: "/ro", ReadOnly: true}, {Source: volume, Target: "/rw"}, {Target: "/tmpfs", TmpfsBytes: 1 << 20},
	}
	id := n.run(t, spec)
	if s := n.awaitExit(t, "u1"); s.ExitCode != 0 {
		t.Errorf("it ended with %d", s.ExitCode)
	}
	var said bytes.Buffer
	if err := n.Logs(t.Context(), id, runtime.LogOptions{Tail: -1}, &said); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"web-1", "/made/for/it", "hello $HOME", "10.9.8.7\tpeer",
		"search a.example b.example", "nameserver 10.1.2.3", "options ndots:5", "10.9.8.7\tpeer",
		"sh: can't create /ro/file: Read-only file system", "tmpfs", "lo", "end", "",
	}, "\n")
	if got := said.String(); got != want {
		t.Errorf("the container said\n%s\nwant\n%s", got, want)
	}
	if data, _ := os.ReadFile(volume + "/file"); string(data) != "y\n" {
		t.Errorf("the volume has %q", data)
	}
}
