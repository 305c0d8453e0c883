package scheduler

import (
	"cmp"
	"container/list"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bramble.dev/bramble/server/api"
)

// What is kept of explanations: the last pods, the best nodes of each (which
// api.PlacementStatus.Nodes says), and not more nodes than that of all pods, which
// are some 300 bytes each.
const (
	maxExplained = 256
	maxNodes     = 32
	maxVerdicts  = 2048
)

// explain is d as people read it.
func (f Profile) explain(d *Decision, basis string, now time.Time) api.PlacementStatus {
	counts := d.Counts()
	s := api.PlacementStatus{
		NodeName: d.Node, Message: d.message(counts), Basis: basis, DecidedAt: metav1.NewTime(now),
		NodesTotal: int32(len(d.Verdicts)), NodesFit: int32(d.Fitting()),
	}
	for _, c := range counts {
		s.Rejections = append(s.Rejections, api.PlacementRejection{Plugin: c.Filter, Reason: c.Many, Nodes: int32(c.Nodes)})
	}
	for _, v := range ranked(d) {
		s.Nodes = append(s.Nodes, f.explainNode(d, v))
	}
	return s
}

// ranked is the chosen node, the others that will do from the best on, and
// those that will not; not more than maxNodes.
func ranked(d *Decision) []*Verdict {
	best := make([]*Verdict, 0, min(len(d.Verdicts), maxNodes)+1)
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if len(best) == maxNodes && d.order(v, best[maxNodes-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, v, d.order)
		best = slices.Insert(best, at, v)
		best = best[:min(len(best), maxNodes)]
	}
	return best
}

func (d *Decision) order(a, b *Verdict) int {
	return cmp.Or(
		first(a.Node.Name == d.Node, b.Node.Name == d.Node),
		first(a.Fits(), b.Fits()),
		cmp.Compare(b.Total, a.Total),
		strings.Compare(a.Node.Name, b.Node.Name),
	)
}

// first sorts true before false.
func first(a, b bool) int {
	switch {
	case a && !b:
		return -1
	case b && !a:
		return 1
	}
	return 0
}

func (f Profile) explainNode(d *Decision, v *Verdict) api.PlacementNode {
	n := api.PlacementNode{Name: v.Node.Name, Fits: v.Fits(), Score: v.Total}
	for _, r := range v.Reasons {
		n.Reasons = append(n.Reasons, r.One)
	}
	for _, r := range v.Waived {
		n.Waived = append(n.Waived, r.One)
	}
	if !v.Fits() {
		return n
	}
	for i, r := range d.rankings {
		if r != nil {
			n.Scores = append(n.Scores, api.PlacementScore{
				Plugin: f.Scores[i].Name(), Score: r.Score(v.index), Weight: f.Scores[i].Weight, Detail: r.Explain(v.index),
			})
		}
	}
	return n
}

// explanations keeps why the last pods are where they are, at most maxExplained and
// maxVerdicts of nodes. It is not safe for concurrent use.
type explanations struct {
	entries  map[types.NamespacedName]*list.Element
	order    list.List // of *explanation, the latest first
	verdicts int       // of nodes, in all of them
}

type explanation struct {
	pod    types.NamespacedName
	uid    types.UID
	status api.PlacementStatus
}

func newExplanations() *explanations {
	return &explanations{entries: make(map[types.NamespacedName]*list.Element)}
}

func (e *explanations) put(x *explanation) {
	e.drop(x.pod)
	e.entries[x.pod] = e.order.PushFront(x)
	e.verdicts += len(x.status.Nodes)
	for e.order.Len() > maxExplained || e.verdicts > maxVerdicts {
		e.drop(e.order.Back().Value.(*explanation).pod)
	}
}

// get returns what is kept of that very pod, not of an earlier one of its name.
func (e *explanations) get(pod types.NamespacedName, uid types.UID) *explanation {
	el, ok := e.entries[pod]
	if !ok {
		return nil
	}
	if x := el.Value.(*explanation); x.uid == uid {
		return x
	}
	return nil
}

func (e *explanations) drop(pod types.NamespacedName) {
	if el, ok := e.entries[pod]; ok {
		e.verdicts -= len(el.Value.(*explanation).status.Nodes)
		e.order.Remove(el)
		delete(e.entries, pod)
	}
}
