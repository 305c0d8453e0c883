package auth

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// PodChange is one pod's new state.
type PodChange struct {
	Namespace, Name string
	Pod             *corev1.Pod // nil: it is gone
}

// PodFeed tells what happened to pods. It is used by one goroutine at a time.
type PodFeed interface {
	// Poll returns what happened since it was called last, without waiting. With
	// reset the changes are all the pods that there are.
	Poll(ctx context.Context) (changes []PodChange, reset bool, err error)
}

// PodIndex knows which pods run where and what they use. It asks its feed before
// each answer, so that a node that was told of a pod can read the pod's Secrets
// at once, and keeps what it learned: an answer costs what changed meanwhile,
// not the number of pods. It is safe for concurrent use.
type PodIndex struct {
	feed PodFeed

	mu   sync.Mutex // protects what follows, and the feed's single use
	pods map[podName]indexedPod
	uses map[nodeContent]int // how many pods of the node use it
}

type podName struct{ namespace, name string }

type indexedPod struct {
	node string
	used []content
}

type nodeContent struct {
	node string
	content
}

// NewPodIndex returns an index of what feed tells.
func NewPodIndex(feed PodFeed) *PodIndex {
	return &PodIndex{feed: feed, pods: make(map[podName]indexedPod), uses: make(map[nodeContent]int)}
}

// NodeOf follows Pods.
func (x *PodIndex) NodeOf(ctx context.Context, namespace, name string) (string, bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.refresh(ctx); err != nil {
		return "", false, err
	}
	pod, ok := x.pods[podName{namespace, name}]
	return pod.node, ok, nil
}

// Uses follows Pods.
func (x *PodIndex) Uses(ctx context.Context, node, resource, namespace, name string) (bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.refresh(ctx); err != nil {
		return false, err
	}
	return x.uses[nodeContent{node, content{resource, namespace, name}}] > 0, nil
}

func (x *PodIndex) refresh(ctx context.Context) error {
	changes, reset, err := x.feed.Poll(ctx)
	if err != nil {
		return err
	}
	if reset {
		clear(x.pods)
		clear(x.uses)
	}
	for _, c := range changes {
		x.apply(c)
	}
	return nil
}

func (x *PodIndex) apply(c PodChange) {
	key := podName{c.Namespace, c.Name}
	x.count(x.pods[key], -1)
	delete(x.pods, key)
	if c.Pod == nil {
		return
	}
	pod := indexedPod{node: c.Pod.Spec.NodeName}
	if pod.node != "" {
		pod.used = usedBy(c.Pod)
	}
	x.pods[key] = pod
	x.count(pod, 1)
}

func (x *PodIndex) count(pod indexedPod, by int) {
	for _, c := range pod.used {
		key := nodeContent{pod.node, c}
		if x.uses[key] += by; x.uses[key] == 0 {
			delete(x.uses, key)
		}
	}
}
