package scheduler

import (
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/api"
)

// board is what a node said last of its hardware.
type board struct {
	api.NodeHardwareStatus
	heard    time.Time // by the server's monotonic clock: the node's own may be wrong
	milliCPU float64   // what of its pods' requests its temperature showed then
	errors   int64     // of the storage, when it was first heard of
}

// A node's agent reports a change that matters within half a minute, and else every
// api.HardwareEvery: of older reports the scores go towards no opinion, and of much
// older ones nothing is left.
const (
	fresh = 3 * api.HardwareEvery
	stale = 10 * api.HardwareEvery
)

// At has decisions be of a time of the monotonic clock: reports grow old by it.
func (s *Snapshot) At(now time.Time) { s.now = now }

// PutHardware takes over what a node's board said at a time of the monotonic clock,
// and reports whether what is wrong with it changed.
func (s *Snapshot) PutHardware(h *api.NodeHardware, at time.Time) (changed bool) {
	was := s.boards[h.Name]
	b := &board{NodeHardwareStatus: h.Status, heard: at}
	if b.StorageErrors != nil {
		b.errors = *b.StorageErrors
	}
	if was != nil && was.BootID == b.BootID {
		b.errors = was.errors
	}
	if h.Status.BootID == "" && h.Status.Model == "" && len(h.Status.Conditions) == 0 { // it says nothing
		delete(s.boards, h.Name)
		b = nil
	} else {
		s.boards[h.Name] = b
	}
	if n := s.byName[h.Name]; n != nil {
		n.board = b
		if b != nil {
			b.milliCPU = warmed(was, b, float64(n.Likely.MilliCPU))
		}
	}
	return !slices.Equal(was.wrong(), b.wrong())
}

// warming is the time in which a board's temperature comes to show most (1-1/e) of what it
// is given to do: of boards that were measured, with and without heatsinks, from four to
// eight minutes, but for those with fans.
const warming = 5 * time.Minute

// warmed is how much of asked the temperature of a report shows, by how long the board
// has been heard of.
func warmed(was, b *board, asked float64) float64 {
	if was == nil || was.BootID != b.BootID { // what it does it may have done for long
		return asked
	}
	return was.milliCPU + (asked-was.milliCPU)*(1-math.Exp(-float64(b.heard.Sub(was.heard))/float64(warming)))
}

// wrong are the conditions that are True, sorted.
func (b *board) wrong() (names []string) {
	if b == nil {
		return nil
	}
	names = b.Wrong()
	slices.Sort(names)
	return names
}

// freshness is how much a report counts: 1, and 0 when it is too old.
func (b *board) freshness(now time.Time) float64 {
	age := now.Sub(b.heard)
	return clamp(1 - float64(age-fresh)/float64(stale-fresh))
}

func clamp(x float64) float64 { return min(max(x, 0), 1) }

// conditionsOf reads an annotation that names conditions.
func conditionsOf(p *Pod, annotation string) []string {
	return strings.FieldsFunc(p.Annotations[annotation], func(r rune) bool { return r == ',' || r == ' ' })
}

// boardReasons are conditions in words.
var boardReasons = map[string]Reason{
	"Hot":                {"was too hot", "were too hot"},
	"Throttled":          {"was throttled", "were throttled"},
	"UnderVoltage":       same("had too low a supply voltage"),
	"LowBattery":         same("had little battery left"),
	"ReadOnlyFilesystem": same("had a file system that became read-only"),
	"OnBattery":          {"ran on battery", "ran on batteries"},
	"ClockUnsynced":      same("had a clock that nobody sets"),
	"StorageWorn":        same("had worn storage"),
}

func boardReason(condition string) Reason {
	if r, known := boardReasons[condition]; known {
		return r
	}
	return same("had the condition " + condition)
}

// SoundBoard wants a node whose file systems can be written to, and none of the
// conditions that the pod's annotation avoids.
type SoundBoard struct{}

// Name implements Filter.
func (SoundBoard) Name() string { return "SoundBoard" }

// Cures implements Filter.
func (SoundBoard) Cures(c Cause) bool { return c.ofBoards() }

// Prepare implements Filter.
func (SoundBoard) Prepare(s *Snapshot, p *Pod) Check {
	return avoid(s, append(conditionsOf(p, api.AnnotationAvoidConditions), "ReadOnlyFilesystem"), conditionsOf(p, api.AnnotationIgnoreConditions))
}

// CalmBoard is a soft filter: it wants a node that is cool, not held down, and well
// supplied.
type CalmBoard struct{}

// Name implements Filter.
func (CalmBoard) Name() string { return "CalmBoard" }

// Cures implements Filter.
func (CalmBoard) Cures(c Cause) bool { return c.ofBoards() }

// Prepare implements Filter.
func (CalmBoard) Prepare(s *Snapshot, p *Pod) Check {
	return avoid(s, []string{"Hot", "Throttled", "UnderVoltage", "LowBattery"}, conditionsOf(p, api.AnnotationIgnoreConditions))
}

// avoid is a Check for conditions, but those to be ignored; nil where no board tells.
func avoid(s *Snapshot, conditions, ignored []string) Check {
	if len(s.boards) == 0 || slices.Contains(ignored, "*") {
		return nil
	}
	conditions = slices.DeleteFunc(conditions, func(c string) bool { return slices.Contains(ignored, c) })
	return checkFunc(func(n *Node) (reasons []Reason) {
		if n.board == nil || n.board.freshness(s.now) == 0 {
			return nil
		}
		for _, c := range n.board.Conditions { // of every node for every pod: without a list of them
			if c.Status == metav1.ConditionTrue && slices.Contains(conditions, c.Type) {
				reasons = append(reasons, boardReason(c.Type))
			}
		}
		return reasons
	})
}

// waived says what spoke against all nodes that would do; "" if nothing did.
func (d *Decision) waived() string {
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if v.Node.Name != d.Node || len(v.Waived) == 0 {
			continue
		}
		words := make([]string, len(v.Waived))
		for j, r := range v.Waived {
			words[j] = r.One
		}
		return "no better node will do: " + d.Node + " " + strings.Join(words, " and ")
	}
	return ""
}
