package doctor_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/nodeagent/doctor"
)

// files are a tree: what is in them by their path. A path that ends in / is a folder,
// and one in a bin folder a program.
type files map[string]string

// with is the tree with other files; "-" is none.
func (f files) with(more files) files {
	all := maps.Clone(f)
	for path, text := range more {
		if all[path] = text; text == "-" {
			delete(all, path)
		}
	}
	return all
}

// me is the user of the trees: this process's, by another name.
var me = &user.User{Username: "bramble", Uid: strconv.Itoa(os.Getuid()), Gid: strconv.Itoa(os.Getgid()), HomeDir: "/home/bramble"}

// A Pi 4 with Raspberry Pi OS as it is out of the box, and with Podman.
func plainPi() files {
	uid := me.Uid
	return files{
		"proc/1/comm": "systemd\n", "run/systemd/system/": "",
		"proc/cmdline":                                   "console=tty1 root=PARTUUID=1-02 rootfstype=ext4 fsck.repair=yes rootwait\n",
		"boot/firmware/cmdline.txt":                      "console=tty1 root=PARTUUID=1-02 rootfstype=ext4 fsck.repair=yes rootwait\n",
		"proc/device-tree/model":                         "Raspberry Pi 4 Model B Rev 1.4\x00",
		"proc/device-tree/system/linux,revision":         "\x00\xc0\x31\x14",
		"proc/cpuinfo":                                   "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd08\n",
		"proc/cgroups":                                   "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t0\t1\t1\nmemory\t0\t1\t0\n",
		"proc/self/cgroup":                               "0::/user.slice/user-" + uid + ".slice/session-1.scope\n",
		"proc/self/uid_map":                              "         0          0 4294967295\n",
		"proc/swaps":                                     "Filename\tType\tSize\tUsed\tPriority\n/var/swap file 524284 0 -2\n",
		"proc/uptime":                                    "100.00 300.00\n",
		"proc/modules":                                   "ipv6 1 0 - Live 0x0\n",
		"proc/sys/kernel/osrelease":                      "6.12.47+rpt-rpi-v8\n",
		"proc/sys/user/max_user_namespaces":              "3600\n",
		"proc/sys/kernel/unprivileged_userns_clone":      "1\n",
		"proc/sys/net/ipv4/ip_unprivileged_port_start":   "1024\n",
		"lib/modules/6.12.47+rpt-rpi-v8/modules.builtin": "kernel/drivers/net/tun.ko\n",
		"lib/modules/6.12.47+rpt-rpi-v8/modules.dep": "kernel/net/netfilter/nf_tables.ko.xz:\nkernel/net/netfilter/nft_chain_nat.ko.xz:\n" +
			"kernel/net/netfilter/nft_masq.ko.xz:\nkernel/net/bridge/bridge.ko.xz:\nkernel/drivers/net/veth.ko.xz:\n",
		"sys/fs/cgroup/cgroup.controllers": "cpuset cpu io pids\n",
		"sys/fs/cgroup/user.slice/user-" + uid + ".slice/user@" + uid + ".service/cgroup.controllers": "pids\n",
		"sys/class/thermal/thermal_zone0/type":                                                        "cpu-thermal\n", "sys/class/thermal/thermal_zone0/temp": "48200\n",
		"vcgencmd/get_throttled": "throttled=0x0\n",
		"etc/subuid":             "pi:100000:65536\nbramble:165536:65536\n", "etc/subgid": "pi:100000:65536\nbramble:165536:65536\n",
		"etc/group": "root:x:0:\nvideo:x:44:\n", "dev/net/tun": "",
		"run/user/" + uid + "/bus": "", "var/lib/bramble/agent/": "",
		"usr/bin/newuidmap": "setuid", "usr/bin/newgidmap": "setuid", "usr/bin/nsenter": "", "usr/bin/conmon": "",
		"usr/bin/podman": "", "usr/bin/crun": "", "usr/bin/pasta": "",
	}
}

// goodPi is the same after all that the doctor says of it was done.
func goodPi() files {
	uid := me.Uid
	return plainPi().with(files{
		"proc/cmdline":                     "console=tty1 rootwait cgroup_enable=cpuset cgroup_enable=memory cgroup_memory=1 psi=1\n",
		"proc/cgroups":                     "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t0\t39\t1\n",
		"sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
		"sys/fs/cgroup/user.slice/user-" + uid + ".slice/user@" + uid + ".service/cgroup.controllers": "cpuset cpu io memory pids\n",
		"proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", "proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n/dev/zram0 partition 1 0 100\n",
		"sys/class/rtc/rtc0/name": "rpi-rtc soc:rpi_rtc\n", "var/lib/systemd/linger/bramble": "",
		"proc/sys/net/ipv4/ip_unprivileged_port_start": "0\n",
	})
}

// ubuntu has AppArmor's restriction, and no profile for Podman.
func ubuntu() files {
	return goodPi().with(files{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n", "proc/sys/kernel/unprivileged_userns_clone": "1\n"})
}

// hybrid is a machine with both versions of cgroups, and without systemd or a user's
// runtime directory.
func hybrid() files {
	uid := me.Uid
	return goodPi().with(files{
		"proc/1/comm": "init\n", "run/systemd/system/": "-", "run/user/" + uid + "/bus": "-", "run/user/": "", "boot/firmware/cmdline.txt": "-",
		"sys/fs/cgroup/cgroup.controllers": "-", "sys/fs/cgroup/unified/cgroup.controllers": "cpu\n", "var/lib/systemd/linger/bramble": "-",
		"sys/fs/cgroup/user.slice/user-" + uid + ".slice/user@" + uid + ".service/cgroup.controllers": "-",
		"vcgencmd/get_throttled": "-", "proc/device-tree/system/linux,revision": "-", "proc/device-tree/model": "-",
		"sys/class/thermal/thermal_zone0/temp": "-", "sys/class/thermal/thermal_zone0/type": "-",
	})
}

func (f files) write(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range f {
		to, mode := filepath.Join(root, path), os.FileMode(0o644)
		dir := filepath.Dir(to)
		if strings.HasSuffix(path, "/") {
			dir = to
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if dir == to {
			continue
		}
		if strings.Contains(path, "bin/") {
			mode = 0o755
		}
		if text == "setuid" {
			mode |= os.ModeSetuid
		}
		if path == "dev/net/tun" {
			mode = 0o666
		}
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(to, mode); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// podman is a Run whose Podman has containers made by a runtime; "" of it fails.
func podman(version, runtime string) func(context.Context, string, ...string) (string, error) {
	return func(_ context.Context, path string, args ...string) (string, error) {
		switch name := filepath.Base(path); {
		case args[0] == "--version" && name == "podman":
			return "podman version " + version + "\n", nil
		case args[0] == "--version":
			return name + " version 1.0\nmore\n", nil
		case runtime == "":
			return "", errors.New("exit status 125: Error: cannot setup namespace")
		}
		return `{"host":{"security":{"rootless":true},"ociRuntime":{"name":"` + runtime + `"}},"store":{"graphDriverName":"overlay"}}`, nil
	}
}

// look is what is found in a tree.
func look(t *testing.T, f files, change func(*doctor.Place)) doctor.Facts {
	t.Helper()
	p := doctor.Place{
		Root: f.write(t), User: me, Self: true, StateDir: "/var/lib/bramble/agent", Path: []string{"/usr/bin"}, Run: podman("5.4.2", "crun"),
	}
	if change != nil {
		change(&p)
	}
	root := p.Root
	if p.BoardRoot != "" {
		root = p.BoardRoot
	}
	board := hw.Open(hw.Config{Root: root})
	defer board.Close()
	facts := p.Look(t.Context(), board.Sample(t.Context()))
	facts.State.Size, facts.State.Free, facts.State.Inodes, facts.State.InodesFree = 30e9, 20e9, 1000, 900 // of this machine's they are others
	facts.Board.Identity.PageSize = 4096
	facts.Board.Mounts = nil
	return facts
}
