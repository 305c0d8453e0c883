package doctor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"bramble.dev/bramble/hw"
)

// Place is what Look looks at. The zero value is this machine, of which no user is
// known, and no program is run.
type Place struct {
	Root      string     // has etc, proc, sys, dev, usr ... below it; "" is "/"
	BoardRoot string     // likewise of the hardware's part: the kernel's command line and cgroups; "": Root
	User      *user.User // the node's; nil: not known
	Self      bool       // this process is the user's, so that what it may do can be tried
	StateDir  string     // may be missing; "": storage is not looked at
	// RuntimeDir is $XDG_RUNTIME_DIR; "": /run/user/UID.
	RuntimeDir string
	Path       []string // where programs are looked for; nil: $PATH and the folders of root's programs
	// Run returns what a program writes to its standard output; nil: none is run. Its
	// error has the program's own words.
	Run func(ctx context.Context, name string, args ...string) (string, error)
	// Answers are what programs said before; nil: they are asked.
	Answers *Answers
	Measure bool     // write to the state directory's storage, to see how long that takes
	Servers []string // host:port, of a node that has joined
	TLS     *tls.Config
}

// Facts is what was found. Diagnose takes it.
type Facts struct {
	Board      hw.Snapshot
	Recorded   bool // Board is a recorded one
	User       *user.User
	Self       bool
	Init       Init
	Boot       Boot
	Cgroups    Cgroups
	Subids     Subids
	IDMap      []IDMap
	Namespaces Namespaces
	Session    Session
	Programs   Programs
	Modules    Modules
	State      StateDir
	Latency    *Latency // nil: not measured
	Mailbox    Node
	Nodes      []Node
	Swaps      []string // devices and files, by /proc/swaps
	FirstPort  string   // net.ipv4.ip_unprivileged_port_start
	Servers    []Server
}

// Init is process 1.
type Init struct {
	Name    string // its program
	Systemd bool   // by sd_booted(3)
}

// Look gathers the facts beside what the board itself says. It takes some seconds where
// programs are run, storage is measured or servers do not answer.
func (p Place) Look(ctx context.Context, board hw.Snapshot) Facts {
	f := Facts{Board: board, User: p.User, Self: p.Self, Recorded: p.BoardRoot != "" && filepath.Clean(p.BoardRoot) != "/"}
	_, err := os.Stat(p.path("run/systemd/system"))
	f.Init = Init{Name: p.line("proc/1/comm"), Systemd: err == nil}
	f.Boot = p.lookBoot()
	f.Cgroups = p.lookCgroups(board)
	f.Subids = p.lookSubids()
	f.IDMap = p.lookIDMap()
	f.Namespaces = p.lookNamespaces()
	f.Session = p.lookSession()
	f.Modules = p.lookModules()
	f.State = p.lookStateDir()
	f.Mailbox, f.Nodes = p.lookNodes(board, f.Recorded)
	f.Swaps = p.lookSwaps()
	f.FirstPort = p.line("proc/sys/net/ipv4/ip_unprivileged_port_start")
	f.Programs = p.lookPrograms(ctx)
	if p.Measure && f.State.Err == nil && f.State.Dir != "" && !f.State.ReadOnly {
		latency := measure(f.State.Dir)
		f.Latency = &latency
	}
	f.Servers = p.lookServers(ctx)
	return f
}

// path is a path below the root.
func (p Place) path(parts ...string) string {
	return filepath.Join(append([]string{cmp.Or(p.Root, "/")}, parts...)...)
}

// board is a path of the hardware's part.
func (p Place) board(parts ...string) string {
	return filepath.Join(append([]string{cmp.Or(p.BoardRoot, p.Root, "/")}, parts...)...)
}

// line is a file's first line; "" if there is none.
func (p Place) line(path string) string { return firstLine(p.path(path)) }

func firstLine(path string) string {
	data, _ := os.ReadFile(path)
	line, _, _ := bytes.Cut(data, []byte{'\n'})
	return strings.TrimSpace(string(line))
}

// find returns where a program is, "" if nowhere.
func (p Place) find(name string) string {
	dirs := p.Path
	if dirs == nil {
		dirs = append(filepath.SplitList(os.Getenv("PATH")), "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(p.path(path)); err == nil && !info.IsDir() && info.Mode().Perm()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// Execute is a Run: the program's own, ended when ctx ends.
func Execute(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second // what Podman leaves running may hold the pipe
	var words bytes.Buffer
	cmd.Stderr = &words
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	switch {
	case ctx.Err() != nil:
		err = errors.New("it did not answer in time")
	case err != nil && words.Len() > 0:
		lines := strings.Split(strings.TrimSpace(words.String()), "\n")
		err = fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	return string(out), err
}
