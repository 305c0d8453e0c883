package main

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resource is what the documents' paths say of one kind. A test in the server
// compares this table with the one that the server serves.
type resource struct {
	schema.GroupVersionKind
	typeName   string // Go's import path and name
	plural     string
	namespaced bool
	verbs      string // letters: c(reate) r(ead) u(pdate) p(atch) d(elete), l(ist)
	status     bool
}

const (
	core           = "k8s.io/api/core/v1."
	coordination   = "k8s.io/api/coordination/v1."
	authentication = "k8s.io/api/authentication/v1."
	authorization  = "k8s.io/api/authorization/v1."
	rbac           = "k8s.io/api/rbac/v1."
	scheduling     = "k8s.io/api/scheduling/v1."
	policy         = "k8s.io/api/policy/v1."
	meta           = "k8s.io/apimachinery/pkg/apis/meta/v1."
	ours           = "bramble.dev/bramble/server/api."
)

var (
	coreV1           = schema.GroupVersion{Version: "v1"}
	coordinationV1   = schema.GroupVersion{Group: "coordination.k8s.io", Version: "v1"}
	authenticationV1 = schema.GroupVersion{Group: "authentication.k8s.io", Version: "v1"}
	authorizationV1  = schema.GroupVersion{Group: "authorization.k8s.io", Version: "v1"}
	schedulingV1     = schema.GroupVersion{Group: "scheduling.k8s.io", Version: "v1"}
	policyV1         = schema.GroupVersion{Group: "policy", Version: "v1"}
	rbacV1           = schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	edgeV1alpha1     = schema.GroupVersion{Group: "edge.bramble.dev", Version: "v1alpha1"}
)

var resources = []resource{
	{coreV1.WithKind("ConfigMap"), core + "ConfigMap", "configmaps", true, "lcrupd", false},
	{coreV1.WithKind("Event"), core + "Event", "events", true, "lcrupd", false},
	{coreV1.WithKind("Namespace"), core + "Namespace", "namespaces", false, "lcrupd", true},
	{coreV1.WithKind("Node"), core + "Node", "nodes", false, "lcrupd", true},
	{coreV1.WithKind("Pod"), core + "Pod", "pods", true, "lcrupd", true},
	{coreV1.WithKind("Secret"), core + "Secret", "secrets", true, "lcrupd", false},
	{coreV1.WithKind("ServiceAccount"), core + "ServiceAccount", "serviceaccounts", true, "lcrupd", false},
	{authenticationV1.WithKind("SelfSubjectReview"), authentication + "SelfSubjectReview", "selfsubjectreviews", false, "c", false},
	{authenticationV1.WithKind("TokenReview"), authentication + "TokenReview", "tokenreviews", false, "c", false},
	{authorizationV1.WithKind("LocalSubjectAccessReview"), authorization + "LocalSubjectAccessReview", "localsubjectaccessreviews", true, "c", false},
	{authorizationV1.WithKind("SelfSubjectAccessReview"), authorization + "SelfSubjectAccessReview", "selfsubjectaccessreviews", false, "c", false},
	{authorizationV1.WithKind("SelfSubjectRulesReview"), authorization + "SelfSubjectRulesReview", "selfsubjectrulesreviews", false, "c", false},
	{authorizationV1.WithKind("SubjectAccessReview"), authorization + "SubjectAccessReview", "subjectaccessreviews", false, "c", false},
	{coordinationV1.WithKind("Lease"), coordination + "Lease", "leases", true, "lcrupd", false},
	{rbacV1.WithKind("ClusterRole"), rbac + "ClusterRole", "clusterroles", false, "lcrupd", false},
	{rbacV1.WithKind("ClusterRoleBinding"), rbac + "ClusterRoleBinding", "clusterrolebindings", false, "lcrupd", false},
	{rbacV1.WithKind("Role"), rbac + "Role", "roles", true, "lcrupd", false},
	{rbacV1.WithKind("RoleBinding"), rbac + "RoleBinding", "rolebindings", true, "lcrupd", false},
	{schedulingV1.WithKind("PriorityClass"), scheduling + "PriorityClass", "priorityclasses", false, "lcrupd", false},
	{edgeV1alpha1.WithKind("NodeHardware"), ours + "NodeHardware", "nodehardwares", false, "lcrupd", true},
	{edgeV1alpha1.WithKind("NodeHardwareHistory"), ours + "NodeHardwareHistory", "nodehardwarehistories", false, "r", false},
	{edgeV1alpha1.WithKind("Placement"), ours + "Placement", "placements", true, "r", false},
}

func groupVersions() []schema.GroupVersion {
	var all []schema.GroupVersion
	for _, r := range resources {
		if !slices.Contains(all, r.GroupVersion()) {
			all = append(all, r.GroupVersion())
		}
	}
	return all
}

// rootsOf are the types that a group's document must hold; what they refer to
// comes along.
func rootsOf(gv schema.GroupVersion) []string {
	roots := []string{meta + "DeleteOptions", meta + "Patch", meta + "Status", meta + "WatchEvent", meta + "APIResourceList"}
	if gv == coreV1 {
		roots = append(roots, core+"Binding")
	}
	for _, r := range resources {
		if r.GroupVersion() == gv {
			roots = append(roots, r.typeName)
			if r.lists() {
				roots = append(roots, r.typeName+"List")
			}
		}
	}
	return roots
}

func (r resource) lists() bool { return r.verbs[0] == 'l' }

// kindsOf are the kinds that a type is known by: the extension
// x-kubernetes-group-version-kind.
func kindsOf(typeName string) []schema.GroupVersionKind {
	switch typeName {
	case core + "Binding":
		return []schema.GroupVersionKind{coreV1.WithKind("Binding")}
	case meta + "Status", meta + "APIResourceList":
		return []schema.GroupVersionKind{coreV1.WithKind(typeName[len(meta):])}
	case meta + "DeleteOptions", meta + "WatchEvent":
		var all []schema.GroupVersionKind
		for _, gv := range groupVersions() {
			all = append(all, gv.WithKind(typeName[len(meta):]))
		}
		return all
	}
	for _, r := range resources {
		switch typeName {
		case r.typeName:
			return []schema.GroupVersionKind{r.GroupVersionKind}
		case r.typeName + "List":
			return []schema.GroupVersionKind{r.GroupVersion().WithKind(r.Kind + "List")}
		}
	}
	return nil
}
