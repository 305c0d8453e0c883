package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"bramble.dev/bramble/nodeagent/state"
)

func facts(cidr string) state.Facts {
	return state.Facts{NodeName: "pi", Servers: []string{"192.0.2.1:6443"}, Epoch: "e1", PodCIDR: cidr, ClusterCIDR: "10.100.0.0/14", ServiceCIDR: "10.104.0.0/16"}
}

func joined(t testing.TB, cidr string) string {
	dir := filepath.Join(t.TempDir(), "state")
	if err := state.Join(dir, facts(cidr), state.Identity{Key: []byte("k"), Certificate: []byte("c"), CA: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t testing.TB, dir string) *state.Record {
	r, err := state.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newPod(uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p" + uid, UID: types.UID(uid), ResourceVersion: "7",
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}}
}

func TestNotJoined(t *testing.T) {
	if _, err := state.Open(t.TempDir(), slog.New(slog.DiscardHandler)); !errors.Is(err, state.ErrNotJoined) {
		t.Errorf("Open: %v", err)
	}
	if _, err := state.ReadIdentity(t.TempDir()); !errors.Is(err, state.ErrNotJoined) {
		t.Errorf("ReadIdentity: %v", err)
	}
}

func TestRecordSurvivesReopening(t *testing.T) {
	dir := joined(t, "10.100.3.0/24")
	r := open(t, dir)
	p := newPod("a")
	p.Spec.Volumes = []corev1.Volume{{Name: "c", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "conf"}}}}}
	kept, err := r.Keep(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.KeepConfigMap(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "conf"}, Data: map[string]string{"k": "v"}}); err != nil {
		t.Fatal(err)
	}
	if err := r.KeepSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "unused"}}); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	if diff := cmp.Diff(facts("10.100.3.0/24"), again.Facts()); diff != "" {
		t.Error(diff)
	}
	got := again.Pod("a")
	if got == nil || got.Address != kept.Address || got.Pod.Name != "pa" || len(got.ConfigMaps) != 1 || len(got.Secrets) != 0 {
		t.Fatalf("record after reopening: %+v", got)
	}
	if c := again.ConfigMap("default", "conf"); c == nil || c.Data["k"] != "v" {
		t.Errorf("ConfigMap: %v", c)
	}
	if err := again.Condemn("a"); err != nil {
		t.Fatal(err)
	}
	if open(t, dir).Pod("a").Pod.DeletionTimestamp == nil {
		t.Error("a condemned pod comes back")
	}
	if err := again.Drop("a"); err != nil {
		t.Fatal(err)
	}
	if open(t, dir).Pod("a") != nil {
		t.Error("a dropped pod is still there")
	}
}

func TestNothingIsWrittenWithoutChange(t *testing.T) {
	dir := joined(t, "10.100.3.0/24")
	r := open(t, dir)
	if _, err := r.Keep(newPod("a")); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(filepath.Join(dir, "pods", "a.json"))
	if err != nil {
		t.Fatal(err)
	}
	p := newPod("a")
	p.ResourceVersion, p.Status.Phase, p.Status.PodIP = "8", corev1.PodRunning, "10.100.3.2"
	if _, err := r.Keep(p); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(filepath.Join(dir, "pods", "a.json"))
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was written anew (%v)", err)
	}
	p.Status.Phase = corev1.PodSucceeded
	if _, err := r.Keep(p); err != nil {
		t.Fatal(err)
	}
	if got := open(t, dir).Pod("a").Pod.Status.Phase; got != corev1.PodSucceeded {
		t.Errorf("the final phase is not kept: %q", got)
	}
}

func TestCorruptFileIsSetAside(t *testing.T) {
	dir := joined(t, "10.100.3.0/24")
	r := open(t, dir)
	for _, uid := range []string{"a", "b", "c"} {
		if _, err := r.Keep(newPod(uid)); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, "pods", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.json", `{"pod": {"metad`)
	write("c.json", `{"pod": {"metadata": {"uid": "x"}}}`)
	write(".new-123", "half")
	var log bytes.Buffer
	r, err := state.Open(dir, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if pods := r.Pods(); len(pods) != 1 || pods[0].Pod.UID != "b" {
		t.Errorf("pods: %v", pods)
	}
	if !strings.Contains(log.String(), "a.json.corrupt") || !strings.Contains(log.String(), "c.json.corrupt") {
		t.Errorf("log: %s", log.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "pods", "a.json.corrupt")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "pods", ".new-123")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a half-written file is left: %v", err)
	}
}

// TestUnreadableFileIsSetAside: a file that is there and cannot be read, as in a
// bad sector, keeps no other pod down.
// A card that loses the sector of the node's facts does not lose the node.
func TestDamagedFactsAreTakenFromTheirCopy(t *testing.T) {
	for _, left := range []string{"", "{\"nodeName\"", "\x00\x00"} {
		dir := joined(t, "10.100.3.0/24")
		renewed := facts("10.100.3.0/24")
		renewed.TrustedTime = "2026-01-01T00:00:00Z"
		if err := open(t, dir).SetFacts(renewed); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "node.json")
		if err := os.WriteFile(path, []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(renewed, open(t, dir).Facts()); diff != "" {
			t.Error(diff)
		}
		if aside, err := os.ReadFile(path + ".corrupt"); string(aside) != left || err != nil {
			t.Errorf("set aside: %q, %v", aside, err)
		}
		if err := os.WriteFile(path+".copy", nil, 0o600); err != nil { // now that, and the first is whole again
			t.Fatal(err)
		}
		if diff := cmp.Diff(renewed, open(t, dir).Facts()); diff != "" {
			t.Error(diff)
		}
		if err := os.WriteFile(path, []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := state.Open(dir, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "join again") {
			t.Errorf("both are damaged: %v", err)
		}
	}
}

func TestUnreadableFileIsSetAside(t *testing.T) {
	dir := joined(t, "10.100.3.0/24")
	if _, err := open(t, dir).Keep(newPod("b")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "pods", "a.json"), 0o700); err != nil { // reading it is EISDIR
		t.Fatal(err)
	}
	if pods := open(t, dir).Pods(); len(pods) != 1 || pods[0].Pod.UID != "b" {
		t.Errorf("pods: %v", pods)
	}
}

// TestLostRecordKeepsItsAddress: a pod that runs must not be given another
// address because its file was damaged; nor one that is another's or nobody's.
func TestLostRecordKeepsItsAddress(t *testing.T) {
	r := open(t, joined(t, "10.100.3.0/24"))
	for _, c := range []struct{ uid, said, want string }{
		{"a", "10.100.3.9", "10.100.3.9"}, {"b", "10.100.3.9", "10.100.3.2"}, {"c", "10.100.4.9", "10.100.3.3"},
		{"d", "10.100.3.1", "10.100.3.4"}, {"e", "10.100.3.0", "10.100.3.5"}, {"f", "10.100.3.255", "10.100.3.6"}, {"g", "x", "10.100.3.7"},
	} {
		p := newPod(c.uid)
		p.Status.PodIP = c.said
		if kept, err := r.Keep(p); err != nil || kept.Address.String() != c.want {
			t.Errorf("said to have %s: %v (%v), want %s", c.said, kept.Address, err, c.want)
		}
	}
}

// TestDiskRefuses: a pod that cannot be written has one address all the same,
// nobody else gets it, and it is written when there is room again.
func TestDiskRefuses(t *testing.T) {
	dir := joined(t, "10.100.3.0/24")
	r := open(t, dir)
	pods := filepath.Join(dir, "pods")
	if err := os.Rename(pods, pods+".away"); err != nil {
		t.Fatal(err)
	}
	first, err := r.Keep(newPod("a"))
	if err == nil || first == nil {
		t.Fatalf("Keep: %v, %v; want a record and an error", first, err)
	}
	again, _ := r.Keep(newPod("a"))
	other, _ := r.Keep(newPod("b"))
	if again.Address != first.Address || other.Address == first.Address {
		t.Errorf("a had %s and has %s; b has %s", first.Address, again.Address, other.Address)
	}
	if err := r.Mend(); err == nil {
		t.Error("mended without a disk")
	}
	if err := r.Drop("b"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := os.Rename(pods+".away", pods); err != nil {
		t.Fatal(err)
	}
	if err := r.Mend(); err != nil {
		t.Fatal(err)
	}
	if got := open(t, dir).Pod("a"); got == nil || got.Address != first.Address {
		t.Errorf("after the disk is back: %+v, want address %s", got, first.Address)
	}
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	dir := joined(t, "10.100.3.0/24")
	if _, err := open(t, dir).Keep(newPod("a")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		info, infoErr := e.Info()
		if err != nil || infoErr != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v (%v %v)", path, info.Mode(), err, infoErr)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAddresses allots and frees at random: no two pods have one address, a
// pod's address never changes, reopened or not, and none is outside the range.
func TestAddresses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "s")
		if err != nil {
			rt.Fatal(err)
		}
		const cidr = "10.100.3.0/28" // 13 usable
		if err := state.Join(dir, facts(cidr), state.Identity{}); err != nil {
			rt.Fatal(err)
		}
		r := open(t, dir)
		has := map[string]netip.Addr{}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			uid := fmt.Sprint(rapid.IntRange(0, 20).Draw(rt, "uid"))
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0:
				if err := r.Drop(uid); err != nil {
					rt.Fatal(err)
				}
				delete(has, uid)
			case 1:
				r = open(t, dir)
			default:
				kept, err := r.Keep(newPod(uid))
				if errors.Is(err, state.ErrNoAddress) {
					if len(has) != 13 {
						rt.Fatalf("no address with %d pods", len(has))
					}
					continue
				}
				if err != nil {
					rt.Fatal(err)
				}
				if before, ok := has[uid]; ok && before != kept.Address {
					rt.Fatalf("pod %s had %s and has %s", uid, before, kept.Address)
				}
				for other, addr := range has {
					if other != uid && addr == kept.Address {
						rt.Fatalf("%s is given twice", addr)
					}
				}
				last := kept.Address.As4()[3]
				if !netip.MustParsePrefix(cidr).Contains(kept.Address) || last < 2 || last > 14 {
					rt.Fatalf("%s is not for pods", kept.Address)
				}
				has[uid] = kept.Address
			}
		}
	})
}

// TestAddressOfAPodThatIsOver: it may be given to another pod, and the pod that
// had it keeps it in its status.
func TestAddressOfAPodThatIsOver(t *testing.T) {
	r := open(t, joined(t, "10.100.3.0/30")) // two addresses, one of them the bridge's
	p := newPod("a")
	first, err := r.Keep(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Keep(newPod("b")); !errors.Is(err, state.ErrNoAddress) {
		t.Fatalf("a second address: %v", err)
	}
	over := p.DeepCopy()
	over.Status.Phase = corev1.PodSucceeded
	kept, err := r.Keep(over)
	if err != nil || kept.Address != first.Address {
		t.Errorf("the pod that is over: %v, %v", kept, err)
	}
	second, err := r.Keep(newPod("b"))
	if err != nil || second.Address != first.Address {
		t.Errorf("another pod: %v, %v, want %v", second, err, first.Address)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte(`{"pod":{"metadata":{"uid":"a"}},"address":"10.0.0.1"}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"pod":{"spec":{"containers":[{"resources":{"limits":{"cpu":"x"}}}]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := joined(t, "10.100.3.0/24")
		if err := os.Mkdir(filepath.Join(dir, "pods"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "pods", "a.json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		r := open(t, dir)
		if _, err := r.Keep(newPod("b")); err != nil {
			t.Error(err)
		}
	})
}
