package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/auth"
	"bramble.dev/bramble/server/store"
)

// logFeed reads one resource from the store's log: a position in it, moved on
// when auth asks.
type logFeed struct {
	store    *store.Store
	resource string
	watcher  *store.Watcher
}

// poll returns what happened since the last call; with reset it is all that
// there is. An error leaves the feed to begin anew.
func (f *logFeed) poll() (events []*store.Event, reset bool, err error) {
	if f.watcher == nil {
		return f.restart()
	}
	for {
		some, err := f.watcher.Ready()
		switch {
		case errors.Is(err, store.ErrCompact):
			return f.restart()
		case err != nil:
			f.watcher = nil
			return nil, false, err
		case len(some) == 0:
			return events, false, nil
		}
		events = append(events, some...)
	}
}

func (f *logFeed) restart() ([]*store.Event, bool, error) {
	entries, rev, err := f.store.List(f.resource, "", 0)
	if err != nil {
		return nil, false, err
	}
	events := make([]*store.Event, len(entries))
	for i, e := range entries {
		events[i] = &store.Event{Type: store.Added, Entry: e}
	}
	f.watcher, err = f.store.Watch(f.resource, rev)
	return events, true, err
}

// podFeed tells auth of pods.
type podFeed struct{ logFeed }

func newPodFeed(s *store.Store) *podFeed { return &podFeed{logFeed{store: s, resource: "pods"}} }

// Poll follows auth.PodFeed.
func (f *podFeed) Poll(ctx context.Context) ([]auth.PodChange, bool, error) {
	events, reset, err := f.poll()
	if err != nil {
		return nil, false, err
	}
	changes := make([]auth.PodChange, len(events))
	for i, e := range events {
		changes[i] = auth.PodChange{Namespace: e.Namespace, Name: e.Name}
		if e.Type == store.Deleted {
			continue
		}
		changes[i].Pod = &corev1.Pod{}
		if err := json.Unmarshal(e.Body.Bytes(), changes[i].Pod); err != nil {
			f.watcher = nil
			return nil, false, fmt.Errorf("cannot decode pod %s/%s: %w", e.Namespace, e.Name, err)
		}
	}
	return changes, reset, nil
}

// rbacFeed tells auth of roles and bindings.
type rbacFeed struct{ feeds []*typedFeed }

type typedFeed struct {
	logFeed
	plural string
	fresh  func() any
}

func newRBACFeed(s *store.Store) *rbacFeed {
	feed := func(plural string, fresh func() any) *typedFeed {
		return &typedFeed{logFeed{store: s, resource: plural + "." + rbacv1.GroupName}, plural, fresh}
	}
	return &rbacFeed{[]*typedFeed{
		feed("roles", func() any { return &rbacv1.Role{} }),
		feed("clusterroles", func() any { return &rbacv1.ClusterRole{} }),
		feed("rolebindings", func() any { return &rbacv1.RoleBinding{} }),
		feed("clusterrolebindings", func() any { return &rbacv1.ClusterRoleBinding{} }),
	}}
}

// Poll follows auth.RBACFeed.
func (f *rbacFeed) Poll(ctx context.Context) ([]auth.RBACChange, error) {
	var all []auth.RBACChange
	for _, feed := range f.feeds {
		changes, err := feed.changes(ctx)
		if err != nil {
			f.begin()
			return nil, err
		}
		all = append(all, changes...)
	}
	return all, nil
}

// begin has all told anew: some of it was read and is lost.
func (f *rbacFeed) begin() {
	for _, feed := range f.feeds {
		feed.watcher = nil
	}
}

func (f *typedFeed) changes(ctx context.Context) ([]auth.RBACChange, error) {
	events, reset, err := f.poll()
	if err != nil {
		return nil, err
	}
	var all []auth.RBACChange
	if reset {
		all = append(all, auth.RBACChange{Reset: true, Resource: f.plural})
	}
	for _, e := range events {
		c := auth.RBACChange{Resource: f.plural, Namespace: e.Namespace, Name: e.Name}
		if e.Type != store.Deleted {
			c.Obj = f.fresh()
			if err := json.Unmarshal(e.Body.Bytes(), c.Obj); err != nil {
				return nil, fmt.Errorf("cannot decode %s %s/%s: %w", f.resource, e.Namespace, e.Name, err)
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// living is what tokens depend on, read from the store.
type living struct{ store *store.Store }

// Find follows auth.Living.
func (l living) Find(_ context.Context, resource, namespace, name string) (auth.Bound, error) {
	e, ok := l.store.Get(store.Key{Resource: resource, Namespace: namespace, Name: name})
	if !ok {
		return auth.Bound{}, nil
	}
	var obj struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			NodeName           string `json:"nodeName"`
			ServiceAccountName string `json:"serviceAccountName"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(e.Body.Bytes(), &obj); err != nil {
		return auth.Bound{}, fmt.Errorf("cannot decode %s %s/%s: %w", resource, namespace, name, err)
	}
	return auth.Bound{UID: obj.UID, Ending: obj.DeletionTimestamp != nil, Node: obj.Spec.NodeName, Account: obj.Spec.ServiceAccountName}, nil
}
