package scheduler

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxCandidates is for how many nodes it is tried which pods would have to go.
const maxCandidates = 100

// Candidate is a node that a pod fits on once others have left it.
type Candidate struct {
	Node    string
	Victims []*Pod // the most important first
}

// Preempt chooses the node that p is to get, if it fits on none, by ending pods
// of lower priority: as few as will do, and rather the less important. d is the
// decision that there is none. It changes nothing.
func (f Profile) Preempt(s *Snapshot, p *Pod, d *Decision) (Candidate, bool) {
	var best Candidate
	if p.Spec.PreemptionPolicy != nil && *p.Spec.PreemptionPolicy == corev1.PreemptNever {
		return best, false
	}
	checks := f.prepare(s, p)
	tried, found := 0, false
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if !f.mightHelp(v) || !slices.ContainsFunc(v.Node.pods, p.outranks) {
			continue
		}
		if c, ok := checks.selectVictims(v.Node); ok && (!found || c.better(&best)) {
			best, found = c, true
		}
		if tried++; tried == maxCandidates {
			break
		}
	}
	return best, found
}

func (p *Pod) outranks(q *Pod) bool { return q.Priority < p.Priority }

// mightHelp reports whether all that speaks against the node could go with a
// pod.
func (f Profile) mightHelp(v *Verdict) bool {
	if v.Fits() {
		return false
	}
	for _, r := range v.Reasons {
		i := slices.IndexFunc(f.Filters, func(f Filter) bool { return f.Name() == r.Filter })
		if i < 0 || !f.Filters[i].Cures(PodLeft) {
			return false
		}
	}
	return true
}

// selectVictims takes all less important pods off a copy of n, and then lets stay as
// many as can, the most important first. It leaves c's counts as they were.
func (c *checks) selectVictims(n *Node) (Candidate, bool) {
	n = n.clone()
	var gone []*Pod
	for _, q := range slices.Clone(n.pods) {
		if c.pod.outranks(q) {
			c.move(q, n, -1)
			gone = append(gone, q)
		}
	}
	candidate := Candidate{Node: n.Name}
	fits := len(c.filterWithNominated(n)) == 0
	slices.SortFunc(gone, byImportance)
	for _, q := range gone {
		c.move(q, n, 1)
		if fits && len(c.filterWithNominated(n)) > 0 {
			c.move(q, n, -1)
			candidate.Victims = append(candidate.Victims, q)
		}
	}
	for _, q := range candidate.Victims { // what is counted is as it was
		c.move(q, n, 1)
	}
	return candidate, fits && len(candidate.Victims) > 0
}

func (c *checks) move(q *Pod, n *Node, sign int) {
	n.take(q, int64(sign))
	c.count(q, n, sign)
}

// byImportance sorts by priority, and then those first that have run longest.
func byImportance(a, b *Pod) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority),
		started(a).Compare(started(b).Time),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
	)
}

// better compares as Kubernetes does: by the priority of the most important
// victim, by the sum of all, by their number, and by how long the most
// important has run.
func (c *Candidate) better(than *Candidate) bool {
	a, b := c.Victims, than.Victims
	return cmp.Or(
		cmp.Compare(a[0].Priority, b[0].Priority),
		cmp.Compare(sum(a), sum(b)),
		cmp.Compare(len(a), len(b)),
		started(b[0]).Compare(started(a[0]).Time),
	) < 0
}

// sum counts every pod, also of negative priority, as something.
func sum(victims []*Pod) int64 {
	var total int64
	for _, v := range victims {
		total += int64(v.Priority) + math.MaxInt32 + 1
	}
	return total
}

// started is when the pod was started; one that was not yet is the youngest.
func started(p *Pod) metav1.Time {
	if p.Status.StartTime == nil {
		return metav1.Time{Time: time.Unix(math.MaxInt32, 0)}
	}
	return *p.Status.StartTime
}
