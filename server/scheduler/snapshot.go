package scheduler

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Pod is a pod as plugins see it: what they would else compute for each node.
type Pod struct {
	*corev1.Pod
	Asked    Resources // the sum of its requests, and 1 for Pods
	Likely   Resources // with a guess for what it did not ask for
	selector nodeaffinity.RequiredNodeAffinity
}

// NewPod prepares p, which must not change afterwards.
func NewPod(p *corev1.Pod) *Pod {
	asked, likely := requestsOf(p)
	return &Pod{Pod: p, Asked: asked, Likely: likely, selector: nodeaffinity.GetRequiredNodeAffinity(p)}
}

// Node is a node as plugins see it.
type Node struct {
	*corev1.Node
	Allocatable Resources
	Asked       Resources // by the pods that are on it, or about to be
	Likely      Resources
}

// placed is what is remembered of a pod that has a node.
type placed struct {
	uid           types.UID
	node          string
	asked, likely Resources
}

// Snapshot is what there is: nodes, and what is asked of each. It is not safe
// for concurrent use; plugins only read it.
type Snapshot struct {
	nodes []*Node // by name
	pods  map[types.NamespacedName]placed
}

// NewSnapshot returns an empty one.
func NewSnapshot() *Snapshot {
	return &Snapshot{pods: make(map[types.NamespacedName]placed)}
}

// Nodes returns the nodes, sorted by name. They must not be changed.
func (s *Snapshot) Nodes() []*Node { return s.nodes }

// PutNode adds a node, or takes over its new state.
func (s *Snapshot) PutNode(n *corev1.Node) {
	i, found := s.find(n.Name)
	if !found {
		s.nodes = slices.Insert(s.nodes, i, &Node{})
		for _, p := range s.pods { // those that came before their node
			if p.node == n.Name {
				s.nodes[i].take(&p, 1)
			}
		}
	}
	s.nodes[i].Node = n
	s.nodes[i].Allocatable = resourcesOf(n.Status.Allocatable)
}

// DeleteNode forgets a node. Its pods are remembered until they are deleted.
func (s *Snapshot) DeleteNode(name string) {
	if i, found := s.find(name); found {
		s.nodes = slices.Delete(s.nodes, i, i+1)
	}
}

// PutPod counts p on its node. A pod without a node or that has ended counts
// nowhere.
func (s *Snapshot) PutPod(p *corev1.Pod) {
	s.DeletePod(key(p))
	if p.Spec.NodeName == "" || hasEnded(p) {
		return
	}
	asked, likely := requestsOf(p)
	s.place(key(p), placed{p.UID, p.Spec.NodeName, asked, likely})
}

// Assume counts p on node, before the rest of the world knows.
func (s *Snapshot) Assume(p *Pod, node string) {
	s.DeletePod(key(p.Pod))
	s.place(key(p.Pod), placed{p.UID, node, p.Asked, p.Likely})
}

// DeletePod forgets a pod, and reports whether it was counted.
func (s *Snapshot) DeletePod(k types.NamespacedName) bool {
	p, ok := s.pods[k]
	if !ok {
		return false
	}
	delete(s.pods, k)
	if i, found := s.find(p.node); found {
		s.nodes[i].take(&p, -1)
	}
	return true
}

// without returns a snapshot that has the same nodes but not the pod k. It
// holds for as long as s does not change.
func (s *Snapshot) without(k types.NamespacedName) *Snapshot {
	p, ok := s.pods[k]
	i, found := s.find(p.node)
	if !ok || !found {
		return s
	}
	n := *s.nodes[i]
	n.Asked, n.Likely = n.Asked.clone(), n.Likely.clone()
	n.take(&p, -1)
	nodes := slices.Clone(s.nodes)
	nodes[i] = &n
	return &Snapshot{nodes: nodes}
}

func (s *Snapshot) place(k types.NamespacedName, p placed) {
	s.pods[k] = p
	if i, found := s.find(p.node); found {
		s.nodes[i].take(&p, 1)
	}
}

func (s *Snapshot) find(name string) (int, bool) {
	return slices.BinarySearchFunc(s.nodes, name, func(n *Node, name string) int { return strings.Compare(n.Name, name) })
}

func (n *Node) take(p *placed, sign int64) {
	n.Asked.add(&p.asked, sign)
	n.Likely.add(&p.likely, sign)
}

func key(p *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

func hasEnded(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}
