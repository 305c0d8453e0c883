package report_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/nodeagent/report"
	"bramble.dev/bramble/server/client"
)

// oneNode keeps a node's status as the server does.
type oneNode struct {
	mu   sync.Mutex // protects node
	node corev1.Node
}

func (s *oneNode) GetNode(context.Context, string) (*corev1.Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node.DeepCopy(), nil
}

func (s *oneNode) CreateNode(ctx context.Context, _ *corev1.Node) (*corev1.Node, error) {
	return s.GetNode(ctx, "")
}

func (s *oneNode) PatchNode(ctx context.Context, _ string, _ client.Patch) (*corev1.Node, error) {
	return s.GetNode(ctx, "")
}

func (s *oneNode) PatchNodeStatus(_ context.Context, _ string, p client.Patch) (*corev1.Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return nil, json.Unmarshal(p.Body, &s.node)
}

func (s *oneNode) setBack(boot string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node.Status.NodeInfo.BootID = boot
}

// shared is the condition's message where it is True.
func (s *oneNode) shared() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.node.Status.Conditions {
		if c.Type == report.IdentityShared && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

// board makes the reporter of a board in its first boot.
func (s *oneNode) board(t *testing.T, boot string) *report.Node {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "proc/sys/kernel/random/boot_id")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(boot+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return report.NewNode(s, "pi", report.System{Root: dir, Data: "/"}, func() report.Health { return report.Health{} }, quiet())
}

// Two boards with copies of one card are told of in the node's condition, which ends
// some time after one of them.
func TestTwoBoardsWithOneIdentityAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &oneNode{node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "pi"}}}
		first, second := s.board(t, "boot-1"), s.board(t, "boot-2")
		running(t, first.Run)
		synctest.Wait()
		s.setBack("boot-0") // a database that was set back
		first.Again()
		time.Sleep(time.Hour)
		if got := s.shared(); got != "" {
			t.Errorf("one board, and the condition says %q", got)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = second.Run(ctx) }()
		for range 3 { // each takes the other's connections, and so both begin anew
			first.Again()
			second.Again()
			time.Sleep(time.Minute)
		}
		if got := s.shared(); !strings.Contains(got, "boot-1") || !strings.Contains(got, "boot-2") || !strings.Contains(got, "join under a name of its own") {
			t.Errorf("two boards, and the condition says %q", got)
		}
		stop()
		<-ended
		first.Again()
		time.Sleep(time.Hour)
		if got := s.shared(); got != "" {
			t.Errorf("one board again, and the condition says %q", got)
		}
	})
}
