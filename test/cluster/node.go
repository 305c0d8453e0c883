package cluster

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const pause = 100 * time.Millisecond // between two looks

// Node is a user of its own with a joined agent.
type Node struct {
	*User
	*Process // the agent
	Name     string
	bin      string
	flags    []string // of the agent
	t        testing.TB
}

// StartNode makes a user, gives it TestImage, joins it as node name, starts its
// agent and returns when the node is Ready.
func (s *Server) StartNode(t testing.TB, name string) *Node {
	t.Helper()
	return s.StartNodeOn(t, name, "")
}

// StartNodeOn is StartNode in a network namespace, by its path; "" is the
// machine's own.
func (s *Server) StartNodeOn(t testing.TB, name, netns string) *Node {
	t.Helper()
	u := ForTest(t)
	u.Netns = netns
	return s.StartNodeAs(t, name, u)
}

// StartNodeAs is StartNode as a user that was made before, its agent run with flags.
func (s *Server) StartNodeAs(t testing.TB, name string, u *User, flags ...string) *Node {
	t.Helper()
	n := &Node{User: u, Name: name, bin: s.bin, flags: flags, t: t}
	if err := n.LoadImage(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, err := n.Join(s, s.Token()); err != nil {
		t.Fatalf("cannot join: %v\n%s", err, out)
	}
	n.Start()
	s.WaitFor("condition=Ready", "node/"+name)
	return n
}

// Token makes a join token.
func (s *Server) Token(flags ...string) string {
	s.t.Helper()
	out := s.Must(append([]string{"token", "create"}, flags...)...)
	words := strings.Fields(out)
	return words[len(words)-1]
}

// StateDir is the agent's state directory.
func (n *Node) StateDir() string { return filepath.Join(n.Home, "agent") }

// Join runs `bramble-agent join` as the node's user.
func (n *Node) Join(s *Server, token string) (string, error) {
	return run(n.Command(n.t.Context(), filepath.Join(n.bin, "bramble-agent"), "join",
		"--state-dir", n.StateDir(), "--server", s.NodeAddress, "--node-name", n.Name, token))
}

// Start starts the agent, first or again.
func (n *Node) Start() {
	n.t.Helper()
	cmd := n.Command(n.t.Context(), filepath.Join(n.bin, "bramble-agent"), append([]string{"run", "--state-dir", n.StateDir()}, n.flags...)...)
	n.Process = start(n.t, cmd, filepath.Join(n.t.TempDir(), n.Name+".log"))
}

// WaitFor waits until what edgectl's wait knows of is there, at most a minute.
func (s *Server) WaitFor(condition string, what ...string) {
	s.t.Helper()
	for {
		out, err := s.Edgectl(append([]string{"wait", "--for=" + condition, "--timeout=60s"}, what...)...)
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "not found") || s.Ended() || wait(s.t.Context(), pause) != nil {
			s.t.Fatalf("waiting for %v of %v: %v\n%s", condition, what, err, out)
		}
	}
}
