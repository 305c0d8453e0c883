package scheduler

import "fmt"

// LeastAllocated prefers the node of which the largest part would stay free:
// the mean of the free parts of CPU and memory. Containers that ask for
// nothing count as Kubernetes counts them.
type LeastAllocated struct{}

// Name implements Score.
func (LeastAllocated) Name() string { return "LeastAllocated" }

// Score implements Score.
func (LeastAllocated) Score(p *Pod, n *Node) int64 {
	cpu, memory := used(p, n)
	return percent(1 - (cpu+memory)/2)
}

// Explain implements Score.
func (LeastAllocated) Explain(p *Pod, n *Node) string {
	cpu, memory := used(p, n)
	return fmt.Sprintf("%d%% of the CPU and %d%% of the memory would stay free", percent(1-cpu), percent(1-memory))
}

// Balance prefers the node of which CPU and memory would be used alike, so that
// neither is left over without the other.
type Balance struct{}

// Name implements Score.
func (Balance) Name() string { return "BalancedAllocation" }

// Score implements Score. It is 100 less the standard deviation of the used
// parts, as Kubernetes has it.
func (Balance) Score(p *Pod, n *Node) int64 {
	cpu, memory := used(p, n)
	return percent(1 - max(cpu-memory, memory-cpu)/2)
}

// Explain implements Score.
func (Balance) Explain(p *Pod, n *Node) string {
	cpu, memory := used(p, n)
	return fmt.Sprintf("%d%% of the CPU and %d%% of the memory would be used", percent(cpu), percent(memory))
}

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
