package scheduler

// ranks is a Ranking by numbers that were made for all nodes at once.
type ranks struct {
	scores []int64
	words  func(i int) string
}

// Score implements Ranking.
func (r ranks) Score(i int) int64 { return r.scores[i] }

// Explain implements Ranking.
func (r ranks) Explain(i int) string { return r.words(i) }

// normalize turns raw numbers into scores: those from low to high into 0 to 100.
// nil if that is no difference.
func normalize(raw []int64, low, high int64) []int64 {
	if high <= low {
		return nil
	}
	scores := make([]int64, len(raw))
	for i, x := range raw {
		scores[i] = int64(100 * float64(x-low) / float64(high-low))
	}
	return scores
}

func collect(nodes []*Node, f func(n *Node) int64) []int64 {
	raw := make([]int64, len(nodes))
	for i, n := range nodes {
		raw[i] = f(n)
	}
	return raw
}
