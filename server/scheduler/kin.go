package scheduler

import (
	"encoding/binary"
	"iter"
	"maps"
	"slices"
)

// kin are placed pods that no selector and no term tells apart: of one namespace,
// with the same labels and the same terms, and all of them leaving or none. What is
// asked of pods is asked once for each kin, of which there are far fewer.
type kin struct {
	key   string
	like  *Pod           // one of them, or one that was
	nodes map[string]int // how many there are, by the name of their node
}

// kins are the placed pods by kin.
type kins struct {
	all              map[string]*kin
	byNamespace      map[string]map[*kin]bool
	withAntiAffinity map[*kin]bool // those with required anti-affinity
	withAffinity     map[*kin]bool // those with terms that scores count
}

func newKins() kins {
	return kins{map[string]*kin{}, map[string]map[*kin]bool{}, map[*kin]bool{}, map[*kin]bool{}}
}

// kinKey is the same for pods of one kin only.
func kinKey(p *Pod) string {
	b := append([]byte(p.Namespace), 0)
	for _, label := range slices.Sorted(maps.Keys(p.Labels)) {
		b = append(append(append(append(b, label...), 0), p.Labels[label]...), 0)
	}
	if p.ending {
		b = append(b, 1)
	}
	if a := p.Spec.Affinity; a != nil {
		if a.PodAffinity != nil {
			b = appendEncoded(b, a.PodAffinity)
		}
		if a.PodAntiAffinity != nil {
			b = appendEncoded(append(b, 2), a.PodAntiAffinity)
		}
	}
	return string(b)
}

func appendEncoded(b []byte, terms interface{ Marshal() ([]byte, error) }) []byte {
	encoded, _ := terms.Marshal() // into memory: it cannot fail
	return append(binary.AppendUvarint(append(b, 3), uint64(len(encoded))), encoded...)
}

// add counts a placed pod, and has it share what its kin has compiled.
func (all *kins) add(p *Pod) {
	key := kinKey(p)
	k := all.all[key]
	if k == nil {
		k = &kin{key, p, map[string]int{}}
		all.all[key] = k
		if all.byNamespace[p.Namespace] == nil {
			all.byNamespace[p.Namespace] = map[*kin]bool{}
		}
		all.byNamespace[p.Namespace][k] = true
		if len(p.terms.antiAffinity) > 0 {
			all.withAntiAffinity[k] = true
		}
		if len(p.terms.affinity)+len(p.terms.preferred)+len(p.terms.preferredAnti) > 0 {
			all.withAffinity[k] = true
		}
	}
	k.nodes[p.node]++
	p.kin, p.terms = k, k.like.terms
}

// remove undoes add.
func (all *kins) remove(p *Pod) {
	k := p.kin
	if k.nodes[p.node]--; k.nodes[p.node] == 0 {
		delete(k.nodes, p.node)
	}
	if len(k.nodes) > 0 {
		return
	}
	delete(all.all, k.key)
	delete(all.withAntiAffinity, k)
	delete(all.withAffinity, k)
	if delete(all.byNamespace[p.Namespace], k); len(all.byNamespace[p.Namespace]) == 0 {
		delete(all.byNamespace, p.Namespace)
	}
}

// there is the nodes of k that are known, and how many of k each has.
func (s *Snapshot) there(k *kin) iter.Seq2[*Node, int] {
	return func(yield func(*Node, int) bool) {
		for name, count := range k.nodes {
			if n := s.byName[name]; n != nil && !yield(n, count) {
				return
			}
		}
	}
}

// one is as there, for count pods on one node.
func one(n *Node, count int) iter.Seq2[*Node, int] {
	return func(yield func(*Node, int) bool) { yield(n, count) }
}

// tally is numbers by the key of a label and its value: of pods, on the nodes that
// have that label.
type tally map[string]map[string]int

// add adds by for n, and reports whether n has the label at all.
func (t tally) add(key string, n *Node, by int) bool {
	value, has := n.Labels[key]
	if !has {
		return false
	}
	values := t[key]
	if values == nil {
		values = map[string]int{}
		t[key] = values
	}
	values[value] += by
	return true
}

// of is the number for n's value of the label; none without the label.
func (t tally) of(key string, n *Node) int {
	values := t[key]
	if len(values) == 0 {
		return 0
	}
	value, has := n.Labels[key]
	if !has {
		return 0
	}
	return values[value]
}
