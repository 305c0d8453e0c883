package auth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"

	"bramble.dev/bramble/server/api"
)

// RBACChange is the new state of one object of rbac.authorization.k8s.io.
type RBACChange struct {
	// Reset says that all objects of Resource are told anew from here on.
	Reset           bool
	Resource        string // roles, clusterroles, rolebindings or clusterrolebindings
	Namespace, Name string
	Obj             any // *rbacv1.Role etc.; nil: it is gone
}

// RBACFeed tells what happened to roles and bindings. It is used by one
// goroutine at a time.
type RBACFeed interface {
	// Poll returns what happened since it was called last, without waiting.
	Poll(ctx context.Context) ([]RBACChange, error)
}

// RBAC decides by roles and bindings, as Kubernetes' RBAC authorizer does. It asks
// its feed before each answer, so that a grant holds for the very next request,
// and keeps what it learned: an answer costs what changed meanwhile and what is
// bound to the user, not the number of objects. It is safe for concurrent use.
type RBAC struct {
	feed RBACFeed

	mu       sync.Mutex // protects what follows, and the feed's single use
	roles    map[objectName][]rbacv1.PolicyRule
	bindings map[objectName]grant
	subjects map[subject]map[objectName]bool // which bindings name it
}

// objectName is of a role or binding; those of the cluster have no namespace.
type objectName struct{ namespace, name string }

// subject is a user (also a service account, by its user name) or a group.
type subject struct{ kind, name string }

// grant is what a binding says.
type grant struct {
	role     rbacv1.RoleRef
	subjects []subject
}

// NewRBAC returns an RBAC of what feed tells.
func NewRBAC(feed RBACFeed) *RBAC {
	return &RBAC{
		feed: feed, roles: make(map[objectName][]rbacv1.PolicyRule),
		bindings: make(map[objectName]grant), subjects: make(map[subject]map[objectName]bool),
	}
}

// Allows says whether a rule that is bound to a.User allows it. The reason names
// the binding, or, where it is not allowed, what is missing.
func (z *RBAC) Allows(ctx context.Context, a Attributes) (allowed bool, reason string, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if err := z.refresh(ctx); err != nil {
		return false, "", err
	}
	missing := z.visit(a.User, a.Namespace, func(binding objectName, g grant, rule *rbacv1.PolicyRule) bool {
		if ruleAllows(rule, a) {
			allowed, reason = true, "RBAC: allowed by "+describeGrant(binding, g)
		}
		return !allowed
	})
	if !allowed && len(missing) > 0 {
		reason = "RBAC: " + strings.Join(missing, ", ")
	}
	return allowed, reason, nil
}

// Rules returns every rule that holds for the user in a namespace ("": those that
// hold everywhere). It is not complete, and err says why, when a binding names a
// role that does not exist.
func (z *RBAC) Rules(ctx context.Context, user api.User, namespace string) ([]rbacv1.PolicyRule, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if err := z.refresh(ctx); err != nil {
		return nil, err
	}
	var rules []rbacv1.PolicyRule
	missing := z.visit(user, namespace, func(_ objectName, _ grant, rule *rbacv1.PolicyRule) bool {
		rules = append(rules, *rule)
		return true
	})
	if len(missing) > 0 {
		return rules, errors.New(strings.Join(missing, ", "))
	}
	return rules, nil
}

// RoleRules returns the rules of the role that a binding in namespace refers to;
// exists is false when there is no such role.
func (z *RBAC) RoleRules(ctx context.Context, ref rbacv1.RoleRef, namespace string) (rules []rbacv1.PolicyRule, exists bool, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if err := z.refresh(ctx); err != nil {
		return nil, false, err
	}
	rules, exists = z.roles[roleName(ref, namespace)]
	return rules, exists, nil
}

// visit calls f with the rules of each role that is bound to the user, until f
// returns false, and returns which roles are missing. Sorted, so that the same
// question has the same answer.
func (z *RBAC) visit(user api.User, namespace string, f func(objectName, grant, *rbacv1.PolicyRule) bool) (missing []string) {
	for _, binding := range z.boundTo(user, namespace) {
		g := z.bindings[binding]
		rules, ok := z.roles[roleName(g.role, binding.namespace)]
		if !ok {
			missing = append(missing, fmt.Sprintf("%s.%s %q not found", strings.ToLower(g.role.Kind), rbacv1.GroupName, g.role.Name))
		}
		for i := range rules {
			if !f(binding, g, &rules[i]) {
				return missing
			}
		}
	}
	return missing
}

// boundTo returns the bindings that name the user, those of the cluster first.
func (z *RBAC) boundTo(user api.User, namespace string) []objectName {
	found := make(map[objectName]bool)
	add := func(s subject) {
		for binding := range z.subjects[s] {
			if binding.namespace == "" || binding.namespace == namespace {
				found[binding] = true
			}
		}
	}
	add(subject{rbacv1.UserKind, user.Name})
	for _, group := range user.Groups {
		add(subject{rbacv1.GroupKind, group})
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b objectName) int {
		if c := strings.Compare(a.namespace, b.namespace); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
}

func roleName(ref rbacv1.RoleRef, namespace string) objectName {
	if ref.Kind == "ClusterRole" {
		namespace = ""
	}
	return objectName{namespace, ref.Name}
}

func describeGrant(binding objectName, g grant) string {
	if binding.namespace == "" {
		return fmt.Sprintf("ClusterRoleBinding %q of %s %q", binding.name, g.role.Kind, g.role.Name)
	}
	return fmt.Sprintf("RoleBinding \"%s/%s\" of %s %q", binding.namespace, binding.name, g.role.Kind, g.role.Name)
}

func (z *RBAC) refresh(ctx context.Context) error {
	changes, err := z.feed.Poll(ctx)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if c.Reset {
			z.forget(c.Resource)
			continue
		}
		z.apply(c)
	}
	return nil
}

func (z *RBAC) apply(c RBACChange) {
	name := objectName{c.Namespace, c.Name}
	switch obj := c.Obj.(type) {
	case *rbacv1.Role:
		z.roles[name] = obj.Rules
	case *rbacv1.ClusterRole:
		z.roles[name] = obj.Rules
	case *rbacv1.RoleBinding:
		z.bind(name, grant{obj.RoleRef, subjectsOf(obj.Subjects, c.Namespace)})
	case *rbacv1.ClusterRoleBinding:
		z.bind(name, grant{obj.RoleRef, subjectsOf(obj.Subjects, "")})
	default:
		if c.Resource == "roles" || c.Resource == "clusterroles" {
			delete(z.roles, name)
			return
		}
		z.unbind(name)
	}
}

// forget drops all objects of a resource.
func (z *RBAC) forget(resource string) {
	inNamespace := resource == "roles" || resource == "rolebindings"
	if resource == "roles" || resource == "clusterroles" {
		maps.DeleteFunc(z.roles, func(n objectName, _ []rbacv1.PolicyRule) bool { return (n.namespace != "") == inNamespace })
		return
	}
	for _, name := range slices.Collect(maps.Keys(z.bindings)) {
		if (name.namespace != "") == inNamespace {
			z.unbind(name)
		}
	}
}

func (z *RBAC) bind(name objectName, g grant) {
	z.unbind(name)
	z.bindings[name] = g
	for _, s := range g.subjects {
		if z.subjects[s] == nil {
			z.subjects[s] = make(map[objectName]bool)
		}
		z.subjects[s][name] = true
	}
}

func (z *RBAC) unbind(name objectName) {
	for _, s := range z.bindings[name].subjects {
		delete(z.subjects[s], name)
		if len(z.subjects[s]) == 0 {
			delete(z.subjects, s)
		}
	}
	delete(z.bindings, name)
}

// subjectsOf makes users of service accounts; namespace is that of an account
// that names none.
func subjectsOf(all []rbacv1.Subject, namespace string) []subject {
	list := make([]subject, 0, len(all))
	for _, s := range all {
		switch s.Kind {
		case rbacv1.UserKind, rbacv1.GroupKind:
			list = append(list, subject{s.Kind, s.Name})
		case rbacv1.ServiceAccountKind:
			in := s.Namespace
			if in == "" {
				in = namespace
			}
			if in != "" {
				list = append(list, subject{rbacv1.UserKind, api.AccountUserPrefix + in + ":" + s.Name})
			}
		}
	}
	return list
}
