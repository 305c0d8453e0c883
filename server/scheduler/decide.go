package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Verdict is what all plugins said of one node.
type Verdict struct {
	Node    *Node
	Reasons []Rejection // empty if the node will do
	Total   int64       // the weighted mean of the scores, 0 to 100
	scores  []int64     // one for each of the profile's scores
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
}

// Decide chooses the best node for p: of those that pass all filters the one
// with the best weighted mean of scores, and among equals the one that Pick
// picks. It changes nothing.
func (f Profile) Decide(s *Snapshot, p *Pod) Decision {
	d := Decision{Verdicts: make([]Verdict, len(s.nodes))}
	scores := make([]int64, len(s.nodes)*len(f.Scores))
	best, equals := -1, 0
	for i, n := range s.nodes {
		v := &d.Verdicts[i]
		v.Node = n
		v.Reasons = f.filter(p, n)
		if !v.Fits() {
			continue
		}
		v.scores = scores[i*len(f.Scores) : (i+1)*len(f.Scores)]
		v.Total = f.score(p, n, v.scores)
		switch {
		case best < 0 || v.Total > d.Verdicts[best].Total:
			best, equals = i, 1
		case v.Total == d.Verdicts[best].Total:
			if equals++; f.Pick(equals) == 0 { // each of the equals is as likely
				best = i
			}
		}
	}
	if best >= 0 {
		d.Node = s.nodes[best].Name
	}
	return d
}

func (f Profile) filter(p *Pod, n *Node) []Rejection {
	var rejections []Rejection
	for _, filter := range f.Filters {
		for _, r := range filter.Check(p, n) {
			rejections = append(rejections, Rejection{filter.Name(), r})
		}
	}
	return rejections
}

// score fills into with what each plugin says, within 0 and 100, and returns
// the weighted mean.
func (f Profile) score(p *Pod, n *Node, into []int64) int64 {
	var sum, weights int64
	for i, s := range f.Scores {
		into[i] = min(max(s.Score.Score(p, n), 0), 100)
		sum += s.Weight * into[i]
		weights += s.Weight
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
	for i := range d.Verdicts {
		for _, r := range d.Verdicts[i].Reasons {
			j, ok := at[r]
			if !ok {
				j = len(counts)
				at[r] = j
				counts = append(counts, Count{Rejection: r})
			}
			counts[j].Nodes++
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
func (d *Decision) Message() string {
	if len(d.Verdicts) == 0 {
		return "0/0 nodes fit: no node has joined the cluster yet"
	}
	message := fmt.Sprintf("%d/%d nodes fit", d.Fitting(), len(d.Verdicts))
	var words []string
	for _, c := range d.Counts() {
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
