package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/runtime"
)

// said is a writer that can be waited for.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newSaid() *said { return &said{more: make(chan struct{}, 1)} }

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *said) await(t *testing.T, want string) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for !strings.Contains(s.String(), want) {
		select {
		case <-s.more:
		case <-limit:
			t.Fatalf("%q does not come: %q", want, s)
		}
	}
}

func TestLogsAreReadAndFollowed(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	spec := shell(n.makePod(t, "u1"), `echo one; sleep 0.5; echo two >&2; sleep 0.5; printf "no end"; echo; read line </go/fifo; echo "got $line"; head -c 20000 /dev/zero | tr "\0" x; echo; exit 0`)
	spec.Command[2] = "mkdir /go; mkfifo /go/fifo; " + spec.Command[2]
	id := n.run(t, spec)
	followed := newSaid()
	done := make(chan error, 1)
	go func() {
		done <- n.Logs(t.Context(), id, runtime.LogOptions{Follow: true, Tail: -1}, followed)
	}()
	followed.await(t, "no end\n")
	if out, err := n.Podman(t.Context(), "exec", id, "sh", "-c", "echo hello >/go/fifo"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("a followed log does not end with its container")
	}
	all := "one\ntwo\nno end\ngot hello\n" + strings.Repeat("x", 20000) + "\n"
	lines := strings.SplitAfter(all, "\n")
	if followed.String() != all {
		t.Errorf("followed: %d bytes, want %d", len(followed.String()), len(all))
	}
	for tail, want := range map[int64]string{-1: all, 0: "", 1: lines[4], 2: lines[3] + lines[4], 100: all} {
		var got bytes.Buffer
		if err := n.Logs(t.Context(), id, runtime.LogOptions{Tail: tail, Follow: true}, &got); err != nil || got.String() != want {
			t.Errorf("tail %d: %d bytes, %v, want %d bytes", tail, got.Len(), err, len(want))
		}
	}
	var stamped bytes.Buffer
	if err := n.Logs(t.Context(), id, runtime.LogOptions{Tail: -1, Timestamps: true}, &stamped); err != nil {
		t.Fatal(err)
	}
	if want := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z one\n`); !want.Match(stamped.Bytes()) || strings.Count(stamped.String(), "Z ") != 5 {
		t.Errorf("timestamps: %.300s", stamped.String())
	}
	var none bytes.Buffer
	if err := n.Logs(t.Context(), id, runtime.LogOptions{Tail: -1, Since: time.Now().Add(time.Hour)}, &none); err != nil || none.Len() != 0 {
		t.Errorf("since: %q, %v", &none, err)
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	id := n.run(t, shell(n.makePod(t, "u1"), "echo here; sleep 1000"))
	ctx, cancel := context.WithCancel(t.Context())
	followed := newSaid()
	done := make(chan error, 1)
	go func() { done <- n.Logs(ctx, id, runtime.LogOptions{Follow: true, Tail: -1}, followed) }()
	followed.await(t, "here\n")
	cancel()
	select {
	case err := <-done:
		if err != context.Canceled {
			t.Errorf("%v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on")
	}
}

func FuzzLogLines(f *testing.F) {
	f.Add([]byte("2016-10-06T00:17:09.669794202Z stdout F text\n"))
	f.Add([]byte("2016-10-06T00:17:09.669794202+02:00 stderr P \n2016-10-06T00:17:09Z stdout F\n"))
	f.Add([]byte("\n\x00\x00 stdout F x\n2016-10-06T00:17:09Z other F x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		counts := map[int64]int{}
		for _, tail := range []int64{0, 1, 2, 1 << 40} {
			out, err := runtime.ReadLog(t.TempDir(), data, runtime.LogOptions{Tail: tail})
			if err != nil {
				t.Fatal(err)
			}
			counts[tail] = strings.Count(out, "\n")
		}
		if counts[0] != 0 || counts[1] > 1 || counts[2] > 2 || counts[1] > counts[2] || counts[2] > counts[1<<40] {
			t.Errorf("lines by tail: %v", counts)
		}
		all, err := runtime.ReadLog(t.TempDir(), data, runtime.LogOptions{Tail: -1})
		if err != nil || strings.Count(all, "\n") != counts[1<<40] {
			t.Errorf("all: %q, %v, by tail %v", all, err, fmt.Sprint(counts))
		}
	})
}
