package auth_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/auth"
)

// rbacFeed hands out what is put into it.
type rbacFeed struct{ changes []auth.RBACChange }

func (f *rbacFeed) Poll(context.Context) ([]auth.RBACChange, error) {
	changes := f.changes
	f.changes = nil
	return changes, nil
}

func (f *rbacFeed) put(objs ...auth.Object) {
	for _, obj := range objs {
		f.changes = append(f.changes, auth.RBACChange{Resource: resourceOf(obj), Namespace: obj.GetNamespace(), Name: obj.GetName(), Obj: obj})
	}
}

func (f *rbacFeed) remove(obj auth.Object) {
	f.changes = append(f.changes, auth.RBACChange{Resource: resourceOf(obj), Namespace: obj.GetNamespace(), Name: obj.GetName()})
}

func resourceOf(obj auth.Object) string {
	_, kind, _ := strings.Cut(fmt.Sprintf("%T", obj), ".")
	return strings.ToLower(kind) + "s"
}

// defaultPolicy has the usual roles, aggregated as the server does.
func defaultPolicy() *rbacFeed {
	f := &rbacFeed{}
	roles := auth.DefaultClusterRoles()
	for range roles {
		for _, r := range roles {
			r.Rules, _ = auth.Aggregate(r, roles)
		}
	}
	for _, r := range roles {
		f.put(r)
	}
	for _, b := range auth.DefaultClusterRoleBindings() {
		f.put(b)
	}
	return f
}

func member(name string, groups ...string) api.User {
	return api.User{Name: name, Groups: append(groups, api.GroupAuthenticated)}
}

func roleBinding(namespace, name, kind, role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, RoleRef: rbacv1.RoleRef{Kind: kind, Name: role}, Subjects: subjects}
}

func policyRule(verbs, groups, resources string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		Verbs: strings.Split(verbs, ","), APIGroups: strings.Split(groups, ","), Resources: strings.Split(resources, ","), ResourceNames: names,
	}
}

func TestRulesAllowWhatTheySay(t *testing.T) {
	f := defaultPolicy()
	f.put(
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "logs"}, Rules: []rbacv1.PolicyRule{
			policyRule("get", "", "pods/log"), policyRule("update", "*", "*/scale"), policyRule("get,delete", "", "configmaps", "one"),
		}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "all-core"}, Rules: []rbacv1.PolicyRule{policyRule("*", "", "*")}},
		roleBinding("a", "1", "Role", "logs", rbacv1.Subject{Kind: "User", Name: "ann"}),
		roleBinding("a", "2", "ClusterRole", "view", rbacv1.Subject{Kind: "Group", Name: "readers"}),
		roleBinding("b", "3", "ClusterRole", "all-core", rbacv1.Subject{Kind: "ServiceAccount", Name: "bot"}),
		roleBinding("b", "4", "Role", "nosuch", rbacv1.Subject{Kind: "User", Name: "ann"}),
	)
	z := auth.NewAuthorizer(nil, auth.NewRBAC(f))
	ann, bob, bot := member("ann"), member("bob", "readers"), api.AccountUser("b", "bot", "u")
	for _, test := range []struct {
		user          api.User
		verb          string
		group, what   string // resource[/subresource], or a path
		ns, name      string
		want          bool
		reasonHasText string
	}{
		{user: ann, verb: "get", what: "pods/log", ns: "a", name: "p", want: true, reasonHasText: `RoleBinding "a/1" of Role "logs"`},
		{user: ann, verb: "get", what: "pods", ns: "a", name: "p"},
		{user: ann, verb: "get", what: "pods/log", ns: "b", name: "p", reasonHasText: `role.rbac.authorization.k8s.io "nosuch" not found`},
		{user: ann, verb: "get", what: "pods/log", ns: ""},
		{user: ann, verb: "update", group: "apps", what: "deployments/scale", ns: "a", name: "d", want: true},
		{user: ann, verb: "update", group: "apps", what: "deployments", ns: "a", name: "d"},
		{user: ann, verb: "get", what: "configmaps", ns: "a", name: "one", want: true},
		{user: ann, verb: "get", what: "configmaps", ns: "a", name: "two"},
		{user: ann, verb: "list", what: "configmaps", ns: "a"},
		{user: ann, verb: "delete", what: "configmaps", ns: "a"},
		{user: bob, verb: "list", what: "pods", ns: "a", want: true},
		{user: bob, verb: "get", what: "pods/log", ns: "a", want: true},
		{user: bob, verb: "get", group: "edge.bramble.dev", what: "placements", ns: "a", want: true},
		{user: bob, verb: "list", what: "pods", ns: "b"},
		{user: bob, verb: "list", what: "secrets", ns: "a"},
		{user: bob, verb: "create", what: "pods", ns: "a"},
		{user: bob, verb: "get", what: "pods/exec", ns: "a"},
		{user: bob, verb: "list", group: "rbac.authorization.k8s.io", what: "roles", ns: "a"},
		{user: bot, verb: "delete", what: "secrets", ns: "b", want: true},
		{user: bot, verb: "get", what: "pods/exec", ns: "b", want: true},
		{user: bot, verb: "get", group: "apps", what: "deployments", ns: "b"},
		{user: bot, verb: "get", what: "secrets", ns: "a"},
		{user: bot, verb: "get", what: "/apis/apps", want: true},
		{user: bot, verb: "get", what: "/metrics"},
		{user: member("m", "system:monitoring"), verb: "get", what: "/metrics", want: true},
		{user: bob, verb: "create", group: "authorization.k8s.io", what: "selfsubjectaccessreviews", want: true},
		{user: bob, verb: "create", group: "authorization.k8s.io", what: "subjectaccessreviews"},
		{user: bob, verb: "create", group: "authentication.k8s.io", what: "selfsubjectreviews", want: true},
		{user: api.User{Name: api.UserAnonymous, Groups: []string{api.GroupUnauthenticated}}, verb: "get", what: "/version", want: true},
		{user: api.User{Name: api.UserAnonymous, Groups: []string{api.GroupUnauthenticated}}, verb: "get", what: "/api"},
	} {
		a := auth.Attributes{User: test.user, Verb: test.verb, Group: test.group, Namespace: test.ns, Name: test.name}
		if strings.HasPrefix(test.what, "/") {
			a.Path = test.what
		} else {
			a.Resource, a.Subresource, _ = strings.Cut(test.what, "/")
		}
		got, reason, err := z.Authorize(t.Context(), a)
		if err != nil || got != test.want || !strings.Contains(reason, test.reasonHasText) {
			t.Errorf("%s %s %s in %q: %v, %q, %v", test.user.Name, test.verb, test.what, test.ns, got, reason, err)
		}
	}
}

// What is granted holds at once, and what is taken away ends at once.
func TestRBACFollowsItsFeed(t *testing.T) {
	f := defaultPolicy()
	z := auth.NewRBAC(f)
	may := func() bool {
		t.Helper()
		ok, _, err := z.Allows(t.Context(), auth.Attributes{User: member("ann"), Verb: "get", Resource: "pods", Namespace: "a"})
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	b := roleBinding("a", "1", "ClusterRole", "view", rbacv1.Subject{Kind: "User", Name: "ann"})
	view := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"}, Rules: []rbacv1.PolicyRule{policyRule("get", "", "pods")}}
	for i, step := range []struct {
		do   func()
		want bool
	}{
		{func() {}, false},
		{func() { f.put(b) }, true},
		{func() { f.remove(view) }, false},
		{func() { f.put(view) }, true},
		{func() { f.put(roleBinding("a", "1", "ClusterRole", "view", rbacv1.Subject{Kind: "User", Name: "bob"})) }, false},
		{func() { f.put(b) }, true},
		{func() { f.remove(b) }, false},
		{func() { f.put(b) }, true},
		{func() { f.changes = append(f.changes, auth.RBACChange{Reset: true, Resource: "clusterrolebindings"}) }, true},
		{func() { f.changes = append(f.changes, auth.RBACChange{Reset: true, Resource: "rolebindings"}) }, false},
	} {
		step.do()
		if got := may(); got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
}

func TestNobodyGivesWhatTheyLack(t *testing.T) {
	f := defaultPolicy()
	f.put(
		roleBinding("a", "1", "ClusterRole", "admin", rbacv1.Subject{Kind: "User", Name: "ann"}),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "binder"}, Rules: []rbacv1.PolicyRule{
			policyRule("bind", rbacv1.GroupName, "clusterroles", "cluster-admin"), policyRule("escalate", rbacv1.GroupName, "roles"),
		}},
		roleBinding("a", "2", "ClusterRole", "binder", rbacv1.Subject{Kind: "User", Name: "bob"}),
	)
	rules := auth.NewRBAC(f)
	e := auth.NewEscalation(rules, auth.NewAuthorizer(nil, rules))
	role := func(ns string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
		return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "r"}, Rules: rules}
	}
	all, pods := policyRule("*", "*", "*"), policyRule("get,list", "", "pods,secrets")
	gathers := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "g"}, AggregationRule: &rbacv1.AggregationRule{}}
	someone := rbacv1.Subject{Kind: "User", Name: "x"}
	for _, test := range []struct {
		name     string
		user     string
		obj, old auth.Object
		want     string // in the error; "": allowed
	}{
		{"held", "ann", role("a", pods), nil, ""},
		{"not held", "ann", role("a", all), nil, `attempting to grant RBAC permissions not currently held:` + "\n" + `{APIGroups:["*"], Resources:["*"], Verbs:["*"]}`},
		{"held elsewhere", "ann", role("b", pods), nil, "not currently held"},
		{"unchanged rules", "ann", role("a", all), role("a", all), ""},
		{"more rules", "ann", role("a", all), role("a", pods), "not currently held"},
		{"may escalate", "bob", role("a", all), nil, ""},
		{"may escalate elsewhere", "bob", role("b", all), nil, "not currently held"},
		{"cluster role", "ann", &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{pods}}, nil, "not currently held"},
		{"aggregation", "ann", gathers, nil, "must have cluster-admin privileges"},
		{"binds what is held", "ann", roleBinding("a", "x", "ClusterRole", "edit", someone), nil, ""},
		{"binds more", "ann", roleBinding("a", "x", "ClusterRole", "cluster-admin", someone), nil, "not currently held"},
		{"may bind", "bob", roleBinding("a", "x", "ClusterRole", "cluster-admin", someone), nil, ""},
		{"may bind that one only", "bob", roleBinding("a", "x", "ClusterRole", "edit", someone), nil, "not currently held"},
		{"no such role", "ann", roleBinding("a", "x", "Role", "nosuch", someone), nil, `roles.rbac.authorization.k8s.io "nosuch" not found`},
		{"same subjects", "ann", roleBinding("a", "x", "ClusterRole", "cluster-admin", someone), roleBinding("a", "x", "ClusterRole", "cluster-admin", someone), ""},
		{"more subjects", "ann", roleBinding("a", "x", "ClusterRole", "cluster-admin", someone), roleBinding("a", "x", "ClusterRole", "cluster-admin"), "not currently held"},
	} {
		w := auth.Write{Verb: "create", Obj: test.obj, Old: test.old}
		err := e.Admit(api.WithUser(t.Context(), member(test.user)), w)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
		if err := e.Admit(t.Context(), w); err != nil {
			t.Errorf("%s: the server itself: %v", test.name, err)
		}
		if err := e.Admit(api.WithUser(t.Context(), api.User{Name: "root", Groups: []string{api.GroupMasters}}), w); err != nil {
			t.Errorf("%s: an administrator: %v", test.name, err)
		}
	}
}

func TestAggregateGathersEachRuleOnce(t *testing.T) {
	named := func(name string, labels map[string]string, verbs string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Rules: []rbacv1.PolicyRule{policyRule(verbs, "", "pods")}}
	}
	g := named("g", map[string]string{"into": "g"}, "old")
	g.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"into": "g"}}}}
	rules, err := auth.Aggregate(g, []*rbacv1.ClusterRole{
		named("c", map[string]string{"into": "g"}, "get"), named("b", map[string]string{"into": "g"}, "list"), g,
		named("a", map[string]string{"into": "g"}, "get"), named("x", nil, "delete"),
	})
	var verbs []string
	for _, r := range rules {
		verbs = append(verbs, r.Verbs...)
	}
	if err != nil || !slices.Equal(verbs, []string{"get", "list"}) {
		t.Errorf("got %v, %v", verbs, err)
	}
}

func TestReviewsTellWhoMayWhat(t *testing.T) {
	f := defaultPolicy()
	f.put(roleBinding("a", "1", "ClusterRole", "view", rbacv1.Subject{Kind: "User", Name: "ann"}))
	rules := auth.NewRBAC(f)
	v := &auth.Reviews{Decider: auth.NewAuthorizer(nil, rules), Rules: rules}
	ctx := api.WithUser(t.Context(), member("ann", "g"))
	who, err := v.SelfSubject(ctx, &authenticationv1.SelfSubjectReview{})
	if err != nil || who.Status.UserInfo.Username != "ann" || !slices.Equal(who.Status.UserInfo.Groups, []string{"g", api.GroupAuthenticated}) {
		t.Errorf("who: %+v, %v", who, err)
	}
	pods := func(ns string) *authorizationv1.ResourceAttributes {
		return &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: ns}
	}
	self, err := v.SelfAccess(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: pods("a")}})
	if err != nil || !self.Status.Allowed {
		t.Errorf("self: %+v, %v", self, err)
	}
	if _, err := v.SelfAccess(ctx, &authorizationv1.SelfSubjectAccessReview{}); !apierrors.IsInvalid(err) {
		t.Errorf("empty: %v", err)
	}
	other := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "bob", ResourceAttributes: pods("a")}}
	if got, err := v.Access(ctx, other); err != nil || got.Status.Allowed {
		t.Errorf("bob: %+v, %v", got, err)
	}
	if _, err := v.Access(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: pods("a")}}); !apierrors.IsInvalid(err) {
		t.Errorf("nobody: %v", err)
	}
	local := &authorizationv1.LocalSubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "ann", ResourceAttributes: pods("a")}}
	if got, err := v.LocalAccess(ctx, "a", local); err != nil || !got.Status.Allowed {
		t.Errorf("local: %+v, %v", got, err)
	}
	if _, err := v.LocalAccess(ctx, "b", local); !apierrors.IsInvalid(err) {
		t.Errorf("another namespace: %v", err)
	}
	list, err := v.SelfRules(ctx, &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "a"}})
	if err != nil || list.Status.Incomplete || len(list.Status.ResourceRules) < 5 || len(list.Status.NonResourceRules) == 0 {
		t.Errorf("rules: %+v, %v", list, err)
	}
}

// ofCluster are a role of these rules and its binding to a user.
func ofCluster(user string, rules ...rbacv1.PolicyRule) []auth.Object {
	return []auth.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "of-" + user}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "of-" + user}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "of-" + user},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: user}},
		},
	}
}
