package admission_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/admission"
)

func TestRolesAndBindingsAreValidated(t *testing.T) {
	good := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}
	paths := rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/x"}}
	mixed := paths
	mixed.Resources = []string{"pods"}
	want(t, "role", admission.ValidateRole(&rbacv1.Role{Rules: []rbacv1.PolicyRule{good}}))
	want(t, "bad role", admission.ValidateRole(&rbacv1.Role{Rules: []rbacv1.PolicyRule{{}, paths}}),
		"rules[0].verbs: Required", "rules[0].apiGroups: Required", "rules[0].resources: Required", "rules[1].nonResourceURLs: Invalid value")
	want(t, "cluster role", admission.ValidateClusterRole(&rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{good, paths}}))
	want(t, "bad cluster role", admission.ValidateClusterRole(&rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{mixed}, AggregationRule: &rbacv1.AggregationRule{}}),
		"rules[0].nonResourceURLs: Invalid value", "aggregationRule.clusterRoleSelectors: Required")
	want(t, "bad selector", admission.ValidateClusterRole(&rbacv1.ClusterRole{AggregationRule: &rbacv1.AggregationRule{
		ClusterRoleSelectors: []metav1.LabelSelector{{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In"}}}},
	}}), "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].values: Required", "aggregationRule.clusterRoleSelectors[0]: Invalid value")

	b := &rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "system:x"}, Subjects: []rbacv1.Subject{
		{Kind: "User", Name: "ann"}, {Kind: "ServiceAccount", Name: "default"},
	}}
	admission.DefaultRoleBinding(b)
	want(t, "binding", admission.ValidateRoleBinding(b))
	other := b.DeepCopy()
	other.RoleRef.Name = "y"
	want(t, "another role", admission.ValidateRoleBindingUpdate(other, b), "roleRef: Invalid value")
	want(t, "bad binding", admission.ValidateRoleBinding(&rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: "x", Name: "a/b"}, Subjects: []rbacv1.Subject{
		{Kind: "Robot", Name: "r"}, {Kind: "User"}, {Kind: "ServiceAccount", Name: "A", APIGroup: "x"},
	}}), "roleRef.apiGroup: Unsupported", "roleRef.kind: Unsupported", "roleRef.name: Invalid value", "subjects[0].kind: Unsupported",
		"subjects[1].apiGroup: Unsupported", "subjects[1].name: Required", "subjects[2].apiGroup: Unsupported", "subjects[2].name: Invalid value")
	c := &rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "x"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default"}}}
	admission.DefaultClusterRoleBinding(c)
	want(t, "bad cluster binding", admission.ValidateClusterRoleBinding(c), "roleRef.kind: Unsupported", "subjects[0].namespace: Required")
	want(t, "account", admission.ValidateServiceAccount(&corev1.ServiceAccount{ImagePullSecrets: []corev1.LocalObjectReference{{}}}), "imagePullSecrets[0].name: Required")
	for name, ok := range map[string]bool{"system:node": true, "A b": true, ".": false, "..": false, "a/b": false, "a%b": false} {
		if got := admission.ValidateRBACName(name, false); (len(got) == 0) != ok {
			t.Errorf("%q: %v", name, got)
		}
	}
}
