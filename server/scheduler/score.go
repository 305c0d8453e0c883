package scheduler

import "fmt"

// LeastAllocated prefers the node of which the largest part would stay free:
// the mean of the free parts of CPU and memory. Containers that ask for
// nothing count as Kubernetes counts them.
type LeastAllocated struct{}

// Name implements Score.
func (LeastAllocated) Name() string { return "LeastAllocated" }

// Rank implements Score.
func (LeastAllocated) Rank(_ *Snapshot, p *Pod, nodes []*Node) Ranking {
	return usage{p, nodes,
		func(cpu, memory float64) int64 { return percent(1 - (cpu+memory)/2) },
		func(cpu, memory float64) string {
			return fmt.Sprintf("%d%% of the CPU and %d%% of the memory would stay free", percent(1-cpu), percent(1-memory))
		}}
}

// Balance prefers the node of which CPU and memory would be used alike, so that
// neither is left over without the other.
type Balance struct{}

// Name implements Score.
func (Balance) Name() string { return "BalancedAllocation" }

// Rank implements Score. It is 100 less the standard deviation of the used
// parts, as Kubernetes has it.
func (Balance) Rank(_ *Snapshot, p *Pod, nodes []*Node) Ranking {
	return usage{p, nodes,
		func(cpu, memory float64) int64 { return percent(1 - max(cpu-memory, memory-cpu)/2) },
		func(cpu, memory float64) string {
			return fmt.Sprintf("%d%% of the CPU and %d%% of the memory would be used", percent(cpu), percent(memory))
		}}
}

// usage is a Ranking by the parts of CPU and memory that would be used.
type usage struct {
	pod   *Pod
	nodes []*Node
	score func(cpu, memory float64) int64
	words func(cpu, memory float64) string
}

// Score implements Ranking.
func (u usage) Score(i int) int64 { return u.score(used(u.pod, u.nodes[i])) }

// Explain implements Ranking.
func (u usage) Explain(i int) string { return u.words(used(u.pod, u.nodes[i])) }

// used is which part of the node's CPU and memory would be used with p on it,
// 0 to 1.
func used(p *Pod, n *Node) (cpu, memory float64) {
	return part(n.Likely.MilliCPU+p.Likely.MilliCPU, n.Allocatable.MilliCPU),
		part(n.Likely.MemoryBytes+p.Likely.MemoryBytes, n.Allocatable.MemoryBytes)
}

func part(of, all int64) float64 {
	if all <= 0 || of >= all {
		return 1
	}
	return float64(of) / float64(all)
}

func percent(x float64) int64 { return int64(100*x + 0.5) }
