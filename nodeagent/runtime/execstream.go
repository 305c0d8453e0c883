package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"bramble.dev/bramble/nodeagent/container"
)

// startLook is how often a command is looked at until it has started.
const startLook = 20 * time.Millisecond

// ExecStreams runs a command in a running container with a client's streams and
// returns its exit code. An error is that it was not started, in the OCI
// runtime's words, or that ctx ended or the client takes no more: then its process
// group is killed. As with Exec, Podman is not asked.
//
// All that the command has said is written before it returns. Stdin may still be
// read then, until its reader fails or ends: the caller closes what it comes from.
func (r *Runtime) ExecStreams(ctx context.Context, t container.Target, command []string, s container.Streams) (code int, err error) {
	var flags []string
	if s.TTY {
		flags = []string{"--tty", "--env", "TERM=xterm"}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.Stdout, s.Stderr = endsWith(s.Stdout, cancel), endsWith(s.Stderr, cancel)
	c, err := r.prepare(ctx, t, flags, command)
	if err != nil {
		return 0, err
	}
	defer c.clean()
	said := &gate{w: s.Stderr}
	if s.TTY {
		said.w = s.Stdout
	}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { c.openWhenStarted(said, stop) })
	if s.TTY {
		err = c.runTerminal(ctx, s, said)
	} else {
		err = c.runPipes(ctx, s, said)
	}
	close(stop)
	watching.Wait()
	code, err = c.result(ctx, err)
	if err != nil {
		return 0, err
	}
	if !c.started() {
		return 0, fmt.Errorf("failed to exec in container: OCI runtime exec failed: %s", c.complaint(said.held))
	}
	return code, said.open()
}

// endsWith is w, whose first failure is the cause by which cancel ends what writes:
// a flood must not go on for a client that is gone, though its connection stays.
func endsWith(w io.Writer, cancel context.CancelCauseFunc) io.Writer {
	if w == nil {
		return nil
	}
	return writerFunc(func(p []byte) (int, error) {
		n, err := w.Write(p)
		if err != nil {
			cancel(fmt.Errorf("the client takes no more output: %w", err))
		}
		return n, err
	})
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// openWhenStarted lets out what the command says once it has started. Until
// then it is the OCI runtime that speaks.
func (c *inside) openWhenStarted(g *gate, stop <-chan struct{}) {
	ticker := time.NewTicker(startLook)
	defer ticker.Stop()
	for !c.started() {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
	}
	_ = g.open() // a client that is gone is noticed elsewhere
}

// complaint is why the OCI runtime did not start the command: its log's last
// error, or else what it said.
func (c *inside) complaint(said []byte) string {
	data, _ := os.ReadFile(c.log)
	if msg := lastError(data); msg != "" {
		return msg
	}
	return strings.TrimSpace(string(said))
}

// lastError is the message of the last error in an OCI runtime's log.
func lastError(log []byte) (msg string) {
	for line := range bytes.Lines(log) {
		var entry struct{ Level, Msg string }
		if json.Unmarshal(line, &entry) == nil && entry.Level == "error" {
			msg = entry.Msg
		}
	}
	return msg
}

// runPipes runs the command with a pipe for each stream.
func (c *inside) runPipes(ctx context.Context, s container.Streams, stderr io.Writer) error {
	var input io.WriteCloser
	if s.Stdin != nil {
		var err error
		if input, err = c.cmd.StdinPipe(); err != nil {
			return err
		}
	}
	exited := make(chan struct{})
	var outputs []*os.File
	var copies sync.WaitGroup
	output := func(w io.Writer) (*os.File, error) {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		outputs = append(outputs, read)
		copies.Go(func() { drain(w, read, exited) })
		return write, nil
	}
	out, err := output(orNowhere(s.Stdout))
	if err == nil {
		defer out.Close()
		c.cmd.Stdout = out
		var errs *os.File
		if errs, err = output(stderr); err == nil {
			defer errs.Close()
			c.cmd.Stderr = errs
			if err = c.cmd.Start(); err == nil {
				out.Close()
				errs.Close()
				if input != nil {
					go func() { // ends with the client's stream, which the caller closes
						_, _ = io.Copy(input, s.Stdin)
						input.Close()
					}()
				}
				err = c.cmd.Wait()
			}
		}
	}
	close(exited)
	for _, f := range outputs {
		_ = f.SetReadDeadline(time.Now().Add(lingerLimit))
		defer f.Close()
	}
	copies.Wait()
	return err
}

// drain copies until the end, or, once the command has exited, until nothing
// more has come for lingerLimit: what the command left behind may hold the pipe.
// However slow w is, nothing that was said is lost.
func drain(w io.Writer, f *os.File, exited <-chan struct{}) {
	buf := make([]byte, 32<<10)
	for {
		select {
		case <-exited:
			_ = f.SetReadDeadline(time.Now().Add(lingerLimit))
		default:
		}
		n, err := f.Read(buf)
		if n > 0 && w != nil {
			if _, failed := w.Write(buf[:n]); failed != nil {
				w = nil // the command is being ended for that
			}
		}
		if err != nil && !(errors.Is(err, os.ErrDeadlineExceeded) && !closed(exited)) {
			return
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func orNowhere(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// runTerminal runs the command on a terminal. The one that it sees is the OCI
// runtime's, in the container; ours is the OCI runtime's own.
func (c *inside) runTerminal(_ context.Context, s container.Streams, out io.Writer) error {
	master, slave, err := openTerminal()
	if err != nil {
		return err
	}
	defer master.Close()
	defer slave.Close()
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = slave, slave, slave
	c.cmd.SysProcAttr = terminalOf(c.cmd.SysProcAttr)
	if err := c.cmd.Start(); err != nil {
		return err
	}
	slave.Close()
	go func() { // ends with the client's channel, which the caller closes
		for size := range s.Resize {
			_ = resize(master, size)
		}
	}()
	if s.Stdin != nil {
		go func() { _, _ = io.Copy(master, s.Stdin) }() // ends with the client's stream
	}
	var copies sync.WaitGroup
	copies.Go(func() { _, _ = io.Copy(out, master) }) // ends by EIO: nobody has the terminal any more
	err = c.cmd.Wait()
	copies.Wait()
	return err
}

// gate holds back what is written to it until it is opened.
type gate struct {
	mu     sync.Mutex // protects what follows
	w      io.Writer  // nil: nobody wants to hear it
	held   []byte
	opened bool
}

// maxHeld is more than an OCI runtime says.
const maxHeld = 64 << 10

func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.opened && len(g.held)+len(p) <= maxHeld {
		g.held = append(g.held, p...)
		return len(p), nil
	}
	if err := g.release(); err != nil {
		return 0, err
	}
	if g.w == nil {
		return len(p), nil
	}
	return g.w.Write(p)
}

func (g *gate) open() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.release()
}

// release writes what is held. Caller holds mu.
func (g *gate) release() error {
	g.opened = true
	held := g.held
	g.held = nil
	if g.w == nil || len(held) == 0 {
		return nil
	}
	_, err := g.w.Write(held)
	return err
}
