package network_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/network/netapi"
	"bramble.dev/bramble/nodeagent/network/supervise"
)

func TestSupervisor(t *testing.T) {
	b := newBed(t)
	logFile := filepath.Join(t.TempDir(), "network.log")
	asUser := b.command("run", "-resolv-conf", b.resolv)
	command := []string{"setpriv", "--reuid", b.Name, "--regid", b.Name, "--init-groups", "env", "-i"}
	command = append(append(append(command, asUser.Env...), asUser.Path), asUser.Args[1:]...)
	watch := func() (stop func()) {
		s := supervise.New(supervise.Config{
			Command: command, Socket: filepath.Join(programs, "proxy-"+b.Name), LogFile: logFile,
			Log: slog.New(slog.NewTextHandler(logTo{t}, nil)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		}
	}
	health := func() netapi.Health {
		t.Helper()
		h, err := b.client.Health(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	stop := watch()
	first := health()
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var second netapi.Health
	b.eventually("another process", 20*time.Second, func() bool { second = health(); return second.PID != first.PID })
	stop()
	if h := health(); h != second {
		t.Errorf("the process did not outlive its supervisor: %+v, was %+v", h, second)
	}
	stop = watch() // as a restarted agent
	defer stop()
	if h := health(); h != second {
		t.Errorf("a second supervisor started another process: %+v, was %+v", h, second)
	}
	if err := syscall.Kill(second.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.eventually("a third process", 20*time.Second, func() bool { return health().PID != second.PID })
}
