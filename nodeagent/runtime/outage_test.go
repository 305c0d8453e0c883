package runtime_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/container"
)

// persist repeats a call while Podman is away, as the pod workers do.
func persist(t *testing.T, call func() error) {
	t.Helper()
	ticks := time.NewTicker(50 * time.Millisecond)
	defer ticks.Stop()
	limit := time.After(60 * time.Second)
	for {
		err := call()
		if err == nil {
			return
		}
		if !errors.Is(err, container.ErrUnavailable) {
			t.Logf("refused, and tried again: %v", err)
		}
		select {
		case <-ticks.C:
		case <-limit:
			t.Fatalf("it never succeeds: %v", err)
		}
	}
}

// TestNothingIsDoubledWhenTheServiceIsKilled kills Podman's service a little
// later each time while a pod is made, run, stopped and removed.
func TestNothingIsDoubledWhenTheServiceIsKilled(t *testing.T) {
	t.Parallel()
	n := emptyNode(t)
	n.startService(t)
	pod := container.PodSpec{UID: "u1", Namespace: "default", Name: "web", Hostname: "web"}
	spec := shell(n.makePod(t, "u1"), "trap 'exit 0' TERM; while :; do sleep 0.1; done")
	if err := n.Remove(t.Context(), "u1"); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		name string
		do   func(id *string) error
	}{
		{"pod", func(*string) error { return n.Create(t.Context(), pod) }},
		{"create", func(id *string) (err error) { *id, err = n.CreateContainer(t.Context(), spec); return err }},
		{"start", func(id *string) error { return n.StartContainer(t.Context(), *id) }},
		{"stop", func(id *string) error { return n.StopContainer(t.Context(), *id, 5) }},
		{"remove", func(*string) error { return n.Remove(t.Context(), "u1") }},
	}
	for _, victim := range []string{"pod", "create", "start", "stop", "remove"} {
		for _, delay := range []time.Duration{10 * time.Millisecond, 60 * time.Millisecond, 200 * time.Millisecond} {
			var id string
			for _, step := range steps {
				if step.name == victim {
					pids := n.servers(t)
					time.AfterFunc(delay, func() {
						for _, pid := range pids {
							_ = syscall.Kill(pid, syscall.SIGKILL)
						}
					})
				}
				persist(t, func() error { return step.do(&id) })
				if step.name == "start" {
					persist(t, func() error {
						p, err := n.Get(t.Context(), "u1")
						if err == nil && (len(p.Containers) != 1 || p.Containers[0].ID != id || p.Containers[0].Phase != container.Running || !p.Running) {
							t.Errorf("killed in %s after %v: %+v", victim, delay, p)
						}
						return err
					})
				}
			}
			persist(t, func() error {
				pods, err := n.List(t.Context())
				if err == nil && len(pods) != 0 {
					t.Errorf("killed in %s after %v: left %+v", victim, delay, pods)
				}
				return err
			})
		}
	}
	if out, err := n.Podman(t.Context(), "ps", "-aq", "--external"); err != nil || out != "" {
		t.Errorf("containers left: %q, %v", out, err)
	}
}

// TestPodThatDoesNotKnowItsInfraContainerIsMadeAnew makes what a kill of Podman's
// service leaves when it comes between the infra container and the pod's note of it.
func TestPodThatDoesNotKnowItsInfraContainerIsMadeAnew(t *testing.T) {
	t.Parallel()
	n := emptyNode(t)
	_, stop := n.startService(t)
	n.makePod(t, "u1")
	stop()
	n.forgetInfra(t)
	n.startService(t)
	id := n.run(t, shell(n.makePod(t, "u1"), "sleep 1000"))
	if s := n.only(t, "u1"); s.ID != id || s.Phase != container.Running {
		t.Errorf("in the pod made anew: %+v", s)
	}
}

// forgetInfra empties the pods' notes of their infra containers in Podman's
// database: JSON in a bbolt file, whose pages of data have no checksums.
func (n *node) forgetInfra(t *testing.T) {
	t.Helper()
	database := filepath.Join(n.storage(), "libpod/bolt_state.db")
	data, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	note := regexp.MustCompile(`(?i)("InfraContainerID":)"[0-9a-f]{64}"`)
	if !note.Match(data) {
		t.Fatal("podman's database has no note of an infra container")
	}
	empty := []byte(`${1}""` + strings.Repeat(" ", 64)) // as long as it was
	if err := os.WriteFile(database, note.ReplaceAll(data, empty), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestContainersStartAgainAfterAPowerCut(t *testing.T) {
	t.Parallel()
	n := emptyNode(t)
	_, stop := n.startService(t)
	id := n.run(t, shell(n.makePod(t, "u1"), "sleep 1000"))
	stop()
	if err := n.KillAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.WipeRuntime(); err != nil {
		t.Fatal(err)
	}
	_ = os.RemoveAll("/dev/shm/libpod_rootless_lock_" + n.uid())
	n.startService(t)
	if s := n.only(t, "u1"); s.ID != id || s.Phase == container.Running {
		t.Errorf("after the cut: %+v", s)
	}
	n.makePod(t, "u1")
	if err := n.StartContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p, err := n.Get(context.WithoutCancel(t.Context()), "u1")
	if err != nil || !p.Running || len(p.Containers) != 1 || p.Containers[0].Phase != container.Running {
		t.Errorf("started again: %+v, %v", p, err)
	}
}
