package doctor_test

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/nodeagent/doctor"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestWholeBoards compares all that is found on a board with testdata. Of the good one
// nothing is found.
func TestWholeBoards(t *testing.T) {
	for name, tree := range map[string]files{"good-pi": goodPi(), "plain-pi": plainPi(), "ubuntu": ubuntu(), "hybrid": hybrid()} {
		all := doctor.Diagnose(look(t, tree, nil))
		var text strings.Builder
		for _, f := range all {
			fmt.Fprintf(&text, "%s %s: %s\n", f.Level, f.Check, f.Message)
			if f.Fix != "" {
				fmt.Fprintf(&text, "    %s\n", f.Fix)
			}
			if name == "good-pi" && f.Level > doctor.Unknown {
				t.Errorf("of a good board: %+v", f)
			}
		}
		got := strings.NewReplacer("user@"+me.Uid, "user@UID", "/run/user/"+me.Uid, "/run/user/UID", "-o "+me.Uid+" -g "+me.Gid, "-o UID -g GID").Replace(text.String())
		path := filepath.Join("testdata", name+".golden")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// finding is what Diagnose says of a check; of level -1 if it says nothing.
func finding(all []doctor.Finding, check string) doctor.Finding {
	for _, f := range all {
		if f.Check == check {
			return f
		}
	}
	return doctor.Finding{Level: -1}
}

// board is a reading of a value.
func reading[T any](v T, err error) hw.Reading[T] {
	return hw.Reading[T]{Value: v, Source: "test", Err: err}
}

// TestEachFinding changes one thing of a good board: that is found and named, with the
// line that changes it, and not found on the good one.
func TestEachFinding(t *testing.T) {
	uid := me.Uid
	manager := "sys/fs/cgroup/user.slice/user-" + uid + ".slice/user@" + uid + ".service/cgroup.controllers"
	without := func(path string) files { return files{path: "-"} }
	for _, c := range []struct {
		name    string
		tree    files
		place   func(*doctor.Place)
		facts   func(*doctor.Facts)
		check   string
		level   doctor.Level
		message string
		fix     string
		stops   bool // by another finding
	}{
		{name: "memory off", tree: files{"sys/fs/cgroup/cgroup.controllers": "cpu pids\n", "proc/cmdline": "rootwait cgroup_memory=1\n"},
			check: "MemoryCgroupOff", level: doctor.Warning, fix: "sudo sed -i '1s/$/ cgroup_enable=cpuset cgroup_enable=memory/' /boot/firmware/cmdline.txt && sudo reboot"},
		{name: "memory off, old folder", tree: files{"sys/fs/cgroup/cgroup.controllers": "cpu\n", "proc/cmdline": "", "boot/firmware/cmdline.txt": "-", "boot/cmdline.txt": "rootwait\n"},
			check: "MemoryCgroupOff", level: doctor.Warning, fix: "' /boot/cmdline.txt"},
		{name: "memory off until the boot", tree: files{"sys/fs/cgroup/cgroup.controllers": "cpu\n", "proc/cmdline": "", "boot/firmware/cmdline.txt": "cgroup_memory=1 cgroup_enable=memory cgroup_enable=cpuset\n"},
			check: "MemoryCgroupOff", level: doctor.Warning, fix: "sudo reboot"},
		{name: "memory off, asked for", tree: files{"sys/fs/cgroup/cgroup.controllers": "cpu\n"}, check: "MemoryCgroupOff", level: doctor.Warning, message: "another kernel"},
		{name: "recorded board", place: func(p *doctor.Place) { p.BoardRoot = "../../hw/testdata/cases/19-cgroup-memory-off/root" },
			check: "MemoryCgroupOff", level: doctor.Warning, message: "though its command line asks for it"},
		{name: "not unified", tree: files{"sys/fs/cgroup/cgroup.controllers": "-", "proc/cmdline": "systemd.unified_cgroup_hierarchy=0\n"},
			check: "CgroupsNotUnified", level: doctor.Warning, fix: "take systemd.unified_cgroup_hierarchy=0 out"},
		{name: "not delegated", tree: files{manager: "memory pids\n"}, check: "ResourceLimitsUnenforced", level: doctor.Warning, message: "for: cpu;", fix: "user@.service.d/delegate.conf"},
		{name: "no manager", tree: without(manager), check: "ResourceLimitsUnenforced", level: doctor.Unknown, fix: "enable-linger"},
		{name: "no lingering", tree: without("var/lib/systemd/linger/bramble"), check: "LingerOff", level: doctor.Warning, fix: "sudo loginctl enable-linger bramble"},
		{name: "no runtime dir", tree: files{"run/user/" + uid + "/bus": "-", "var/lib/systemd/linger/bramble": "-"}, check: "RuntimeDirUnusable", level: doctor.Fatal, fix: "enable-linger bramble"},
		{name: "runtime dir of another", place: func(p *doctor.Place) {
			other := *me
			other.Uid = "4242"
			p.User, p.RuntimeDir = &other, "/run/user/"+uid
		},
			check: "RuntimeDirUnusable", level: doctor.Fatal, message: "belongs to the user with number " + uid},
		{name: "no bus", tree: files{"run/user/" + uid + "/bus": "-", "run/user/" + uid + "/": ""}, check: "UserBusMissing", level: doctor.Warning, fix: "dbus-user-session"},
		{name: "no newuidmap", tree: without("usr/bin/newuidmap"), check: "IDMapToolsUnusable", level: doctor.Fatal, message: "newuidmap", fix: "sudo apt install uidmap"},
		{name: "newgidmap is plain", tree: files{"usr/bin/newgidmap": ""}, check: "IDMapToolsUnusable", level: doctor.Fatal, fix: "sudo chmod u+s /usr/bin/newgidmap"},
		{name: "namespaces for root", tree: files{"proc/sys/kernel/unprivileged_userns_clone": "0\n"}, check: "UserNamespacesForbidden", level: doctor.Fatal, fix: "unprivileged_userns_clone=1"},
		{name: "no namespaces", tree: files{"proc/sys/user/max_user_namespaces": "0\n"}, check: "UserNamespacesForbidden", level: doctor.Fatal, fix: "max_user_namespaces="},
		{name: "kernel without", tree: without("proc/sys/user/max_user_namespaces"), check: "UserNamespacesForbidden", level: doctor.Fatal, message: "CONFIG_USER_NS"},
		{name: "apparmor", tree: files{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"}, check: "UserNamespacesForbidden", level: doctor.Fatal, fix: "apparmor_restrict_unprivileged_userns=0"},
		{name: "apparmor with a profile", tree: files{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n", "etc/apparmor.d/podman": "profile"}, check: "UserNamespacesForbidden", level: doctor.Note},
		{name: "inside a namespace", tree: files{"proc/self/uid_map": "0 1000 1\n"}, check: "UserNamespacesForbidden", level: doctor.Fatal, message: "inside"},
		{name: "no podman", tree: without("usr/bin/podman"), check: "PodmanUnusable", level: doctor.Fatal, fix: "sudo apt install podman"},
		{name: "old podman", place: func(p *doctor.Place) { p.Run = podman("3.4.4", "crun") }, check: "PodmanUnusable", level: doctor.Fatal, message: "4.3"},
		{name: "podman fails", place: func(p *doctor.Place) { p.Run = podman("4.3.1", "") }, check: "PodmanUnusable", level: doctor.Fatal, message: "cannot setup namespace"},
		{name: "podman fails for another's sake", tree: files{"etc/subuid": "", "etc/subgid": ""}, place: func(p *doctor.Place) { p.Run = podman("4.3.1", "") }, check: "PodmanUnusable", level: doctor.Unknown, stops: true},
		{name: "podman of another", place: func(p *doctor.Place) { p.Self = false }, check: "PodmanUnusable", level: doctor.Unknown},
		{name: "layers are copied", facts: func(f *doctor.Facts) { f.Programs.Answers.Info.Store.GraphDriverName = "vfs" }, check: "ImagesCopied", level: doctor.Warning, fix: "storage.conf"},
		{name: "no runtime", tree: without("usr/bin/crun"), check: "OCIRuntimeUnusable", level: doctor.Fatal, fix: "sudo apt install crun"},
		{name: "no conmon", tree: without("usr/bin/conmon"), check: "ConmonMissing", level: doctor.Fatal, fix: "sudo apt install conmon"},
		{name: "no nsenter", tree: without("usr/bin/nsenter"), check: "NsenterMissing", level: doctor.Fatal, fix: "util-linux"},
		{name: "no way out", tree: without("usr/bin/pasta"), check: "WayOutMissing", level: doctor.Fatal, fix: "sudo apt install passt"},
		{name: "kernel was upgraded", tree: files{"proc/sys/kernel/osrelease": "6.12.1\n"}, check: "KernelModulesMissing", level: doctor.Fatal, message: "nf_tables", fix: "sudo reboot"},
		{name: "kernel without modules", tree: files{"lib/modules/6.12.47+rpt-rpi-v8/modules.dep": "kernel/net/bridge/bridge.ko:\n"}, check: "KernelModulesMissing", level: doctor.Fatal, message: "nf_tables, nft_chain_nat, nft_masq, veth"},
		{name: "kernel that says nothing", tree: files{"proc/sys/kernel/osrelease": "6.12.1\n", "proc/modules": "-"}, check: "KernelModulesMissing", level: doctor.Unknown},
		{name: "no tun", tree: without("dev/net/tun"), check: "TunUnusable", level: doctor.Fatal, fix: "modprobe tun"},
		{name: "clock not set", facts: func(f *doctor.Facts) { f.Board.Clock.Synchronized = reading(false, nil) }, check: "ClockUnsynced", level: doctor.Warning, fix: "timedatectl set-ntp true"},
		{name: "no RTC", tree: without("sys/class/rtc/rtc0/name"), check: "RTCMissing", level: doctor.Note},
		{name: "read-only", facts: func(f *doctor.Facts) { f.State.ReadOnly = true }, check: "ReadOnlyFilesystem", level: doctor.Fatal, fix: "sudo reboot"},
		{name: "not writable", facts: func(f *doctor.Facts) { f.State.Writable = false }, check: "StateDirUnusable", level: doctor.Fatal, fix: "sudo install -d -m 700"},
		{name: "little room", facts: func(f *doctor.Facts) { f.State.Free = 2.9e9 }, check: "DiskPressure", level: doctor.Warning, message: "2.9 GB of 30.0 GB", fix: "prune"},
		{name: "full", facts: func(f *doctor.Facts) { f.State.Free = 0 }, check: "DiskPressure", level: doctor.Fatal},
		{name: "few inodes", facts: func(f *doctor.Facts) { f.State.InodesFree = 49 }, check: "DiskPressure", level: doctor.Warning, message: "4 % of the inodes"},
		{name: "ext4 errors", facts: func(f *doctor.Facts) {
			f.Board.Mounts = []hw.Mount{{Path: "/", Device: "/dev/mmcblk0p2", Errors: reading(int64(3), nil)}}
		}, check: "FilesystemErrors", level: doctor.Warning, message: "/ (/dev/mmcblk0p2) 3"},
		{name: "worn", facts: func(f *doctor.Facts) {
			f.Board.Disks = []hw.Disk{{Name: "mmcblk0", Wear: reading(hw.Wear{UsedPercent: 90}, nil)}}
		}, check: "StorageWorn", level: doctor.Warning, message: "mmcblk0 has used 90 %"},
		{name: "slow", facts: func(f *doctor.Facts) {
			f.Latency = &doctor.Latency{Writes: 20, Slow: 2, Median: 80 * time.Millisecond, Worst: 1500 * time.Millisecond}
		}, check: "StorageSlow", level: doctor.Warning, message: "80.0 ms in the middle and 1500.0 ms at worst"},
		{name: "low now", tree: files{"vcgencmd/get_throttled": "throttled=0x50005\n"}, check: "UnderVoltage", level: doctor.Warning, message: "now"},
		{name: "low since boot", tree: files{"vcgencmd/get_throttled": "throttled=0x50000\n"}, check: "UnderVoltage", level: doctor.Warning, message: "since the boot"},
		{name: "held down", tree: files{"vcgencmd/get_throttled": "throttled=0x20002\n"}, check: "Throttled", level: doctor.Warning},
		{name: "was held down", tree: files{"vcgencmd/get_throttled": "throttled=0x20000\n"}, check: "Throttled", level: doctor.Note},
		{name: "hot", tree: files{"sys/class/thermal/thermal_zone0/temp": "78000\n"}, check: "Hot", level: doctor.Warning, message: "78.0 °C"},
		{name: "firmware for a group", facts: func(f *doctor.Facts) {
			f.Board.Throttle.Bits = reading(hw.ThrottleBits(0), fmt.Errorf("cannot open: %w", syscall.EACCES))
			f.Mailbox = doctor.Node{Path: "/dev/vcio_gencmd", Group: "video", ByIt: true}
		}, check: "FirmwareForbidden", level: doctor.Warning, fix: "sudo usermod -aG video bramble"},
		{name: "firmware for root", facts: func(f *doctor.Facts) {
			f.Board.Throttle.Bits = reading(hw.ThrottleBits(0), fmt.Errorf("cannot open: %w", syscall.EACCES))
			f.Mailbox = doctor.Node{Path: "/dev/vcio_gencmd", Group: "root"}
		}, check: "FirmwareForbidden", level: doctor.Warning, fix: `KERNEL=="vcio_gencmd", GROUP="video"`},
		{name: "firmware for another", place: func(p *doctor.Place) { p.Self = false }, check: "FirmwareForbidden", level: doctor.Unknown},
		{name: "devices of groups", facts: func(f *doctor.Facts) {
			f.Nodes = []doctor.Node{{Path: "/dev/gpiochip0", Group: "gpio", ByIt: true}, {Path: "/dev/i2c-1", Group: "i2c", ByIt: true}, {Path: "/dev/i2c-2", Group: "i2c", ByIt: true}}
		}, check: "DevicesForbidden", level: doctor.Note, message: "/dev/gpiochip0, /dev/i2c-1, /dev/i2c-2", fix: "sudo usermod -aG gpio,i2c bramble"},
		{name: "devices of root", facts: func(f *doctor.Facts) {
			f.Nodes = []doctor.Node{{Path: "/dev/ttyS0", Class: hw.Serial}, {Path: "/dev/ttyS1", Class: hw.Serial}, {Path: "/dev/bus/usb/001/002", Class: hw.USB}}
		}, check: "DevicesClosed", level: doctor.Note, fix: `printf '%s\n' 'KERNEL=="ttyS0|ttyS1", GROUP=`},
		{name: "no pressure", tree: files{"proc/pressure/memory": "-", "proc/cmdline": ""}, check: "PressureOff", level: doctor.Note, fix: "psi=1"},
		{name: "large pages", facts: func(f *doctor.Facts) { f.Board.Identity.PageSize, f.Board.Identity.SoC = 16384, "BCM2712" }, check: "LargePages", level: doctor.Note, fix: "kernel=kernel8.img"},
		{name: "32 bits", facts: func(f *doctor.Facts) { f.Board.Identity.Kernel, f.Board.Identity.Userland = "aarch64", "arm" }, check: "Userland32Bit", level: doctor.Note},
		{name: "swap", tree: files{"proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n/var/swap file 1 0 -2\n"}, check: "SwapOnDisk", level: doctor.Note, message: "/var/swap", fix: "dphys-swapfile"},
		{name: "low ports", tree: files{"proc/sys/net/ipv4/ip_unprivileged_port_start": "1024\n"}, check: "LowPortsClosed", level: doctor.Note, message: "below 1024"},
		{name: "no user", place: func(p *doctor.Place) { p.User, p.Self = nil, false }, check: "NodeUser", level: doctor.Unknown, fix: "useradd"},
		{name: "no server", facts: func(f *doctor.Facts) { f.Servers = []doctor.Server{{"pi:6443", errors.New("refused")}} }, check: "ServerUnreachable", level: doctor.Warning, message: "pi:6443: refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			facts := look(t, goodPi().with(c.tree), c.place)
			if c.facts != nil {
				c.facts(&facts)
			}
			all := doctor.Diagnose(facts)
			got := finding(all, c.check)
			if got.Level != c.level || !strings.Contains(got.Message, c.message) || !strings.Contains(got.Fix, c.fix) || got.Message == "" {
				t.Errorf("got %+v, want %v with %q and %q", got, c.level, c.message, c.fix)
			}
			if stops := c.level == doctor.Fatal || c.stops; doctor.Stops(all) != stops {
				t.Errorf("that something stops the node is %v, want %v: %+v", doctor.Stops(all), stops, all)
			}
			if strings.ContainsAny(got.Message+got.Fix, "\n") || strings.Contains(got.Message+got.Fix, "%!") {
				t.Errorf("not one line each: %+v", got)
			}
			seen := map[string]bool{}
			for _, f := range all {
				if seen[f.Check] {
					t.Errorf("%s twice: %+v", f.Check, all)
				}
				seen[f.Check] = true
			}
		})
	}
}

// TestSubordinateIDs: the finding names the file, and the line to add is of a range that
// nobody has.
func TestSubordinateIDs(t *testing.T) {
	u := &user.User{Username: "bramble", Uid: "1001"}
	const others = "pi:100000:65536\nbrambles:165536:65536\n"
	for _, c := range []struct {
		name, subuid, subgid, nsswitch string
		level                          doctor.Level
		message, fix                   string
	}{
		{name: "by name", subuid: others + "bramble:231072:65536\n", subgid: "bramble:231072:65536"},
		{name: "by id", subuid: "1001:100000:65536\n", subgid: "1001:100000:65536\n"},
		{name: "in two ranges", subuid: "bramble:100000:32768\nbramble:200000:32768\n", subgid: "1001:100000:65536\n"},
		{name: "no file", level: doctor.Fatal, message: "/etc/subuid and /etc/subgid", fix: "echo bramble:100000:65536 | sudo tee -a /etc/subuid /etc/subgid"},
		{name: "others only", subuid: others, subgid: others, level: doctor.Fatal, message: "subgid", fix: "bramble:231072:65536"},
		{name: "half", subuid: "bramble:100000:65536\n", level: doctor.Fatal, message: "in /etc/subgid", fix: "echo bramble:165536:65536 | sudo tee -a /etc/subgid &&"},
		{name: "an empty range", subuid: "bramble:100000:0\n", subgid: "bramble:x:1\n", level: doctor.Fatal, message: "subuid", fix: "bramble:100000:65536"},
		{name: "few", subuid: "bramble:100000:65535\n", subgid: "bramble:100000:65536\n", level: doctor.Warning, message: "in /etc/subuid", fix: "echo bramble:165536:65536 | sudo tee -a /etc/subuid &&"},
		{name: "shared", subuid: "pi:100000:65536\nbramble:165535:65536\n", subgid: "bramble:165536:65536\n", level: doctor.Warning, message: "that pi has too", fix: "bramble:231072:65536"},
		{name: "side by side", subuid: "pi:100000:65536\nbramble:165536:65536\nann:231072:65536", subgid: "bramble:165536:65536\n"},
		{name: "from a directory", nsswitch: "passwd: files\nsubid: sss # LDAP\n"},
		{name: "from the files", nsswitch: "subid:\tfiles\n", level: doctor.Fatal, message: "subuid", fix: "podman system migrate"},
	} {
		tree := files{"etc/": ""}
		for name, text := range map[string]string{"etc/subuid": c.subuid, "etc/subgid": c.subgid, "etc/nsswitch.conf": c.nsswitch} {
			if text != "" {
				tree[name] = text
			}
		}
		got := doctor.Subordinate(tree.write(t), u)
		if got.Level != c.level || !strings.Contains(got.Message, c.message) || !strings.Contains(got.Fix, c.fix) || (got.Fix == "") != (c.level == doctor.Fine) {
			t.Errorf("%s: %+v, want %v with %q and %q", c.name, got, c.level, c.message, c.fix)
		}
	}
}

// TestNodesOfDevices: the group is that of the node, by its number, and root's is none
// to join.
func TestNodesOfDevices(t *testing.T) {
	tree := goodPi().with(files{"dev/gpiochip0": "", "dev/i2c-1": "", "dev/ttyS0": "", "dev/spidev0.0": "", "dev/vcio": "", "etc/group": "root:x:0:\nvideo:x:44:\ngpio:x:993:\n"})
	p := doctor.Place{Root: tree.write(t), User: me, Self: true}
	for name, gid := range map[string]int{"gpiochip0": 993, "i2c-1": 994, "ttyS0": 0, "spidev0.0": 993, "vcio": 44} {
		path := filepath.Join(p.Root, "dev", name)
		if err := errors.Join(os.Chown(path, 0, gid), os.Chmod(path, 0o660)); err != nil {
			t.Fatalf("this test needs root: %v", err)
		}
	}
	may := func(name string, is bool) hw.Device { return hw.Device{Path: "/dev/" + name, Access: reading(is, nil)} }
	facts := p.Look(t.Context(), hw.Snapshot{Devices: []hw.Device{may("gpiochip0", false), may("i2c-1", false), may("ttyS0", false), may("spidev0.0", true), {Name: "1-1"}}})
	want := []doctor.Node{{Path: "/dev/gpiochip0", Group: "gpio", ByIt: true}, {Path: "/dev/i2c-1", Group: "994", ByIt: true}, {Path: "/dev/ttyS0", Group: "root"}}
	if diff := cmp.Diff(want, facts.Nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if want := (doctor.Node{Path: "/dev/vcio", Group: "video", ByIt: true}); facts.Mailbox != want {
		t.Errorf("mailbox %+v, want %+v", facts.Mailbox, want)
	}
	if p.Self = false; p.Look(t.Context(), hw.Snapshot{Devices: []hw.Device{may("gpiochip0", false)}}).Nodes != nil {
		t.Error("what this process may is told of another user")
	}
}

// TestMeasureLeavesNothing: storage is measured in the nearest folder that is there, and
// nothing stays behind.
func TestMeasureLeavesNothing(t *testing.T) {
	facts := look(t, goodPi(), func(p *doctor.Place) { p.Measure, p.StateDir = true, "/var/lib/bramble/agent/not/yet" })
	l := facts.Latency
	if l == nil || l.Err != nil || l.Writes == 0 || l.Median <= 0 || l.Worst < l.Median || !strings.HasSuffix(facts.State.Dir, "/var/lib/bramble/agent") {
		t.Fatalf("measured %+v in %s", l, facts.State.Dir)
	}
	if left, err := os.ReadDir(facts.State.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if facts := look(t, goodPi(), nil); facts.Latency != nil {
		t.Error("written to without being asked")
	}
}

// TestServers: one that listens is reached, and one that does not is named.
func TestServers(t *testing.T) {
	here, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = here.Close() }()
	for _, c := range []struct {
		servers []string
		level   doctor.Level
	}{{nil, -1}, {[]string{here.Addr().String()}, doctor.Fine}, {[]string{"127.0.0.1:1"}, doctor.Warning}, {[]string{"127.0.0.1:1", here.Addr().String()}, doctor.Note}} {
		facts := look(t, goodPi(), func(p *doctor.Place) { p.Servers = c.servers })
		if got := finding(doctor.Diagnose(facts), "ServerUnreachable"); got.Level != c.level {
			t.Errorf("%v: %+v, want level %v", c.servers, got, c.level)
		}
	}
}

// TestSocketIsServed: who listens on Podman's socket is found.
func TestSocketIsServed(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "podman"), 0o700); err != nil {
		t.Fatal(err)
	}
	at := func(p *doctor.Place) {
		p.RuntimeDir = "/run/x"
		if err := os.Symlink(dir, filepath.Join(p.Root, "run/x")); err != nil {
			t.Fatal(err)
		}
	}
	if f := finding(doctor.Diagnose(look(t, goodPi(), at)), "PodmanUnserved"); !strings.Contains(f.Message, "nobody serves") {
		t.Errorf("before: %+v", f)
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "podman/podman.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	if f := finding(doctor.Diagnose(look(t, goodPi(), at)), "PodmanUnserved"); !strings.Contains(f.Message, "is served on /run/x/podman/podman.sock") {
		t.Errorf("while it is served: %+v", f)
	}
}
