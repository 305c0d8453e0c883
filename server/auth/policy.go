package auth

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/api"
)

// Label and prefix of Kubernetes' own roles.
const (
	bootstrapLabel  = "kubernetes.io/bootstrapping"
	bootstrapValue  = "rbac-defaults"
	aggregatePrefix = "rbac.authorization.k8s.io/aggregate-to-"
)

// AnnotationAutoUpdate on a role or binding says by "false" that a start of the
// server leaves it as it is.
const AnnotationAutoUpdate = "rbac.authorization.kubernetes.io/autoupdate"

// Verbs as roles group them.
func reads() []string  { return []string{"get", "list", "watch"} }
func writes() []string { return []string{"create", "delete", "deletecollection", "patch", "update"} }

func rule(verbs []string, group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: resources}
}

func paths(urls ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: urls}
}

// DefaultClusterRoles are the roles that every start of the server makes sure of,
// as Kubernetes has them for the kinds that Bramble serves or will.
func DefaultClusterRoles() []*rbacv1.ClusterRole {
	roles := []*rbacv1.ClusterRole{
		clusterRole("cluster-admin", rule([]string{"*"}, "*", "*"), rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}),
		clusterRole("system:discovery", paths("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version", "/version/")),
		clusterRole("system:public-info-viewer", paths("/healthz", "/livez", "/readyz", "/version", "/version/")),
		clusterRole("system:monitoring", paths("/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/readyz", "/readyz/*")),
		clusterRole("system:basic-user",
			rule([]string{"create"}, "authorization.k8s.io", "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
			rule([]string{"create"}, "authentication.k8s.io", "selfsubjectreviews")),
		clusterRole("system:auth-delegator",
			rule([]string{"create"}, "authentication.k8s.io", "tokenreviews"),
			rule([]string{"create"}, "authorization.k8s.io", "subjectaccessreviews")),
		clusterRole("system:node", nodeRules()...),
		clusterRole("system:aggregate-to-view", viewRules()...),
		clusterRole("system:aggregate-to-edit", editRules()...),
		clusterRole("system:aggregate-to-admin", adminRules()...),
		aggregated("view"), aggregated("edit"), aggregated("admin"),
	}
	label := func(name, into string) {
		for _, r := range roles {
			if r.Name == name {
				r.Labels[aggregatePrefix+into] = "true"
			}
		}
	}
	label("system:aggregate-to-view", "view")
	label("system:aggregate-to-edit", "edit")
	label("system:aggregate-to-admin", "admin")
	label("view", "edit")
	label("edit", "admin")
	return roles
}

// DefaultClusterRoleBindings are the bindings that every start makes sure of.
func DefaultClusterRoleBindings() []*rbacv1.ClusterRoleBinding {
	return []*rbacv1.ClusterRoleBinding{
		binding("cluster-admin", api.GroupMasters),
		binding("system:basic-user", api.GroupAuthenticated),
		binding("system:discovery", api.GroupAuthenticated),
		binding("system:monitoring", "system:monitoring"),
		binding("system:public-info-viewer", api.GroupAuthenticated, api.GroupUnauthenticated),
	}
}

func bootstrapMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Labels: map[string]string{bootstrapLabel: bootstrapValue},
		Annotations: map[string]string{AnnotationAutoUpdate: "true"},
	}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: bootstrapMeta(name), Rules: rules}
}

func aggregated(name string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: bootstrapMeta(name), AggregationRule: &rbacv1.AggregationRule{
		ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{aggregatePrefix + name: "true"}}},
	}}
}

func binding(role string, groups ...string) *rbacv1.ClusterRoleBinding {
	b := &rbacv1.ClusterRoleBinding{
		ObjectMeta: bootstrapMeta(role),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	for _, g := range groups {
		b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: g})
	}
	return b
}

// viewRules read what lies in a namespace, but no Secrets and no roles: by them
// a reader would become somebody else.
func viewRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(reads(), "", "configmaps", "endpoints", "events", "limitranges", "namespaces", "namespaces/status", "persistentvolumeclaims",
			"persistentvolumeclaims/status", "pods", "pods/log", "pods/status", "replicationcontrollers", "replicationcontrollers/scale",
			"replicationcontrollers/status", "resourcequotas", "resourcequotas/status", "serviceaccounts", "services", "services/status", "bindings"),
		rule(reads(), "apps", "controllerrevisions", "daemonsets", "daemonsets/status", "deployments", "deployments/scale", "deployments/status",
			"replicasets", "replicasets/scale", "replicasets/status", "statefulsets", "statefulsets/scale", "statefulsets/status"),
		rule(reads(), "autoscaling", "horizontalpodautoscalers", "horizontalpodautoscalers/status"),
		rule(reads(), "batch", "cronjobs", "cronjobs/status", "jobs", "jobs/status"),
		rule(reads(), "discovery.k8s.io", "endpointslices"),
		rule(reads(), "networking.k8s.io", "ingresses", "ingresses/status", "networkpolicies"),
		rule(reads(), "policy", "poddisruptionbudgets", "poddisruptionbudgets/status"),
		rule(reads(), "metrics.k8s.io", "pods", "nodes"),
		rule(reads(), api.Group, "nodehardwares", "nodehardwarehistories", "placements"),
	}
}

func editRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(reads(), "", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets", "services/proxy"),
		rule([]string{"impersonate"}, "", "serviceaccounts"),
		rule(writes(), "", "pods", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy"),
		rule([]string{"create"}, "", "pods/eviction", "serviceaccounts/token"),
		rule([]string{"patch", "update"}, "", "pods/ephemeralcontainers"),
		rule(writes(), "", "configmaps", "events", "persistentvolumeclaims", "replicationcontrollers", "replicationcontrollers/scale",
			"secrets", "serviceaccounts", "services", "services/proxy"),
		rule(writes(), "apps", "daemonsets", "deployments", "deployments/rollback", "deployments/scale", "replicasets", "replicasets/scale",
			"statefulsets", "statefulsets/scale"),
		rule(writes(), "autoscaling", "horizontalpodautoscalers"),
		rule(writes(), "batch", "cronjobs", "jobs"),
		rule(writes(), "networking.k8s.io", "ingresses", "networkpolicies"),
		rule(writes(), "policy", "poddisruptionbudgets"),
		rule(append(reads(), writes()...), "coordination.k8s.io", "leases"),
	}
}

func adminRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule([]string{"create"}, "authorization.k8s.io", "localsubjectaccessreviews"),
		rule(append(reads(), writes()...), rbacv1.GroupName, "rolebindings", "roles"),
	}
}

// nodeRules say what nodes do. Nobody is bound to them: the Authorizer lets each
// node do it to what is its own.
func nodeRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule([]string{"create", "get", "list", "watch", "patch", "update"}, "", "nodes"),
		rule([]string{"patch", "update"}, "", "nodes/status", "pods/status"),
		rule([]string{"get", "list", "watch", "delete"}, "", "pods"),
		rule([]string{"get"}, "", "configmaps", "secrets", "serviceaccounts"),
		rule([]string{"create"}, "", "serviceaccounts/token"),
		rule([]string{"create", "patch", "update"}, "", "events"),
		rule([]string{"create", "get", "patch", "update"}, "coordination.k8s.io", "leases"),
		rule([]string{"create", "get", "list", "watch", "patch", "update"}, api.Group, "nodehardwares", "nodehardwares/status"),
	}
}
