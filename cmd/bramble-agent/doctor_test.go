package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"bramble.dev/bramble/nodeagent/doctor"
	"bramble.dev/bramble/test/cluster"
)

var update = flag.Bool("update", false, "write the golden files anew")

// asAgent in the environment has the test's program be the agent's.
const asAgent = "BRAMBLE_TEST_AS_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestFindingsInWords holds the text that people see.
func TestFindingsInWords(t *testing.T) {
	all := []doctor.Finding{
		{Check: "PodmanUnusable", Level: doctor.Fatal, Message: "Podman is not installed", Fix: "sudo apt install podman"},
		{Check: "UnderVoltage", Level: doctor.Warning, Message: "the supply was too low since the boot"},
		{Check: "RTCMissing", Level: doctor.Note, Message: "no clock runs without power"},
		{Check: "Hot", Level: doctor.Unknown, Message: "how hot the processor is: no sensor here says so"},
		{Check: "LingerOff", Level: doctor.Fine, Message: "user pi lingers"},
		{Check: "SwapOnDisk", Level: doctor.Fine, Message: "memory is not swapped"},
	}
	var text bytes.Buffer
	for _, some := range [][]doctor.Finding{all, all[1:], all[4:]} {
		if err := printFindings(&text, "Raspberry Pi 4 Model B Rev 1.4, user pi", some); err != nil {
			t.Fatal(err)
		}
		text.WriteString("--\n")
	}
	const path = "testdata/doctor.golden"
	if *update {
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := printFindings(refuser{}, "", all); err == nil {
		t.Error("what cannot be written is no error")
	}
}

type refuser struct{}

func (refuser) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// patient runs the real command as one user.
type patient struct {
	t       *testing.T
	command func(name string, args ...string) *exec.Cmd
	agent   string
}

// says runs it with JSON, and returns its findings by their checks, and its exit status.
func (p patient) says(args ...string) (map[string]doctor.Finding, int) {
	p.t.Helper()
	cmd := p.command(p.agent, append([]string{"doctor", "--json"}, args...)...)
	cmd.Env = append(cmd.Environ(), asAgent+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	var all []struct{ Check, Level, Message, Fix string }
	if err := json.Unmarshal(out, &all); err != nil {
		p.t.Fatalf("no JSON: %v: %s%s", err, out, &stderr)
	}
	levels := map[string]doctor.Level{}
	for l := doctor.Fine; l <= doctor.Fatal; l++ {
		levels[l.String()] = l
	}
	found := map[string]doctor.Finding{}
	for _, f := range all {
		found[f.Check] = doctor.Finding{Check: f.Check, Level: levels[f.Level], Message: f.Message, Fix: f.Fix}
		p.t.Logf("%s %s: %s [%s]", f.Level, f.Check, f.Message, f.Fix)
	}
	return found, cmd.ProcessState.ExitCode()
}

// may says whether a shell of the user finds something true.
func (p patient) may(test string) bool { return p.command("sh", "-c", test).Run() == nil }

// out is what a shell of the user prints.
func (p patient) out(command string) string {
	out, _ := p.command("sh", "-c", command).Output()
	return strings.TrimSpace(string(out))
}

// TestDoctorSaysWhatIsTrue runs the command on this machine, as root and as an ordinary
// user, and looks by other means whether what it says is so.
func TestDoctorSaysWhatIsTrue(t *testing.T) {
	u := cluster.ForTest(t)
	agent := filepath.Join(u.Home, "agent")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "cp", self, agent).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	own := patient{t, func(name string, args ...string) *exec.Cmd { return u.Command(t.Context(), name, args...) }, agent}
	root := patient{t, func(name string, args ...string) *exec.Cmd { return exec.CommandContext(t.Context(), name, args...) }, agent}

	t.Run("user", func(t *testing.T) {
		own.t = t
		found, status := own.says()
		checkMachine(t, own, found, status)
		want := func(check string, level doctor.Level, message string) {
			t.Helper()
			if f := found[check]; f.Level != level || !strings.Contains(f.Message, message) {
				t.Errorf("%+v, want %v with %q", f, level, message)
			}
		}
		want("SubordinateIDs", doctor.Fine, u.Name)
		want("RuntimeDirUnusable", doctor.Fine, u.RuntimeDir)
		want("PodmanUnusable", doctor.Fine, strings.TrimPrefix(own.out("podman --version"), "podman version "))
		want("PodmanUnusable", doctor.Fine, "by "+own.out("podman info --format '{{.Host.OCIRuntime.Name}}'"))
		want("PodmanUnserved", doctor.Fine, "nobody serves")
		if fine := found["UserNamespacesForbidden"].Level < doctor.Fatal; fine != own.may("unshare --user true") {
			t.Errorf("unshare disagrees with %+v", found["UserNamespacesForbidden"])
		}
		for _, check := range []string{"DevicesForbidden", "DevicesClosed"} {
			for word := range strings.FieldsSeq(strings.ReplaceAll(found[check].Message, ",", " ")) {
				if found[check].Level == doctor.Note && strings.HasPrefix(word, "/dev/") && own.may("test -r "+word+" -a -w "+word) {
					t.Errorf("the user may open %s: %+v", word, found[check])
				}
			}
		}
		if left := own.out("find ~ -name '.bramble-doctor*'"); left != "" {
			t.Errorf("left behind: %s", left)
		}
	})
	t.Run("user with crun", func(t *testing.T) {
		own.t = t
		if err := os.Remove(filepath.Join(u.Home, ".config/containers/containers.conf")); err != nil {
			t.Fatal(err)
		}
		found, status := own.says()
		hybrid := own.may("test -d /sys/fs/cgroup/unified") && own.out("podman info --format '{{.Host.OCIRuntime.Name}}'") == "crun"
		if stops := found["OCIRuntimeUnusable"].Level == doctor.Fatal; stops != hybrid || stops && status != 1 {
			t.Errorf("status %d, both versions of cgroups and crun: %v, but %+v", status, hybrid, found["OCIRuntimeUnusable"])
		}
	})
	t.Run("root", func(t *testing.T) {
		root.t = t
		found, status := root.says("--user", u.Name)
		checkMachine(t, root, found, status)
		if f := found["SubordinateIDs"]; f.Level != doctor.Fine || !strings.Contains(f.Message, u.Name) {
			t.Errorf("%+v", f)
		}
		if f := found["PodmanUnusable"]; f.Level != doctor.Unknown {
			t.Errorf("root cannot tell of the user's Podman: %+v", f)
		}
		if err := os.Remove(u.RuntimeDir); err != nil { // it is empty but for what Podman made
			_ = os.RemoveAll(u.RuntimeDir)
		}
		if found, status := root.says("--user", u.Name); found["RuntimeDirUnusable"].Level != doctor.Fatal || status != 1 {
			t.Errorf("without a runtime directory: %+v, status %d", found["RuntimeDirUnusable"], status)
		}
	})
	t.Run("recorded", func(t *testing.T) {
		root.t = t
		recorded, err := filepath.Abs("../../hw/testdata/cases/19-cgroup-memory-off/root")
		if err != nil {
			t.Fatal(err)
		}
		if found, _ := root.says("--hw-root", recorded); found["MemoryCgroupOff"].Level != doctor.Warning {
			t.Errorf("of a board that counts no memory: %+v", found["MemoryCgroupOff"])
		}
	})
}

// checkMachine looks whether it is true what is said of this machine.
func checkMachine(t *testing.T, p patient, found map[string]doctor.Finding, status int) {
	t.Helper()
	stops := 0
	for _, f := range found {
		if f.Level == doctor.Fatal {
			stops = 1
		}
	}
	if status != stops {
		t.Errorf("exit status %d, want %d", status, stops)
	}
	var cgroups unix.Statfs_t
	if err := unix.Statfs("/sys/fs/cgroup", &cgroups); err != nil {
		t.Fatal(err)
	}
	var clock unix.Timex
	state, err := unix.Adjtimex(&clock)
	if err != nil {
		t.Fatal(err)
	}
	for check, isFine := range map[string]bool{
		"CgroupsNotUnified":    cgroups.Type == unix.CGROUP2_SUPER_MAGIC,
		"MemoryCgroupOff":      p.may(`grep -qE '^memory.*1$' /proc/cgroups || grep -qw memory /sys/fs/cgroup/cgroup.controllers`),
		"ClockUnsynced":        state != unix.TIME_ERROR && clock.Status&unix.STA_UNSYNC == 0,
		"RTCMissing":           p.may("ls /sys/class/rtc/*/name"),
		"PressureOff":          p.may("cat /proc/pressure/memory"),
		"SwapOnDisk":           !p.may("grep -E '^/' /proc/swaps | grep -v zram"),
		"IDMapToolsUnusable":   p.may("test -u /usr/bin/newuidmap -a -u /usr/bin/newgidmap || getcap /usr/bin/newuidmap | grep -q cap_setuid"),
		"ConmonMissing":        p.may("command -v conmon"),
		"NsenterMissing":       p.may("command -v nsenter"),
		"WayOutMissing":        p.may("command -v pasta || command -v slirp4netns"),
		"TunUnusable":          p.may("test -r /dev/net/tun -a -w /dev/net/tun"),
		"LowPortsClosed":       p.may("test $(cat /proc/sys/net/ipv4/ip_unprivileged_port_start) -le 1"),
		"KernelModulesMissing": true, // pods run on this machine in other tests
		"FilesystemErrors":     !p.may("cat /sys/fs/ext4/*/errors_count | grep -v '^0$'"),
	} {
		f, there := found[check]
		if !there || (f.Level == doctor.Fine) != isFine {
			t.Errorf("%s: said %+v, but that it is fine is %v", check, f, isFine)
		}
	}
	name := p.out("cat /proc/1/comm")
	if f := found["LingerOff"]; p.may("test -d /run/systemd/system") == strings.Contains(f.Message, fmt.Sprintf("process 1 is %s and not systemd", name)) {
		t.Errorf("process 1 is %s: %+v", name, f)
	}
}
