package scheduler

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Verdict is what all plugins said of one node.
type Verdict struct {
	Node    *Node
	Reasons []Rejection // empty if the node will do
	Waived  []Rejection // what soft filters have against it, when it is so with all that will do
	Total   int64       // the weighted mean of the scores, 0 to 100
	index   int         // among the nodes that will do
}

// Fits reports whether the node will do.
func (v *Verdict) Fits() bool { return len(v.Reasons) == 0 }

// Rejection is a reason, and the filter that gave it.
type Rejection struct {
	Filter string
	Reason
}

// Decision is the outcome for one pod.
type Decision struct {
	Node     string // "" if none will do
	Verdicts []Verdict
	rankings []Ranking // one for each of the profile's scores; nil: all nodes are alike
}

// Decide chooses the best node for p: of those that pass all filters the one
// on which room was made for it, else the one with the best weighted mean of
// scores, and among equals the one that Pick picks. It changes nothing.
func (f Profile) Decide(s *Snapshot, p *Pod) Decision {
	d := Decision{Verdicts: make([]Verdict, len(s.nodes))}
	checks := f.prepare(s, p)
	fit := make([]*Node, 0, len(s.nodes))
	for i, n := range s.nodes {
		v := &d.Verdicts[i]
		v.Node = n
		if v.Reasons = checks.filterWithNominated(n); v.Fits() {
			v.index = len(fit)
			fit = append(fit, n)
		}
	}
	if len(fit) == 0 {
		return d
	}
	fit = d.soften(f, s, p, fit)
	d.rankings = make([]Ranking, len(f.Scores))
	for i, score := range f.Scores {
		d.rankings[i] = score.Rank(s, p, fit)
	}
	d.choose(f, s.Nominated(p.key()))
	return d
}

// soften leaves of the nodes that will do those that soft filters have nothing
// against, if there are any.
func (d *Decision) soften(f Profile, s *Snapshot, p *Pod, fit []*Node) []*Node {
	checks := Profile{Filters: f.Soft}.prepare(s, p)
	if len(checks.named) == 0 {
		return fit
	}
	left := make([]*Node, 0, len(fit))
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if !v.Fits() {
			continue
		}
		if v.Waived = checks.filter(v.Node); v.Waived == nil {
			v.index = len(left)
			left = append(left, v.Node)
		}
	}
	if len(left) == 0 {
		return fit // their indexes are as they were
	}
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		v.Reasons, v.Waived = append(v.Reasons, v.Waived...), nil
	}
	return left
}

func (d *Decision) choose(f Profile, nominated string) {
	best, equals := -1, 0
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if !v.Fits() {
			continue
		}
		v.Total = d.total(f, v.index)
		switch {
		case v.Node.Name == nominated:
			best, equals = i, math.MinInt
		case equals < 0:
		case best < 0 || v.Total > d.Verdicts[best].Total:
			best, equals = i, 1
		case v.Total == d.Verdicts[best].Total:
			if equals++; f.Pick(equals) == 0 { // each of the equals is as likely
				best = i
			}
		}
	}
	d.Node = d.Verdicts[best].Node.Name
}

// total is the weighted mean of what the plugins say that say something.
func (d *Decision) total(f Profile, index int) int64 {
	var sum, weights int64
	for i, r := range d.rankings {
		if r != nil {
			sum += f.Scores[i].Weight * min(max(r.Score(index), 0), 100)
			weights += f.Scores[i].Weight
		}
	}
	if weights == 0 {
		return 0
	}
	return (sum + weights/2) / weights
}

// Count is a reason and how many nodes it kept from doing.
type Count struct {
	Rejection
	Nodes int
}

// Counts returns the reasons, the most frequent first.
func (d *Decision) Counts() []Count {
	at := map[Rejection]int{}
	var counts []Count
	last := 0 // most nodes have the reason of the one before
	for i := range d.Verdicts {
		for _, r := range d.Verdicts[i].Reasons {
			if last == len(counts) || counts[last].Rejection != r {
				j, ok := at[r]
				if !ok {
					j = len(counts)
					at[r] = j
					counts = append(counts, Count{Rejection: r})
				}
				last = j
			}
			counts[last].Nodes++
		}
	}
	slices.SortStableFunc(counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), strings.Compare(a.One, b.One))
	})
	return counts
}

// Fitting is how many nodes will do.
func (d *Decision) Fitting() int {
	n := 0
	for i := range d.Verdicts {
		if d.Verdicts[i].Fits() {
			n++
		}
	}
	return n
}

// Message is the decision in a sentence:
// "0/3 nodes fit: 2 had not enough memory, 1 was cordoned".
func (d *Decision) Message() string { return d.message(d.Counts()) }

func (d *Decision) message(counts []Count) string {
	if len(d.Verdicts) == 0 {
		return "0/0 nodes fit: no node has joined the cluster yet"
	}
	message := fmt.Sprintf("%d/%d nodes fit", d.Fitting(), len(d.Verdicts))
	var words []string
	for _, c := range counts {
		words = append(words, c.String())
	}
	if len(words) == 0 {
		return message
	}
	return message + ": " + strings.Join(words, ", ")
}

// String is the count in words: "2 were cordoned".
func (c Count) String() string {
	if c.Nodes == 1 {
		return "1 " + c.One
	}
	return fmt.Sprintf("%d %s", c.Nodes, c.Many)
}
