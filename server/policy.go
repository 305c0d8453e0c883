package server

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"bramble.dev/bramble/server/auth"
	"bramble.dev/bramble/server/objects"
)

// ensurePolicy makes the usual roles and bindings, and mends those that lack
// something: rules, subjects, labels. What administrators added stays, and an
// object whose annotation autoupdate is "false" stays as it is. Nothing is
// written where nothing is missing.
func (p *parts) ensurePolicy(ctx context.Context) error {
	roles, bindings, err := p.rbacKinds()
	if err != nil {
		return err
	}
	group, inner := errgroup.WithContext(ctx) // at once, so that they share a commit
	for _, want := range auth.DefaultClusterRoles() {
		group.Go(func() error {
			return p.ensure(inner, roles, want, func(current objects.Object) { mendRole(current.(*rbacv1.ClusterRole), want) })
		})
	}
	for _, want := range auth.DefaultClusterRoleBindings() {
		group.Go(func() error {
			return p.ensure(inner, bindings, want, func(current objects.Object) { mendBinding(current.(*rbacv1.ClusterRoleBinding), want) })
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("cannot make the usual roles: %w", err)
	}
	return aggregation{p.registry, roles}.once(ctx)
}

func (p *parts) rbacKinds() (roles, bindings *objects.Kind, err error) {
	roles, ok := p.registry.Kind(rbacv1.GroupName, "clusterroles")
	bindings, also := p.registry.Kind(rbacv1.GroupName, "clusterrolebindings")
	if !ok || !also {
		return nil, nil, fmt.Errorf("cannot do without the kinds of %s", rbacv1.GroupName)
	}
	return roles, bindings, nil
}

// ensure creates want or has what there is of it mended.
func (p *parts) ensure(ctx context.Context, kind *objects.Kind, want objects.Object, mend func(current objects.Object)) error {
	opts := objects.WriteOptions{FieldManager: manager}
	_, err := p.registry.Update(ctx, kind, "", "", want.GetName(), func(current objects.Object) (objects.Object, error) {
		if current.GetAnnotations()[auth.AnnotationAutoUpdate] != "false" {
			mendMeta(current, want)
			mend(current)
		}
		return current, nil
	}, opts)
	if apierrors.IsInvalid(err) { // a binding of another role: that cannot be changed
		if _, _, err := p.registry.Delete(ctx, kind, "", want.GetName(), metav1.DeleteOptions{}); err != nil {
			return err
		}
		err = apierrors.NewNotFound(kind.GroupResource(), want.GetName())
	}
	if apierrors.IsNotFound(err) {
		_, err = p.registry.Create(ctx, kind, "", want, opts)
	}
	return err
}

func mendMeta(current, want objects.Object) {
	labels, annotations := maps.Clone(current.GetLabels()), maps.Clone(current.GetAnnotations())
	if labels == nil {
		labels = make(map[string]string)
	}
	if annotations == nil {
		annotations = make(map[string]string)
	}
	maps.Copy(labels, want.GetLabels())
	maps.Copy(annotations, want.GetAnnotations())
	current.SetLabels(labels)
	current.SetAnnotations(annotations)
}

func mendRole(current, want *rbacv1.ClusterRole) {
	if want.AggregationRule != nil {
		if current.AggregationRule == nil {
			current.AggregationRule = want.AggregationRule
		}
		for _, s := range want.AggregationRule.ClusterRoleSelectors {
			if !slices.ContainsFunc(current.AggregationRule.ClusterRoleSelectors, func(have metav1.LabelSelector) bool { return reflect.DeepEqual(have, s) }) {
				current.AggregationRule.ClusterRoleSelectors = append(current.AggregationRule.ClusterRoleSelectors, s)
			}
		}
		return // its rules are the aggregation's
	}
	if covered, missing := validation.Covers(current.Rules, want.Rules); !covered {
		current.Rules = append(current.Rules, missing...)
	}
}

func mendBinding(current, want *rbacv1.ClusterRoleBinding) {
	current.RoleRef = want.RoleRef
	for _, s := range want.Subjects {
		if !slices.Contains(current.Subjects, s) {
			current.Subjects = append(current.Subjects, s)
		}
	}
}
