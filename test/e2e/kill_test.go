package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"bramble.dev/bramble/test/cluster"
)

// TestServerKilledUnderWriters kills the server's process at random points
// under 20 writers (20 points; BRAMBLE_KILL_POINTS raises it): every
// acknowledged write is there, no revision was handed out twice, the database
// is sound, and the server is ready again in under 3 s. It is a process kill:
// the machine and its page cache live on.
func TestServerKilledUnderWriters(t *testing.T) {
	s := cluster.StartServer(t)
	source := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	writers := make([]*writer, 20)
	for i := range writers {
		writers[i] = &writer{name: fmt.Sprintf("w%d", i), revisions: map[string]bool{}}
	}
	acknowledged := 0
	for point := range number(t, "BRAMBLE_KILL_POINTS", 20) {
		client := s.Client()
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for _, w := range writers {
			group.Go(func() { w.write(ctx, client) })
		}
		timer := time.NewTimer(time.Duration(50+source.IntN(250)) * time.Millisecond)
		<-timer.C
		s.Kill()
		cancel()
		group.Wait()
		took, waited := s.Start(), s.Starved()
		if took-waited > 3*time.Second { // it may be one of many on a busy machine
			t.Errorf("point %d: ready again after %v, of which it waited for a processor for %v, want under 3 s", point, took, waited)
		}
		for _, w := range writers {
			acknowledged += w.check(t, s.Client(), point)
		}
	}
	seen := map[string]string{}
	for _, w := range writers {
		for revision := range w.revisions {
			if other := seen[revision]; other != "" {
				t.Errorf("revision %s was handed to %s and to %s", revision, other, w.name)
			}
			seen[revision] = w.name
		}
	}
	if acknowledged < 100 {
		t.Errorf("only %d writes were acknowledged: the test tests nothing", acknowledged)
	}
	s.Stop()
	files, _ := filepath.Glob(filepath.Join(s.Dir, "*.db"))
	if len(files) != 1 {
		t.Fatalf("database files: %v", files)
	}
	out, err := exec.CommandContext(t.Context(), "sqlite3", files[0], "pragma integrity_check").CombinedOutput()
	if strings.TrimSpace(string(out)) != "ok" {
		t.Errorf("integrity_check: %s, %v", out, err)
	}
	t.Logf("%d acknowledged writes", acknowledged)
}

// writer updates one ConfigMap, counting up.
type writer struct {
	name      string
	tried     int // the last value sent
	done      int // the last value acknowledged
	counted   int // of done, by check
	revisions map[string]bool
}

func (w *writer) write(ctx context.Context, client *kubernetes.Clientset) {
	configMaps := client.CoreV1().ConfigMaps("default")
	for ctx.Err() == nil {
		w.tried++
		body := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: w.name}, Data: map[string]string{
			"v": fmt.Sprint(w.tried), "filling": strings.Repeat("x", 1000),
		}}
		answer, err := configMaps.Update(ctx, body, metav1.UpdateOptions{})
		if err != nil && w.done == 0 {
			answer, err = configMaps.Create(ctx, body, metav1.CreateOptions{})
		}
		if err != nil {
			return // the kill; whether it was written is open
		}
		w.done = w.tried
		w.revisions[answer.ResourceVersion] = true
	}
}

// check compares what the server has with what it acknowledged, and returns
// how many writes were acknowledged since the last check.
func (w *writer) check(t *testing.T, client *kubernetes.Clientset, point int) int {
	t.Helper()
	object, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), w.name, metav1.GetOptions{})
	if err != nil {
		if w.done > 0 {
			t.Errorf("point %d: %s: %v, want value %d", point, w.name, err, w.done)
		}
		return 0
	}
	var value int
	if _, err := fmt.Sscan(object.Data["v"], &value); err != nil || value != w.done && value != w.tried {
		t.Errorf("point %d: %s has value %q, acknowledged was %d, sent last %d", point, w.name, object.Data["v"], w.done, w.tried)
	}
	fresh := w.done - w.counted
	w.done, w.counted = max(value, w.done), w.done
	w.tried = max(w.tried, w.done)
	return fresh
}
