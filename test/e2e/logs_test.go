package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/test/cluster"
)

// chatter counts aloud until it is told that it is enough, says ten lines more
// with pauses, and ends when it is told to. In its next life it says less.
const chatter = `[ -e /v/again ] && { echo second life; exec sleep 100000; }
touch /v/again
i=0
until [ -e /v/enough ]; do
  i=$((i+1)); printf "%08d xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n" $i
  [ $((i%200)) = 0 ] && sleep 0.25
done
for part in a b; do sleep 1.2; for n in 1 2 3 4 5; do echo $part $n; done; done
until [ -e /v/end ]; do sleep 0.1; done
echo end; exit 3`

// spoken are a log's lines, and when they were said.
type spoken struct {
	lines []string
	times []time.Time
}

func (l spoken) text(from int) string { return strings.Join(l.lines[from:], "") }

// stamped is the text with times.
func (l spoken) stamped(from int) string {
	var b strings.Builder
	for i := from; i < len(l.lines); i++ {
		b.WriteString(l.times[i].Format("2006-01-02T15:04:05.000000000Z07:00 ") + l.lines[i])
	}
	return b.String()
}

// since is the number of the first line that was said then or later.
func (l spoken) since(at time.Time) int {
	n, _ := slices.BinarySearchFunc(l.times, at, time.Time.Compare)
	return n
}

// logFiles are the files in the directories of the node's containers whose names
// match pattern.
func logFiles(n *cluster.Node, pattern string) []string {
	found, _ := filepath.Glob(filepath.Join(n.Home, ".local/share/containers/storage/overlay-containers/*/userdata", pattern))
	return found
}

// rotated says whether no log that conmon writes on the node is full.
func rotated(n *cluster.Node, limit int64) bool {
	return !slices.ContainsFunc(logFiles(n, "ctr.log"), func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || info.Size() >= limit
	})
}

// readKept reads what conmon has written and the agent has kept of the one log of
// the node that was rotated, and returns the number of its oldest full file.
func readKept(t *testing.T, n *cluster.Node) (kept spoken, oldest int) {
	t.Helper()
	numbered := map[int]string{}
	for _, path := range logFiles(n, "ctr.log.*") {
		if n, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(path), ".")); err == nil {
			numbered[n] = path
			oldest = max(oldest, n)
		}
	}
	if len(numbered) == 0 {
		return kept, 0
	}
	var data []byte
	current := strings.TrimSuffix(numbered[oldest], filepath.Ext(numbered[oldest]))
	numbered[oldest+1] = current
	for n := oldest + 1; numbered[n] != ""; n-- {
		piece, err := os.ReadFile(numbered[n])
		if err != nil {
			return kept, 0 // rotated this moment
		}
		oldest, data = n, append(piece, data...)
	}
	inLine := false
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			break // being written
		}
		stamp, rest, _ := strings.Cut(line, " stdout ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil {
			t.Fatalf("the log's files have %q", line)
		}
		if !inLine {
			kept.lines, kept.times = append(kept.lines, ""), append(kept.times, at.UTC())
		}
		if inLine = rest[0] == 'P'; inLine {
			rest = strings.TrimSuffix(rest, "\n")
		}
		kept.lines[len(kept.lines)-1] += rest[2:]
	}
	return kept, oldest
}

// TestLogsOverRotation reads, with stock kubectl and every option, the log of a
// container that was rotated several times, of which the oldest files are gone:
// each line once and in order, and after a restart as before it.
func TestLogsOverRotation(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	n := s.StartNodeAs(t, "shelf", cluster.ForTest(t), "--container-log-max-size=64Ki", "--container-log-max-files=3")
	kubectl := filepath.Join(cluster.Programs(t), "kubectl")
	logs := func(flags ...string) string {
		t.Helper()
		out, err := s.Kubectl(kubectl, "", append([]string{"logs", "chatty"}, flags...)...)
		if err != nil {
			t.Error(err)
		}
		return out
	}
	s.Apply(one("chatty", "volumes: [{name: v, emptyDir: {}}]", chatter, "volumeMounts: [{name: v, mountPath: /v}]"))
	s.WaitFor("condition=Ready", "pod/chatty")
	followed := make(chan string, 1)
	go func() { followed <- logs("--follow") }()
	cluster.Eventually(t, time.Minute, func() string {
		if _, oldest := readKept(t, n); oldest < 2 {
			return fmt.Sprintf("the oldest file is number %d", oldest)
		}
		return ""
	})
	s.Must("exec", "chatty", "--", "touch", "/v/enough")
	cluster.Eventually(t, 20*time.Second, func() string {
		if out := logs("--tail=1"); out != "b 5\n" {
			return "the last line is " + out
		}
		return ""
	})
	cluster.Eventually(t, 20*time.Second, func() string { // a full file is still to be rotated
		if !rotated(n, 64<<10) {
			return "the log is full and is not rotated"
		}
		return ""
	})
	var kept spoken
	cluster.Eventually(t, 20*time.Second, func() string { // what is renamed meanwhile is not read
		if kept, _ = readKept(t, n); len(kept.lines) == 0 {
			return "the log is being rotated"
		}
		return ""
	})
	if len(kept.lines) < 500 || !slices.IsSortedFunc(kept.times, time.Time.Compare) {
		t.Fatalf("of the log %d lines are kept", len(kept.lines))
	}
	readEveryWay(t, kept, logs)

	s.Must("exec", "chatty", "--", "touch", "/v/end")
	if got, whole := <-followed, counted(kept)+"end\n"; got != whole {
		t.Errorf("the follower has %d lines of %d bytes, want %d of %d", strings.Count(got, "\n"), len(got), strings.Count(whole, "\n"), len(whole))
	}
	cluster.Eventually(t, 20*time.Second, func() string {
		if out := logs(); out != "second life\n" {
			return fmt.Sprintf("the new container's log is %.100q", out)
		}
		return ""
	})
	previous, _ := readKept(t, n)
	if len(previous.lines) <= len(kept.lines) {
		t.Fatalf("after the restart %d lines of the old log are kept, before it %d", len(previous.lines), len(kept.lines))
	}
	if last := previous.text(len(kept.lines)); last != "end\n" || previous.lines[0] != kept.lines[0] {
		t.Errorf("after the restart the old log begins with %q and ends with %q", previous.lines[0], last)
	}
	readEveryWay(t, previous, func(flags ...string) string { return logs(append(flags, "--previous")...) })
}

// counted is the text of all that was said up to the end of kept, of which the
// first line may be the rest of one.
func counted(kept spoken) string {
	first, _ := strconv.Atoi(kept.lines[1][:8])
	var b strings.Builder
	for i := 1; i < first; i++ {
		fmt.Fprintf(&b, "%08d%s", i, kept.lines[1][8:])
	}
	return b.String() + kept.text(1)
}

// readEveryWay compares what a log's options show with what is kept.
func readEveryWay(t *testing.T, kept spoken, logs func(flags ...string) string) {
	t.Helper()
	count := len(kept.lines)
	said := kept.times[slices.Index(kept.lines, "b 1\n")] // after a pause of more than a second
	since := said.Truncate(time.Second)
	from, at := kept.since(since), "--since-time="+since.Format(time.RFC3339)
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{nil, kept.text(0)},
		{[]string{"--timestamps"}, kept.stamped(0)},
		{[]string{fmt.Sprintf("--tail=%d", count-100)}, kept.text(100)}, // from the middle of the oldest file
		{[]string{at, fmt.Sprintf("--tail=%d", count)}, kept.text(from)},
		{[]string{"--limit-bytes=70001"}, kept.text(0)[:70001]},
		{[]string{at, "--timestamps", "--tail=3", "--limit-bytes=90"}, kept.stamped(max(from, count-3))[:90]},
	} {
		if got := logs(c.flags...); got != c.want {
			t.Errorf("%v: %d lines of %d bytes, want %d of %d: %.200q ...", c.flags, strings.Count(got, "\n"), len(got), strings.Count(c.want, "\n"), len(c.want), got)
		}
	}
	seconds := int(time.Since(said).Round(time.Second).Seconds())
	age := time.Duration(seconds) * time.Second
	before := time.Now()
	got := logs(fmt.Sprintf("--since=%ds", seconds))
	most, least := kept.text(kept.since(before.Add(-age))), kept.text(kept.since(time.Now().Add(-age)))
	if !strings.HasSuffix(most, got) || !strings.HasSuffix(got, least) || got != "" && !strings.Contains("\n"+kept.text(0), "\n"+got) {
		t.Errorf("--since=%ds: %q, want from %q to %q", seconds, got, least, most)
	}
}
