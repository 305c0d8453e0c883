package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"

	"bramble.dev/bramble/test/cluster"
)

// TestBackupAndRestore backs a running cluster up, changes more, and restores:
// no client takes an old revision for new, and the node stops nothing, not even
// what the backup does not know, before the restore is confirmed. Once, or
// BRAMBLE_RESTORES times, each with a cluster of its own.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	for i := range number(t, "BRAMBLE_RESTORES", 1) {
		t.Run(fmt.Sprint(i), backUpAndRestore)
	}
}

func backUpAndRestore(t *testing.T) {
	s := cluster.StartServer(t)
	n := s.StartNode(t, "boat")
	s.Apply(fmt.Sprintf(sleeper, 0, "keep"))
	s.WaitFor("condition=Ready", "pod/sleeper-0")
	client := s.Client()
	alive, deleted := map[string]string{}, map[string]bool{}
	makeChanges := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			if err := change(t.Context(), client, fmt.Sprintf("c%d", i%7), fmt.Sprint(i), i%5 == 0, alive, deleted); err != nil {
				t.Fatal(err)
			}
		}
	}
	makeChanges(0, 50)
	file := filepath.Join(t.TempDir(), "backup.tar.gz")
	s.Must("backup", file)
	backedUp := map[string]string{}
	for name, value := range alive {
		backedUp[name] = value
	}

	seen := newWitness()
	informer := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default")).Core().V1().ConfigMaps().Informer()
	if _, err := informer.AddEventHandler(seen); err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	makeChanges(50, 150)
	s.Apply(fmt.Sprintf(sleeper, 1, "keep"))
	s.WaitFor("condition=Ready", "pod/sleeper-1")

	s.Stop()
	restore := func(flags ...string) (string, error) {
		args := append([]string{"restore", file, "--data-dir", s.Dir}, flags...)
		out, err := exec.CommandContext(t.Context(), filepath.Join(cluster.Programs(t), "bramble-server"), args...).CombinedOutput()
		return string(out), err
	}
	if out, err := restore(); err == nil || !strings.Contains(out, "there is a cluster already") || !strings.Contains(out, "--replace") {
		t.Errorf("restore over a cluster: %v\n%s", err, out)
	}
	if out, err := restore("--replace"); err != nil {
		t.Fatalf("restore: %v\n%s", err, out)
	}
	s.Start()

	s.WaitFor("condition=UnknownDatabase", "node/boat")
	if err := client.CoreV1().Pods("default").Delete(t.Context(), "sleeper-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, 60*time.Second, func() string { return cmp.Diff(backedUp, content(informer)) })
	for _, problem := range seen.problems() {
		if !strings.Contains(problem, "came back after its deletion") { // so it did
			t.Error(problem)
		}
	}
	if out := s.Must("restore"); !strings.Contains(out, "is not confirmed") {
		t.Errorf("edgectl restore: %s", out)
	}
	if running := containers(t, n); running != 2 {
		t.Errorf("%d containers run before the restore is confirmed, want both", running)
	}

	s.Must("restore", "--confirm")
	s.WaitFor("condition=UnknownDatabase=false", "node/boat")
	cluster.Eventually(t, 30*time.Second, func() string {
		if running := containers(t, n); running != 0 {
			return fmt.Sprintf("%d containers run, of pods that are deleted or that the restored database never knew", running)
		}
		return ""
	})
	s.Apply(fmt.Sprintf(sleeper, 2, "keep"))
	s.WaitFor("condition=Ready", "pod/sleeper-2")
}

func containers(t *testing.T, n *cluster.Node) int {
	t.Helper()
	out, err := n.Podman(t.Context(), "ps", "--filter", "label=edge.bramble.dev/container", "--format", "{{.Names}}")
	if err != nil {
		t.Fatal(err)
	}
	return len(strings.Fields(out))
}
