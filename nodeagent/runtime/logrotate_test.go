package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/runtime"
)

// lines are the numbered lines of the chatty container.
func lines(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %06d %s\n", i, strings.Repeat("x", 100))
	}
	return b.String()
}

// TestLogsAreRotatedWithoutLoss has a chatty container whose log is rotated
// several times, and a follower that reads all the while.
func TestLogsAreRotatedWithoutLoss(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	small := n.with(t, func(c *runtime.Config) { c.LogBytes, c.LogFiles = 64<<10, 20 })
	id := n.run(t, shell(n.makePod(t, "u1"), `i=0; while [ $i -lt 6000 ]; do i=$((i+1)); printf "line %06d `+strings.Repeat("x", 100)+`\n" $i; [ $((i%300)) = 0 ] && sleep 0.2; done; exit 0`))
	if _, err := small.List(t.Context()); err != nil { // as the agent does: it learns what runs
		t.Fatal(err)
	}
	rotating, stop := context.WithCancel(t.Context())
	rotated := make(chan error, 1)
	go func() { rotated <- small.RotateLogs(rotating) }()
	followed := newSaid()
	done := make(chan error, 1)
	go func() {
		done <- small.Logs(t.Context(), id, runtime.LogOptions{Follow: true, Tail: -1}, followed)
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(3 * time.Minute): // on a machine with as much to do as it can bear
		state, err := n.Podman(t.Context(), "inspect", "--format", "{{.State.Status}}, conmon {{.State.ConmonPid}}", id)
		files, _ := filepath.Glob(filepath.Join(n.Home, ".local/share/containers/storage/overlay-containers", id, "userdata/*"))
		t.Fatalf("a followed log does not end with its container, it has %d lines; the container: %s (%v), its files: %s",
			strings.Count(followed.String(), "\n"), state, err, files)
	}
	stop()
	<-rotated
	if got, want := followed.String(), lines(1, 6000); got != want {
		t.Errorf("the follower has %d lines of %d bytes, want %d", strings.Count(got, "\n"), len(got), len(want))
	}
	files, _ := filepath.Glob(filepath.Join(n.Home, ".local/share/containers/storage/overlay-containers", id, "userdata/ctr.log*"))
	if len(files) < 3 {
		t.Errorf("the log was not rotated: %v", files)
	}
	for _, tail := range []int{0, 1, 500, 1500, 3000, 6000} {
		var got bytes.Buffer
		if err := small.Logs(t.Context(), id, runtime.LogOptions{Tail: int64(tail)}, &got); err != nil || got.String() != lines(6001-tail, 6000) {
			t.Errorf("tail %d: %d lines, %v", tail, strings.Count(got.String(), "\n"), err)
		}
	}
}

// TestClosedLog has a conmon that lives on after it has closed the log, as it does
// while Podman's exit command runs.
func TestClosedLog(t *testing.T) {
	t.Parallel()
	w, err := os.Create(filepath.Join(t.TempDir(), "ctr.log"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(w.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !runtime.Written(f, os.Getpid()) || !runtime.Written(f, -1) {
		t.Error("a log that is open for writing seems closed")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first time leaves no lease
		if runtime.Written(f, os.Getpid()) {
			t.Error("a closed log seems open for writing")
		}
	}
}

// TestTailAcrossFiles cuts a line at a rotation.
func TestTailAcrossFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const at = "2016-10-06T00:17:09Z stdout "
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("log.9", at+"F one\n"+at+"F two\n")
	write("log.10", at+"F three\n"+at+"P fo\n"+at+"P u")
	write("log.11", "")
	write("log.tmp", "no part of it\n")
	last := []byte(at + "F r\n" + at + "F five\n" + at + "P si\n")
	for tail, want := range map[int64]string{
		-1: "one\ntwo\nthree\nfour\nfive\nsi", 1: "si", 2: "five\nsi", 3: "four\nfive\nsi", 4: "three\nfour\nfive\nsi", 5: "two\nthree\nfour\nfive\nsi", 9: "one\ntwo\nthree\nfour\nfive\nsi",
	} {
		write("log.10", at+"F three\n"+at+"P fou\n")
		got, err := runtime.ReadLog(dir, last, runtime.LogOptions{Tail: tail})
		if err != nil || got != want {
			t.Errorf("tail %d: %q, %v, want %q", tail, got, err, want)
		}
	}
}

// TestLogBetweenTwoFiles reads a log whose newest file is empty yet, and whose
// lines go on over it.
func TestLogBetweenTwoFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	early, late := "2016-10-06T00:17:09.9Z stdout ", "2016-10-06T00:17:10Z stdout "
	text := early + "F one\n" + early + "P tw\n" + late + "P o\n"
	if err := os.WriteFile(filepath.Join(dir, "log.1"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	since, _ := time.Parse(time.RFC3339, late[:20])
	for name, c := range map[string]struct {
		options runtime.LogOptions
		rest    string
		want    string
	}{
		"the last line":   {runtime.LogOptions{Tail: 1}, "", "two"},
		"with its end":    {runtime.LogOptions{Tail: 1}, late + "F !\n", "two!\n"},
		"no line":         {runtime.LogOptions{Tail: 0}, "", ""},
		"began too early": {runtime.LogOptions{Tail: -1, Since: since}, late + "F !\n" + late + "F three\n", "three\n"},
	} {
		if got, err := runtime.ReadLog(dir, []byte(c.rest), c.options); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}
