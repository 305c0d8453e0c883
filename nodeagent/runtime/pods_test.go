package runtime_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/test/cluster"
)

func TestPodLivesFromCreateToRemove(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	spec := shell(n.makePod(t, "u1"), `hostname; trap "exit 3" TERM; echo "$A" >/dev/termination-log; while :; do sleep 0.1; done`)
	spec.Env = []container.Env{{Name: "A", Value: "bye"}}
	image, found, err := n.Image(t.Context(), cluster.TestImage)
	if err != nil || !found {
		t.Fatalf("image: %v, %v", found, err)
	}
	spec.ImageID = image.ID
	id := n.run(t, spec)
	cluster.Eventually(t, 20*time.Second, func() string { // until it has set its trap
		said, err := filepath.Glob(n.state + "/termination/*/*")
		if err == nil && len(said) == 1 {
			var text []byte
			if text, err = os.ReadFile(said[0]); string(text) == "bye\n" {
				return ""
			}
		}
		return fmt.Sprintf("termination messages %v, %v", said, err)
	})

	s := n.only(t, "u1")
	if s.ID != id || s.Phase != container.Running || s.PID == 0 || s.StartedAt.IsZero() || s.Name != "main" ||
		s.Hash != "h1" || s.Image != cluster.TestImage || s.ImageID != image.ID || s.PodUID != "u1" {
		t.Errorf("running state: %+v", s)
	}
	if err := n.StopContainer(t.Context(), id, 5); err != nil {
		t.Fatal(err)
	}
	s = n.only(t, "u1")
	if s.Phase != container.Exited || s.ExitCode != 3 || s.FinishedAt.IsZero() || strings.TrimSpace(s.TerminationMessage) != "bye" {
		t.Errorf("ended state: %+v", s)
	}
	pods, err := n.List(t.Context())
	if err != nil || len(pods) != 1 || !pods[0].Running || pods[0].Name != "web" || len(pods[0].Containers) != 1 {
		t.Errorf("list: %+v, %v", pods, err)
	}
	if err := n.Remove(t.Context(), "u1"); err != nil {
		t.Fatal(err)
	}
	if pods, err := n.List(t.Context()); err != nil || len(pods) != 0 {
		t.Errorf("after remove: %+v, %v", pods, err)
	}
	if left, _ := os.ReadDir(n.state + "/termination"); len(left) != 0 {
		t.Errorf("termination messages left: %v", left)
	}
}

func TestAllIsIdempotent(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	spec := shell(n.makePod(t, "u1"), "sleep 1000")
	n.makePod(t, "u1")
	id := n.run(t, spec)
	if again := n.run(t, spec); again != id {
		t.Errorf("made again: %s, then %s", id, again)
	}
	spec.Hash = "h2"
	if _, err := n.CreateContainer(t.Context(), spec); !errors.Is(err, container.ErrChanged) {
		t.Errorf("another hash: %v, want ErrChanged", err)
	}
	for range 2 {
		if err := n.StopContainer(t.Context(), id, 0); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if err := n.RemoveContainer(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if err := n.StopContainer(t.Context(), id, 0); err != nil {
		t.Errorf("stop what is gone: %v", err)
	}
	if err := n.StartContainer(t.Context(), id); !errors.Is(err, container.ErrNotFound) {
		t.Errorf("start what is gone: %v, want ErrNotFound", err)
	}
	for range 2 {
		if err := n.Remove(t.Context(), "u1"); err != nil {
			t.Error(err)
		}
	}
	if p, err := n.Get(t.Context(), "u1"); err != nil || p.UID != "" {
		t.Errorf("get what is gone: %+v, %v", p, err)
	}
}

func TestStartErrorsAreClassified(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	spec := n.makePod(t, "u1")
	for _, c := range []struct {
		command []string
		want    error
	}{
		{[]string{"/nope"}, container.ErrNoSuchCommand},
		{[]string{"nope"}, container.ErrNoSuchCommand},
		{[]string{"/etc/passwd"}, container.ErrCannotExecute},
		{[]string{"/etc"}, container.ErrCannotExecute},
	} {
		spec.Command = c.command
		spec.Restarts++
		id, err := n.CreateContainer(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.StartContainer(t.Context(), id); !errors.Is(err, c.want) {
			t.Errorf("start %v: %v, want %v", c.command, err, c.want)
		}
	}
	spec.Restarts++
	spec.Image = "localhost/bramble/nope:1"
	if _, err := n.CreateContainer(t.Context(), spec); !errors.Is(err, container.ErrImageNotFound) {
		t.Errorf("create from a missing image: %v", err)
	}
	spec.Image, spec.PodUID = cluster.TestImage, "u2"
	if _, err := n.CreateContainer(t.Context(), spec); !errors.Is(err, container.ErrNotFound) {
		t.Errorf("create in a missing pod: %v", err)
	}
}

// TestAPersonsContainerIsNoPods: an image that was made by podman commit has the
// labels of the container that it was made from. What is run from it by hand is no
// container of that pod, nor of a pod that nobody wants.
func TestAPersonsContainerIsNoPods(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	id := n.run(t, shell(n.makePod(t, "u1"), "sleep 1000000"))
	for _, args := range [][]string{
		{"commit", "--quiet", id, "localhost/mine:1"},
		{"run", "--detach", "--name", "mine", "--network", "none", "localhost/mine:1", "sleep", "1000000"},
	} {
		if out, err := n.Podman(t.Context(), args...); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if c := n.only(t, "u1"); c.ID != id {
		t.Errorf("the pod's container is %s, want %s", c.ID, id)
	}
	if err := n.Remove(t.Context(), "u1"); err != nil {
		t.Fatal(err)
	}
	if all, err := n.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("pods: %+v, %v", all, err)
	}
	if out, err := n.Podman(t.Context(), "ps", "--format", "{{.Names}}"); err != nil || out != "mine\n" {
		t.Errorf("running: %q, %v", out, err)
	}
}
