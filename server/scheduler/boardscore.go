package scheduler

import (
	"fmt"
	"math"
	"strings"
)

// BoardScore prefers nodes by what their boards say. A node that says nothing has 50,
// no opinion, and one whose report grows old goes there.
type BoardScore struct {
	name string
	// of says how good a node is for the pod, 0 to 100, and to say, which may be nil, why;
	// known is false where its board does not tell.
	of func(p *Pod, n *Node, say *words) (score float64, known bool)
	// wants reports whether it matters to the pod; nil: it does to all.
	wants func(p *Pod) bool
}

// The scores by boards.
var (
	// Thermal prefers a node that will stay far below the temperature at which it slows
	// down, with what it has been given since its last report and with the pod.
	Thermal = BoardScore{name: "Thermal", of: thermal}
	// Power prefers a node whose supply holds.
	Power = BoardScore{name: "Power", of: power}
	// Memory prefers a node whose tasks need not wait for memory.
	Memory = BoardScore{name: "Memory", of: memory}
	// Storage prefers, for a pod that writes to the node's storage, one that has room
	// and is not worn.
	Storage = BoardScore{name: "Storage", of: storage, wants: writes}
	// Network prefers a node with a fast link.
	Network = BoardScore{name: "Network", of: network}
	// Energy prefers a node on mains power, or with a full battery.
	Energy = BoardScore{name: "Energy", of: energy}
)

// What heat costs.
const (
	kelvinPerCore = 6  // a guess for a board that nothing is known of
	headroom      = 30 // K below the limit at which a board is as good as any
	margin        = 5  // K below it at which it is no good
	perKelvinRise = 2  // points, for each K that it rose in a minute
)

// Name implements Score.
func (b BoardScore) Name() string { return b.name }

// Rank implements Score.
func (b BoardScore) Rank(s *Snapshot, p *Pod, nodes []*Node) Ranking {
	if len(s.boards) == 0 || b.wants != nil && !b.wants(p) {
		return nil
	}
	scores := make([]int64, len(nodes))
	told := false
	for i, n := range nodes {
		score, known := b.score(s, p, n, nil)
		scores[i] = int64(math.Round(score))
		told = told || known
	}
	if !told {
		return nil
	}
	now := s.now
	return ranks{scores, func(i int) string {
		say := &words{}
		if _, known := b.score(&Snapshot{now: now}, p, nodes[i], say); !known {
			return "not known"
		}
		return strings.Join(*say, ", ")
	}}
}

// score is 50 where the board does not tell, and goes there as its report grows old.
func (b BoardScore) score(s *Snapshot, p *Pod, n *Node, say *words) (score float64, known bool) {
	if n.board == nil {
		return 50, false
	}
	score, known = b.of(p, n, say)
	if !known {
		return 50, false
	}
	f := n.board.freshness(s.now)
	if f < 1 && say != nil {
		*say = append(*say, "by an old report")
	}
	return 50 + (min(max(score, 0), 100)-50)*f, true
}

// words say why a score is what it is.
type words []string

func (w *words) add(format string, args ...any) { *w = append(*w, fmt.Sprintf(format, args...)) }

func thermal(p *Pod, n *Node, say *words) (score float64, known bool) {
	b := n.board
	if b.SoCTemperatureMilliC == nil || b.SoCTemperatureSoftMilliC == nil {
		return 0, false
	}
	now, soft := float64(*b.SoCTemperatureMilliC)/1000, float64(*b.SoCTemperatureSoftMilliC)/1000
	cores := (float64(n.Likely.MilliCPU+p.Likely.MilliCPU) - b.milliCPU) / 1000
	with := now + kelvinPerCore*cores
	rise := 0.0
	if b.SoCTemperatureRiseMilliC != nil {
		rise = max(float64(*b.SoCTemperatureRiseMilliC)/1000, 0)
	}
	if say != nil {
		say.add("%.0f °C, %.0f with it, slows down at %.0f", now, with, soft)
		if rise >= 0.1 {
			say.add("rising by %.1f a minute", rise)
		}
	}
	return 100*clamp((soft-margin-with)/headroom) - perKelvinRise*rise, true
}

func power(_ *Pod, n *Node, say *words) (score float64, known bool) {
	b := n.board
	if b.UnderVoltage == nil {
		return 0, false
	}
	score = 100
	text := "supply good"
	if b.UnderVoltageSinceBoot != nil && *b.UnderVoltageSinceBoot {
		score, text = 90, "under-voltage since the boot"
	}
	if b.SupplyMicroV != nil {
		score = min(score, 100*clamp((float64(*b.SupplyMicroV)/1e6-4.70)/0.15))
	}
	if b.UnderVoltageEvents != nil && *b.UnderVoltageEvents > 0 {
		score, text = score-20*float64(*b.UnderVoltageEvents), "under-voltage within the hour"
	}
	if *b.UnderVoltage {
		score, text = 0, "under-voltage now"
	}
	if say != nil {
		say.add("%s", text)
		if b.SupplyMicroV != nil {
			say.add("%.2f V", float64(*b.SupplyMicroV)/1e6)
		}
	}
	return score, true
}

func memory(p *Pod, n *Node, say *words) (score float64, known bool) {
	b := n.board
	if b.MemoryBytes == nil || b.MemoryAvailableBytes == nil || *b.MemoryBytes == 0 {
		return 0, false
	}
	left := float64(*b.MemoryAvailableBytes - p.Likely.MemoryBytes)
	score = 100 * clamp(left/(0.15*float64(*b.MemoryBytes)))
	if b.MemoryPressurePermille != nil {
		score *= 1 - clamp(float64(*b.MemoryPressurePermille)/200)
	}
	if say != nil {
		say.add("%d MiB available", *b.MemoryAvailableBytes>>20)
		if b.MemoryPressurePermille != nil && *b.MemoryPressurePermille > 0 {
			say.add("%.1f %% of the time waited for", float64(*b.MemoryPressurePermille)/10)
		}
	}
	return score, true
}

func storage(_ *Pod, n *Node, say *words) (score float64, known bool) {
	b := n.board
	if b.StorageBytes == nil || b.StorageAvailableBytes == nil || *b.StorageBytes == 0 {
		return 0, false
	}
	free := float64(*b.StorageAvailableBytes) / float64(*b.StorageBytes)
	score = 100 * clamp((free-0.05)/0.20)
	if b.StorageUsedLifePercent != nil {
		score = min(score, 100-float64(*b.StorageUsedLifePercent))
	}
	failing := b.StorageErrors != nil && *b.StorageErrors > b.errors
	if failing {
		score = 0
	}
	if say != nil {
		say.add("%.0f %% free", 100*free)
		if b.StorageUsedLifePercent != nil {
			say.add("%d %% of its life used", *b.StorageUsedLifePercent)
		}
		if failing {
			say.add("%d new errors", *b.StorageErrors-b.errors)
		}
	}
	return score, true
}

// writes reports whether the pod has a volume that is on its node's storage.
func writes(p *Pod) bool {
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if v.EmptyDir != nil && v.EmptyDir.Medium == "" || v.HostPath != nil || v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			return true
		}
	}
	return false
}

func network(_ *Pod, n *Node, say *words) (score float64, known bool) {
	b := n.board
	switch {
	case b.LinkSpeedMbit != nil:
		if say != nil {
			say.add("%d Mbit/s", *b.LinkSpeedMbit)
		}
		// 10 Mbit/s has 40, 100 has 70 and 1,000 has 100.
		return 30*math.Log10(max(float64(*b.LinkSpeedMbit), 1)) + 10, true
	case b.WirelessSignalDBm != nil:
		if say != nil {
			say.add("wireless at %d dBm", *b.WirelessSignalDBm)
		}
		return 90 * clamp((float64(*b.WirelessSignalDBm)+85)/35), true
	}
	return 0, false
}

func energy(_ *Pod, n *Node, say *words) (score float64, known bool) {
	b := n.board
	switch {
	case b.OnBattery == nil:
		return 0, false
	case !*b.OnBattery:
		if say != nil {
			say.add("on mains power")
		}
		return 100, true
	case b.BatteryPercent == nil:
		if say != nil {
			say.add("on battery")
		}
		return 50, true
	}
	if say != nil {
		say.add("on battery, %d %% left", *b.BatteryPercent)
	}
	return 100 * clamp((float64(*b.BatteryPercent)-20)/60), true
}
