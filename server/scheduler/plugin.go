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
	NodeCame         Cause = iota // a node joined
	NodeChanged                   // its labels, taints, cordon or allocatable resources did
	PodLeft                       // a pod was deleted or has ended, or wants its node no more
	PodCame                       // a pod was placed, or its labels changed
	NamespaceChanged              // a namespace came, or its labels changed
	BoardChanged                  // what is wrong with a node's board did
)

// ofNodes reports whether c is about nodes alone.
func (c Cause) ofNodes() bool { return c == NodeCame || c == NodeChanged }

// ofBoards reports whether c could change what is wrong with a node's board.
func (c Cause) ofBoards() bool { return c == BoardChanged || c == NodeCame }

// Filter says of nodes whether a pod may run there. Filters are pure and keep
// no state.
type Filter interface {
	Name() string
	// Prepare looks once at what there is, for p; what is to be counted over all
	// nodes is counted here. nil: it has nothing against any node.
	Prepare(s *Snapshot, p *Pod) Check
	// Cures reports whether c could make a node pass that did not.
	Cures(c Cause) bool
}

// Check is a Filter that has looked at one pod. It holds until the snapshot
// changes.
type Check interface {
	// Check returns why n will not do; nil if it will.
	Check(n *Node) []Reason
}

// Counting is a Check that counts pods on other nodes too.
type Counting interface {
	Check
	// Count makes it as if q were on n too (sign 1) or not any more (-1). A
	// count is undone by its opposite.
	Count(q *Pod, n *Node, sign int)
}

// checkFunc is a Check that looks at the node alone.
type checkFunc func(n *Node) []Reason

// Check implements Check.
func (f checkFunc) Check(n *Node) []Reason { return f(n) }

// Score says of nodes that will do how good they are. Scores are pure and keep
// no state.
type Score interface {
	Name() string
	// Rank looks at the nodes that p may run on; nil: they are all alike.
	Rank(s *Snapshot, p *Pod, nodes []*Node) Ranking
}

// Ranking is what a Score thinks of the nodes that it was given, by their index.
type Ranking interface {
	Score(i int) int64 // 0 to 100, 100 best
	// Explain is the score in words, for people.
	Explain(i int) string
}

// Weighted is a Score and how much it counts.
type Weighted struct {
	Score
	Weight int64
}

// Profile is a set of plugins.
type Profile struct {
	Filters []Filter
	// Soft are filters that count only where other nodes are left: a pod on a hot board
	// is better than one that waits.
	Soft   []Filter
	Scores []Weighted
	// Pick chooses among n equally good nodes; it returns 0 to n-1.
	Pick func(n int) int
}

// Default is the set that pods get: what Kubernetes' scheduler has, with its weights,
// and what the boards say.
func Default(pick func(n int) int) Profile {
	return Profile{
		Filters: []Filter{Cordon{}, Taints{}, NodeName{}, NodeAffinity{}, HostPorts{}, Fit{}, SoundBoard{}, Spread{}, PodAffinity{}},
		Soft:    []Filter{CalmBoard{}},
		Scores: []Weighted{
			{LeastAllocated{}, 1}, {Balance{}, 1}, {ImageLocality{}, 1},
			{SoftTaints{}, 3}, {PreferredNodes{}, 2}, {SoftSpread{}, 2}, {PreferredPods{}, 2},
			{Thermal, 3}, {Power, 2}, {Memory, 1}, {Storage, 1}, {Network, 1}, {Energy, 1},
		},
		Pick: pick,
	}
}
