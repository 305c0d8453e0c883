package nodes

import (
	"container/heap"
	"time"
)

// deadlines are the nodes by when they are to be looked at. A renewal does not
// touch them: a node that was renewed goes back in when its old deadline comes,
// so that a node costs something once in a grace period. It is a container/heap.
type deadlines []*node

// set lets n be looked at at the latest at that time.
func (d *deadlines) set(n *node, at time.Time) {
	switch {
	case n.index < 0:
		n.deadline = at
		heap.Push(d, n)
	case at.Before(n.deadline):
		n.deadline = at
		heap.Fix(d, n.index)
	}
}

// next is when the first is to be looked at.
func (d deadlines) next() (time.Time, bool) {
	if len(d) == 0 {
		return time.Time{}, false
	}
	return d[0].deadline, true
}

// pop takes out one that is due; nil if none is.
func (d *deadlines) pop(now time.Time) *node {
	if len(*d) == 0 || (*d)[0].deadline.After(now) {
		return nil
	}
	return heap.Pop(d).(*node)
}

func (d *deadlines) remove(n *node) {
	if n.index >= 0 {
		heap.Remove(d, n.index)
	}
}

// Len, Less, Swap, Push and Pop are for container/heap alone.

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].deadline.Before(d[j].deadline) }
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

func (d *deadlines) Push(x any) {
	n := x.(*node)
	n.index = len(*d)
	*d = append(*d, n)
}

func (d *deadlines) Pop() any {
	last := len(*d) - 1
	n := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	n.index = -1
	return n
}
