package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Placement says why a pod is where it is, or why it is nowhere. It has the
// pod's namespace and name. It is not stored: the server computes it when it
// is read, from its scheduler's memory.
type Placement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status PlacementStatus `json:"status"`
}

// Values of PlacementStatus.Basis.
const (
	// PlacementDecision means that the scheduler's own last decision is shown.
	PlacementDecision = "Decision"
	// PlacementNow means that the decision is not known any more (or another
	// made it) and that the nodes are judged as they are now, as if the pod ran
	// nowhere.
	PlacementNow = "Now"
)

// PlacementStatus is one decision.
type PlacementStatus struct {
	// NodeName is the node that the pod is bound to; empty when it waits.
	NodeName string `json:"nodeName,omitempty"`
	// Message is the decision in a sentence, with counts:
	// "0/3 nodes fit: 2 had not enough memory, 1 was cordoned".
	Message string `json:"message"`
	// Basis is PlacementDecision or PlacementNow.
	Basis string `json:"basis"`
	// DecidedAt is the server's clock at the decision.
	DecidedAt metav1.Time `json:"decidedAt,omitempty"`

	// NodesTotal nodes were looked at, and NodesFit of them would do.
	NodesTotal int32 `json:"nodesTotal"`
	NodesFit   int32 `json:"nodesFit"`
	// Rejections counts the nodes by what they failed at, most first. A node
	// counts once for each reason.
	Rejections []PlacementRejection `json:"rejections,omitempty"`
	// Nodes is every node's verdict: the best first, then those that do not fit.
	// It ends at 32 nodes.
	Nodes []PlacementNode `json:"nodes,omitempty"`
}

// PlacementRejection counts the nodes that one filter refused for one reason.
type PlacementRejection struct {
	Plugin string `json:"plugin"`
	Reason string `json:"reason"`
	Nodes  int32  `json:"nodes"`
}

// PlacementNode is what was found of one node.
type PlacementNode struct {
	Name string `json:"name"`
	Fits bool   `json:"fits"`
	// Score is the weighted mean of Scores, 0 to 100.
	Score int64 `json:"score,omitempty"`
	// Reasons says, of a node that does not fit, what it failed at.
	Reasons []string `json:"reasons,omitempty"`
	// Waived says what speaks against a node that fits all the same, since it is so
	// with all that fit.
	Waived []string         `json:"waived,omitempty"`
	Scores []PlacementScore `json:"scores,omitempty"`
}

// PlacementScore is what one plugin thinks of one node.
type PlacementScore struct {
	Plugin string `json:"plugin"`
	Score  int64  `json:"score"` // 0 to 100, 100 best
	Weight int64  `json:"weight"`
	Detail string `json:"detail,omitempty"` // in words
}

// PlacementList is a list of Placement. It exists for the scheme: placements
// are read one at a time.
type PlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Placement `json:"items"`
}
