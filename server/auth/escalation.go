package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-helpers/auth/rbac/validation"

	"bramble.dev/bramble/server/api"
)

// Decider says whether a user may do something; see Authorizer.
type Decider interface {
	Authorize(ctx context.Context, a Attributes) (allowed bool, reason string, err error)
}

// Escalation is the part of admission that lets nobody give away what they do
// not have: rules of a role must be held by who writes them, unless they may
// "escalate" it, and those of a role must be held by who binds it, unless they
// may "bind" it. The server's own writes pass. It is safe for concurrent use.
type Escalation struct {
	rules   *RBAC
	decider Decider
}

// NewEscalation returns an Escalation that knows rights by rules and decider.
func NewEscalation(rules *RBAC, decider Decider) *Escalation { return &Escalation{rules, decider} }

// Admit returns why the user may not write this, or nil.
func (e *Escalation) Admit(ctx context.Context, w Write) error {
	user, known := api.UserFrom(ctx)
	if !known || w.Verb == "delete" || user.InGroup(api.GroupMasters) {
		return nil
	}
	switch obj := w.Obj.(type) {
	case *rbacv1.Role:
		if old, ok := w.Old.(*rbacv1.Role); ok && equality.Semantic.DeepEqual(old.Rules, obj.Rules) {
			return nil
		}
		return e.role(ctx, user, "roles", obj, obj.Rules)
	case *rbacv1.ClusterRole:
		return e.clusterRole(ctx, user, w, obj)
	case *rbacv1.RoleBinding:
		if old, ok := w.Old.(*rbacv1.RoleBinding); ok && equality.Semantic.DeepEqual(old.Subjects, obj.Subjects) {
			return nil // the roleRef cannot change
		}
		return e.binding(ctx, user, "rolebindings", obj, obj.RoleRef)
	case *rbacv1.ClusterRoleBinding:
		if old, ok := w.Old.(*rbacv1.ClusterRoleBinding); ok && equality.Semantic.DeepEqual(old.Subjects, obj.Subjects) {
			return nil
		}
		return e.binding(ctx, user, "clusterrolebindings", obj, obj.RoleRef)
	}
	return nil
}

func (e *Escalation) clusterRole(ctx context.Context, user api.User, w Write, obj *rbacv1.ClusterRole) error {
	old, _ := w.Old.(*rbacv1.ClusterRole)
	if old != nil && equality.Semantic.DeepEqual(old.Rules, obj.Rules) &&
		equality.Semantic.DeepEqual(old.AggregationRule, obj.AggregationRule) && equality.Semantic.DeepEqual(old.Labels, obj.Labels) {
		return nil
	}
	if err := e.role(ctx, user, "clusterroles", obj, obj.Rules); err != nil {
		return err
	}
	if obj.AggregationRule == nil && (old == nil || old.AggregationRule == nil) {
		return nil
	}
	// What it gathers is not known yet: only who has all may say it.
	all := []rbacv1.PolicyRule{
		{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
		{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
	}
	if err := e.role(ctx, user, "clusterroles", obj, all); err != nil {
		return forbid("clusterroles", obj.Name, "must have cluster-admin privileges to use the aggregationRule")
	}
	return nil
}

func (e *Escalation) role(ctx context.Context, user api.User, resource string, obj Object, rules []rbacv1.PolicyRule) error {
	if ok, err := e.may(ctx, user, "escalate", resource, obj.GetNamespace(), obj.GetName()); ok || err != nil {
		return err
	}
	return e.holds(ctx, user, resource, obj, rules)
}

func (e *Escalation) binding(ctx context.Context, user api.User, resource string, obj Object, ref rbacv1.RoleRef) error {
	refers, namespace := "roles", obj.GetNamespace()
	if ref.Kind == "ClusterRole" {
		refers = "clusterroles"
	}
	if ok, err := e.may(ctx, user, "bind", refers, namespace, ref.Name); ok || err != nil {
		return err
	}
	rules, exists, err := e.rules.RoleRules(ctx, ref, namespace)
	if err != nil {
		return err
	}
	if !exists {
		return apierrors.NewNotFound(schema.GroupResource{Group: rbacv1.GroupName, Resource: refers}, ref.Name)
	}
	return e.holds(ctx, user, resource, obj, rules)
}

func (e *Escalation) may(ctx context.Context, user api.User, verb, resource, namespace, name string) (bool, error) {
	ok, _, err := e.decider.Authorize(ctx, Attributes{
		User: user, Verb: verb, Group: rbacv1.GroupName, Version: "v1", Resource: resource, Namespace: namespace, Name: name,
	})
	return ok, err
}

// holds returns a 403 that names the rules that the user does not have.
func (e *Escalation) holds(ctx context.Context, user api.User, resource string, obj Object, rules []rbacv1.PolicyRule) error {
	held, incomplete := e.rules.Rules(ctx, user, obj.GetNamespace())
	covered, missing := validation.Covers(held, rules)
	if covered {
		return nil
	}
	lines := make([]string, 0, len(missing))
	for _, r := range missing {
		lines = append(lines, describeRule(r))
	}
	slices.Sort(lines)
	text := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s",
		user.Name, user.Groups, strings.Join(slices.Compact(lines), "\n"))
	if incomplete != nil {
		text += fmt.Sprintf("; resolution errors: %v", incomplete)
	}
	return forbid(resource, obj.GetName(), text)
}

func forbid(resource, name, text string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: rbacv1.GroupName, Resource: resource}, name, errors.New(text))
}

// describeRule is a rule as Kubernetes prints it: {APIGroups:["apps"], ...}.
func describeRule(r rbacv1.PolicyRule) string {
	var parts []string
	for _, p := range []struct {
		name string
		list []string
	}{
		{"APIGroups", r.APIGroups}, {"Resources", r.Resources}, {"ResourceNames", r.ResourceNames},
		{"NonResourceURLs", r.NonResourceURLs}, {"Verbs", r.Verbs},
	} {
		if len(p.list) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", p.name, p.list))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
