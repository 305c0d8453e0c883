package scheduler

// Reason is why a node will not do, in words that follow a count of nodes:
// "1 was cordoned", "2 were cordoned".
type Reason struct{ One, Many string }

// same is a Reason whose words do not depend on the count.
func same(words string) Reason { return Reason{words, words} }

// Cause is an event that could make a pod fit which did not.
type Cause uint8

// The causes.
const (
	NodeCame    Cause = iota // a node joined
	NodeChanged              // its labels, taints, cordon or allocatable resources did
	PodLeft                  // a pod was deleted or has ended
)

// Filter says of a node whether a pod may run there. Filters are pure and keep
// no state.
type Filter interface {
	Name() string
	// Check returns why not; nil if the node will do.
	Check(p *Pod, n *Node) []Reason
	// Cures reports whether c could make a node pass that did not.
	Cures(c Cause) bool
}

// Score says of a node that will do how good it is. Scores are pure and keep
// no state.
type Score interface {
	Name() string
	Score(p *Pod, n *Node) int64 // 0 to 100, 100 best
	// Explain is the score in words, for people.
	Explain(p *Pod, n *Node) string
}

// Weighted is a Score and how much it counts.
type Weighted struct {
	Score
	Weight int64
}

// Profile is a set of plugins.
type Profile struct {
	Filters []Filter
	Scores  []Weighted
	// Pick chooses among n equally good nodes; it returns 0 to n-1.
	Pick func(n int) int
}

// Default is the set that pods get.
func Default(pick func(n int) int) Profile {
	return Profile{
		Filters: []Filter{Cordon{}, Taints{}, NodeName{}, NodeSelector{}, Fit{}},
		Scores:  []Weighted{{LeastAllocated{}, 1}, {Balance{}, 1}},
		Pick:    pick,
	}
}
