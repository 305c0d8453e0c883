package server

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bramble.dev/bramble/server/auth"
	"bramble.dev/bramble/server/objects"
)

// aggregation writes the rules of ClusterRoles that have an aggregationRule.
type aggregation struct {
	registry *objects.Registry
	kind     *objects.Kind
}

// once brings them all up to date. An aggregated role may be gathered by another,
// so it goes on until nothing changes, or as often as there are roles.
func (g aggregation) once(ctx context.Context) error {
	list, err := g.registry.List(ctx, g.kind, "", objects.ListOptions{})
	if err != nil {
		return err
	}
	roles := make(map[string]*rbacv1.ClusterRole, len(list.Items))
	for _, item := range list.Items {
		obj, err := g.kind.Decode(item.Body.Bytes())
		if err != nil {
			return err
		}
		roles[obj.GetName()] = obj.(*rbacv1.ClusterRole)
	}
	return g.settle(ctx, roles)
}

func (g aggregation) settle(ctx context.Context, roles map[string]*rbacv1.ClusterRole) error {
	for range len(roles) {
		changed := false
		all := slices.Collect(maps.Values(roles))
		for _, name := range slices.Sorted(maps.Keys(roles)) {
			role := roles[name]
			rules, err := auth.Aggregate(role, all)
			if err != nil || role.AggregationRule == nil || sameRules(rules, role.Rules) {
				continue // a selector that cannot be read was refused by validation
			}
			if err := g.write(ctx, name, rules); err != nil {
				return err
			}
			changed = true
			renewed := role.DeepCopy()
			renewed.Rules = rules
			roles[name] = renewed
			all = slices.Collect(maps.Values(roles))
		}
		if !changed {
			return nil
		}
	}
	return nil
}

func sameRules(a, b []rbacv1.PolicyRule) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

func (g aggregation) write(ctx context.Context, name string, rules []rbacv1.PolicyRule) error {
	_, err := g.registry.Update(ctx, g.kind, "", "", name, func(current objects.Object) (objects.Object, error) {
		role := current.(*rbacv1.ClusterRole)
		if role.AggregationRule != nil {
			role.Rules = rules
		}
		return role, nil
	}, objects.WriteOptions{FieldManager: manager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot write the rules of clusterrole %s: %w", name, err)
	}
	return nil
}

// aggregationRetry is how long after a write that failed it is made again.
const aggregationRetry = time.Second

// run keeps them up to date until ctx ends.
func (g aggregation) run(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	var worker sync.WaitGroup
	defer worker.Wait()
	worker.Go(func() { // ends with ctx
		var retry <-chan time.Time
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			case <-retry:
			}
			retry = nil
			if err := g.once(ctx); err != nil { // the registry has logged why
				retry = time.After(aggregationRetry)
			}
		}
	})
	return followAll(ctx, func() {}, &follower{registry: g.registry, kind: g.kind, tell: func(objects.Object, bool) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}})
}
