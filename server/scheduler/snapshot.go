package scheduler

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	helpers "k8s.io/component-helpers/scheduling/corev1"
)

// Pod is a pod as plugins see it: what they would else compute for each node.
type Pod struct {
	*corev1.Pod
	Asked    Resources // the sum of its requests, and 1 for Pods
	Likely   Resources // with a guess for what it did not ask for
	Priority int32
	ports    []port
	terms    terms
	node     string // where it is, or is about to be
	ending   bool   // it is being deleted, or about to be
	kin      *kin   // once it is placed
}

// NewPod prepares p, which must not change afterwards.
func NewPod(p *corev1.Pod) *Pod {
	asked, likely := requestsOf(p)
	return &Pod{
		Pod: p, Asked: asked, Likely: likely, Priority: helpers.PodPriority(p),
		ports: portsOf(p), terms: termsOf(p), node: p.Spec.NodeName, ending: p.DeletionTimestamp != nil,
	}
}

// at is p on node.
func (p *Pod) at(node string) *Pod {
	q := *p
	q.node = node
	return &q
}

func (p *Pod) key() types.NamespacedName { return key(p.Pod) }

// pods is a set of pods by name.
type pods map[types.NamespacedName]*Pod

// Snapshot is what there is: nodes, and the pods that they have. It is not safe
// for concurrent use; plugins only read it.
type Snapshot struct {
	nodes           []*Node // by name
	byName          map[string]*Node
	pods            pods                  // that have a node
	kins            kins                  // the same pods
	nominated       pods                  // without a node, for which room is being made on Pod.node
	namespaceLabels map[string]labels.Set // by namespace
	images          map[string]int        // how many nodes have it
	boards          map[string]*board     // by node, also of such as are not there yet
	now             time.Time             // of the decision; monotonic
}

// NewSnapshot returns an empty one.
func NewSnapshot() *Snapshot {
	return &Snapshot{
		byName: map[string]*Node{}, pods: pods{}, kins: newKins(), nominated: pods{},
		namespaceLabels: map[string]labels.Set{}, images: map[string]int{}, boards: map[string]*board{},
	}
}

// Nodes returns the nodes, sorted by name. They must not be changed.
func (s *Snapshot) Nodes() []*Node { return s.nodes }

// PutNode adds a node, or takes over its new state.
func (s *Snapshot) PutNode(n *corev1.Node) {
	i, found := s.find(n.Name)
	if !found {
		s.nodes = slices.Insert(s.nodes, i, &Node{})
		s.byName[n.Name] = s.nodes[i]
		s.nodes[i].board = s.boards[n.Name]
		for _, p := range s.pods { // those that came before their node
			if p.node == n.Name {
				s.nodes[i].take(p, 1)
			}
		}
	}
	s.countImages(s.nodes[i], -1)
	s.nodes[i].Node = n
	s.nodes[i].Allocatable = resourcesOf(n.Status.Allocatable)
	s.nodes[i].images = imagesOf(n)
	s.countImages(s.nodes[i], 1)
}

// DeleteNode forgets a node. Its pods are remembered until they are deleted.
func (s *Snapshot) DeleteNode(name string) {
	if i, found := s.find(name); found {
		s.countImages(s.nodes[i], -1)
		s.nodes = slices.Delete(s.nodes, i, i+1)
		delete(s.byName, name)
	}
}

// PutNamespace takes over a namespace's labels.
func (s *Snapshot) PutNamespace(n *corev1.Namespace) { s.namespaceLabels[n.Name] = n.Labels }

// DeleteNamespace forgets a namespace's labels.
func (s *Snapshot) DeleteNamespace(name string) { delete(s.namespaceLabels, name) }

// PutPod counts p on its node. A pod without a node or that has ended counts
// nowhere.
func (s *Snapshot) PutPod(p *corev1.Pod) {
	s.DeletePod(key(p))
	if p.Spec.NodeName != "" && !hasEnded(p) {
		s.place(NewPod(p))
	}
}

// Assume counts p on node, before the rest of the world knows.
func (s *Snapshot) Assume(p *Pod, node string) {
	s.DeletePod(p.key())
	s.place(p.at(node))
}

// Nominate keeps room for p on node, which others are leaving for it.
func (s *Snapshot) Nominate(p *Pod, node string) { s.nominated[p.key()] = p.at(node) }

// Nominated is the node on which room is kept for a pod; "" if there is none.
func (s *Snapshot) Nominated(k types.NamespacedName) string {
	if p := s.nominated[k]; p != nil {
		return p.node
	}
	return ""
}

// DeleteNominated keeps room for a pod no more, and reports whether it did.
func (s *Snapshot) DeleteNominated(k types.NamespacedName) bool {
	_, there := s.nominated[k]
	delete(s.nominated, k)
	return there
}

// nominatedTo are the pods for which room is kept on node, of which p must leave
// some: those that are as important.
func (s *Snapshot) nominatedTo(node string, p *Pod) []*Pod {
	if len(s.nominated) == 0 { // as a rule, and it is asked of every node
		return nil
	}
	var all []*Pod
	for k, q := range s.nominated {
		if q.node == node && q.Priority >= p.Priority && k != p.key() {
			all = append(all, q)
		}
	}
	return all
}

// DeletePod forgets a pod, and reports whether it was counted.
func (s *Snapshot) DeletePod(k types.NamespacedName) bool {
	p, ok := s.pods[k]
	if !ok {
		return false
	}
	delete(s.pods, k)
	s.kins.remove(p)
	if n := s.byName[p.node]; n != nil {
		n.take(p, -1)
	}
	return true
}

// without calls do while the pod k does not count.
func (s *Snapshot) without(k types.NamespacedName, do func()) {
	if p := s.pods[k]; p != nil {
		s.DeletePod(k)
		defer s.place(p)
	}
	do()
}

func (s *Snapshot) place(p *Pod) {
	s.pods[p.key()] = p
	s.kins.add(p)
	if n := s.byName[p.node]; n != nil {
		n.take(p, 1)
	}
}

// setEnding notes of a placed pod that it is about to leave, or that it is not.
func (s *Snapshot) setEnding(p *Pod, ending bool) {
	s.kins.remove(p)
	p.ending = ending
	s.kins.add(p)
}

func (s *Snapshot) find(name string) (int, bool) {
	return slices.BinarySearchFunc(s.nodes, name, func(n *Node, name string) int { return strings.Compare(n.Name, name) })
}

// Node is a node as plugins see it.
type Node struct {
	*corev1.Node
	Allocatable Resources
	Asked       Resources // by the pods that are on it, or about to be
	Likely      Resources
	pods        []*Pod
	ports       map[port]int
	images      map[string]int64 // their sizes in bytes, by all their names
	board       *board           // nil: it has said nothing
}

// take counts p on n, or not any more with sign -1.
func (n *Node) take(p *Pod, sign int64) {
	n.Asked.add(&p.Asked, sign)
	n.Likely.add(&p.Likely, sign)
	n.takePorts(p, int(sign))
	if sign > 0 {
		n.pods = append(n.pods, p)
		return
	}
	k := p.key()
	n.pods = slices.DeleteFunc(n.pods, func(q *Pod) bool { return q.key() == k })
}

// clone is n, to be changed.
func (n *Node) clone() *Node {
	c := *n
	c.Asked, c.Likely = n.Asked.clone(), n.Likely.clone()
	c.pods, c.ports = slices.Clone(n.pods), maps.Clone(n.ports)
	return &c
}

func key(p *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

func hasEnded(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}
