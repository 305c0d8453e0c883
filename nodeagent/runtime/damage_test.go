package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/test/cluster"
)

func (n *node) storage() string { return filepath.Join(n.Home, ".local/share/containers/storage") }

// layer returns the directory of a container's own layer, or of its image's.
func (n *node) layer(t *testing.T, what, id string) string {
	t.Helper()
	out, err := n.Podman(t.Context(), "inspect", "--format", "{{.GraphDriver.Data."+what+"}}", id)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(strings.TrimSpace(out))
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

// twoContainers makes a pod with one container that runs and one that is only
// made, and returns the latter's spec and id.
func (n *node) twoContainers(t *testing.T) (spec container.Spec, id string) {
	t.Helper()
	spec = shell(n.makePod(t, "u1"), "trap 'exit 0' TERM; while :; do sleep 0.1; done")
	n.run(t, spec)
	spec.Name = "other"
	id, err := n.CreateContainer(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return spec, id
}

// siblings returns the processes of the pod's containers but "other".
func (n *node) siblings(t *testing.T) map[string]int {
	t.Helper()
	p, err := n.Get(t.Context(), "u1")
	if err != nil || !p.Running {
		t.Fatalf("%+v, %v", p, err)
	}
	pids := map[string]int{}
	for _, c := range p.Containers {
		if c.Name != "other" && c.Phase == container.Running {
			pids[c.Name] = c.PID
		}
	}
	return pids
}

// A container whose files are lost is not started, and is made anew from its
// image; its sibling runs on.
func TestContainerWithoutItsFiles(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	spec, id := n.twoContainers(t)
	before := n.siblings(t)
	for name, damage := range map[string]func(id string){
		"its layer":                func(id string) { remove(t, n.layer(t, "UpperDir", id)) },
		"its layer's files":        func(id string) { remove(t, filepath.Join(n.layer(t, "UpperDir", id), "diff")) },
		"its layer is a file":      func(id string) { dir := n.layer(t, "UpperDir", id); remove(t, dir); truncateNew(t, dir) },
		"its entry in the storage": func(string) { truncate(t, filepath.Join(n.storage(), "overlay-containers/containers.json"), 10) },
	} {
		damage(id)
		if err := n.StartContainer(t.Context(), id); err != nil {
			t.Logf("%s: %v", name, err)
		}
		if err := n.RemoveContainer(t.Context(), id); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		id = n.run(t, spec)
		if err := n.RemoveContainer(t.Context(), id); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var err error
		if id, err = n.CreateContainer(t.Context(), spec); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if now := n.siblings(t); len(now) != 1 || now["main"] != before["main"] {
			t.Errorf("%s: its siblings were %v and are %v", name, before, now)
		}
	}
}

func truncateNew(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// An image that has lost a layer is known by it, whatever is lost, and can be
// removed and loaded again. The infra container, which is of another, runs on.
func TestImageWithoutItsLayer(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for name, damage := range map[string]func(id string){
		"the layer":         func(id string) { remove(t, n.layer(t, "LowerDir", id)) },
		"the layer's files": func(id string) { remove(t, filepath.Join(n.layer(t, "LowerDir", id), "diff")) },
	} {
		_, id := n.twoContainers(t)
		damage(id)
		if image, found, err := n.Image(t.Context(), cluster.TestImage); !errors.Is(err, container.ErrImageDamaged) {
			t.Errorf("without %s: %+v, %v, %v", name, image, found, err)
		}
		n.siblings(t)
		persist(t, func() error { return n.RemoveImage(t.Context(), cluster.TestImage) })
		if err := n.LoadImage(t.Context()); err != nil {
			t.Fatal(err)
		}
		if image, found, err := n.Image(t.Context(), cluster.TestImage); err != nil || !found {
			t.Errorf("loaded again after %s: %+v, %v, %v", name, image, found, err)
		}
		if p, err := n.Get(t.Context(), "u1"); err != nil || !p.Running {
			t.Errorf("the pod after %s: %+v, %v", name, p, err)
		}
		_, id = n.twoContainers(t)
		if err := n.StartContainer(t.Context(), id); err != nil {
			t.Errorf("without %s: %v", name, err)
		}
		if err := n.Remove(t.Context(), "u1"); err != nil {
			t.Fatal(err)
		}
	}
}

// A pull alone does not fetch a lost layer again; after the image's removal it does.
func TestDamagedImageIsPulledAgain(t *testing.T) {
	t.Parallel()
	n, host := pullingNode(t)
	ref := host + "/app:1"
	if _, err := n.Pull(t.Context(), ref, nil); err != nil {
		t.Fatal(err)
	}
	out, err := n.Podman(t.Context(), "inspect", "--format", "{{.GraphDriver.Data.UpperDir}}", ref)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{strings.TrimSpace(out), filepath.Dir(strings.TrimSpace(out))} {
		remove(t, dir)
		if _, _, err := n.Image(t.Context(), ref); !errors.Is(err, container.ErrImageDamaged) {
			t.Errorf("without %s: %v", dir, err)
		}
		if _, err := n.Pull(t.Context(), ref, nil); err == nil || errors.Is(err, container.ErrImageNotFound) || errors.Is(err, container.ErrRegistryUnavailable) {
			t.Errorf("pulled over the damaged one: %v", err)
		}
		if err := n.RemoveImage(t.Context(), ref); err != nil {
			t.Error(err)
		}
		if _, err := n.Pull(t.Context(), ref, nil); err != nil {
			t.Errorf("pulled anew: %v", err)
		}
	}
	if err := n.RemoveImage(t.Context(), host+"/absent:1"); err != nil {
		t.Errorf("an image that is not there: %v", err)
	}
}

// Infra containers whose image or own files are lost are made anew; those that
// run go on.
func TestPauseWithoutItsFiles(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.run(t, shell(n.makePod(t, "u1"), "sleep 1000"))
	before := n.siblings(t)
	remove(t, n.layer(t, "LowerDir", "k8s_POD_u1"))
	other := container.PodSpec{UID: "u2", Namespace: "default", Name: "web", Hostname: "web-2"}
	err := n.Create(t.Context(), other)
	for range 2 { // the first failure has the image looked at
		if err != nil {
			t.Log(err)
			err = n.Create(t.Context(), other)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Halt(t.Context(), "u2"); err != nil {
		t.Fatal(err)
	}
	remove(t, n.layer(t, "UpperDir", "k8s_POD_u2"))
	if err := n.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if p, err := n.Get(t.Context(), "u2"); err != nil || !p.Running {
		t.Errorf("%+v, %v", p, err)
	}
	if now := n.siblings(t); len(now) != 1 || now["main"] != before["main"] {
		t.Errorf("the pod that ran: %v, now %v", before, now)
	}
}

// While Podman's database is unreadable the service's error says what to do, and
// what runs goes on. When that was done, all that Podman has forgotten is ended,
// and pods of the same names can be made.
func TestLostDatabase(t *testing.T) {
	t.Parallel()
	n := emptyNode(t)
	up, _ := n.startService(t)
	n.twoContainers(t)
	pid := n.siblings(t)["main"]
	database := filepath.Join(n.storage(), "libpod/bolt_state.db")
	truncate(t, database, 100)
	awaitWords(t, up, "mv $f $f.damaged")
	if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid))); err != nil {
		t.Errorf("the container: %v", err)
	}
	if err := os.Rename(database, database+".damaged"); err != nil {
		t.Fatal(err)
	}
	awaitWords(t, up, "")
	if pods, err := n.List(t.Context()); err != nil || len(pods) != 0 {
		t.Errorf("%+v, %v", pods, err)
	}
	cluster.Eventually(t, 30*time.Second, func() string {
		if text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")); len(text) > 0 {
			return fmt.Sprintf("what podman has forgotten runs on: %q, %v", text, err)
		}
		return ""
	})
	spec, id := n.twoContainers(t)
	if err := n.StartContainer(t.Context(), id); err != nil {
		t.Errorf("%s: %v", spec.Name, err)
	}
	if len(n.siblings(t)) != 1 {
		t.Errorf("%v", n.siblings(t))
	}
}

// awaitWords waits until the service says what contains words or, by "", that
// it is up.
func awaitWords(t *testing.T, up chan error, words string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for {
		select {
		case err := <-up:
			if words == "" && err == nil || words != "" && err != nil && strings.Contains(err.Error(), words) {
				return
			}
			t.Log(err)
		case <-ctx.Done():
			t.Fatalf("the service never says %q", words)
		}
	}
}
