package store_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bramble.dev/bramble/server/store"
)

// The test binary is its own victim: with killDir set it only writes to the
// store there, until it is killed.
const (
	killDir    = "BRAMBLE_KILL_DIR"
	killPoints = "BRAMBLE_KILL_POINTS" // how many kills; default 5
	writers    = 20
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(killDir); dir != "" {
		if err := victim(context.Background(), dir, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// victim writes with many writers for ever. It says "revision N" for each
// revision that it is handed, and "saved NAME N" for each commit that was
// acknowledged.
func victim(ctx context.Context, dir string, out io.Writer) error {
	s, err := store.Open(ctx, store.Config{Dir: dir})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, format, args...)
	}
	failed := make(chan error)
	for w := range writers {
		go func() {
			for n := 0; ; n++ {
				k := key(fmt.Sprintf("w%d-%d", w, n%20))
				now, _ := s.Get(k)
				revs, err := s.Commit(ctx, store.Change{Key: k, Rev: now.Rev, Volatile: n%5 == 4, Body: func(rev uint64) []byte {
					say("revision %d\n", rev)
					return fmt.Appendf(nil, "%d %s", rev, strings.Repeat("x", 2000))
				}})
				if err != nil {
					failed <- err
					return
				}
				if n%5 != 4 {
					say("saved %s %d\n", k.Name, revs[0])
				}
			}
		}()
	}
	return <-failed
}

// TestKill kills a process that writes with 20 writers, again and again on the
// same file: each acknowledged write is there, the file is sound, and no
// revision is handed out twice.
func TestKill(t *testing.T) {
	points := 5
	if text := os.Getenv(killPoints); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s: %v", killPoints, err)
		}
		points = n
	}
	dir := t.TempDir()
	handedOut := map[uint64]bool{}
	saved := map[string]uint64{}
	for point := range points {
		killOnce(t, dir, time.Duration(50+rand.IntN(400))*time.Millisecond, handedOut, saved)
		start := time.Now()
		s := open(t, dir)
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("point %d: %v until it opened", point, took)
		}
		for name, rev := range saved {
			// A later write may have been made without being acknowledged.
			e, ok := s.Get(key(name))
			if !ok || e.Rev < rev || !strings.HasPrefix(string(e.Body.Bytes()), fmt.Sprint(e.Rev, " ")) {
				t.Fatalf("point %d: %s was saved at %d and is %d, %.20q", point, name, rev, e.Rev, e.Body.Bytes())
			}
		}
		if handedOut[s.Revision()] {
			t.Errorf("point %d: revision %d comes again", point, s.Revision())
		}
		s.Close()
		integrity(t, dir)
	}
	if len(saved) == 0 {
		t.Error("nothing was written")
	}
	t.Logf("%d kills, %d revisions", points, len(handedOut))
}

// killOnce runs a victim, kills it after a while and notes what it said.
func killOnce(t *testing.T, dir string, after time.Duration, handedOut map[uint64]bool, saved map[string]uint64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var timer *time.Timer
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil { // a last line that is cut off says nothing
			break
		}
		if timer == nil { // it is up
			timer = time.AfterFunc(after, func() { cmd.Process.Kill() })
		}
		var name string
		var rev uint64
		if _, err := fmt.Sscanf(line, "saved %s %d", &name, &rev); err == nil {
			saved[name] = max(saved[name], rev)
			continue
		}
		if _, err := fmt.Sscanf(line, "revision %d", &rev); err != nil {
			t.Errorf("the victim says %q", line)
		}
		if handedOut[rev] {
			t.Errorf("revision %d was handed out twice", rev)
		}
		handedOut[rev] = true
	}
	if timer == nil {
		t.Error("the victim said nothing")
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the victim ended by itself")
	}
}
