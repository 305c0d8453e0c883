package admission

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateRBACName is the rule for names of roles and bindings: all that can
// stand in a path, also "system:node".
func ValidateRBACName(name string, prefix bool) []string {
	var errs []string
	if !prefix && (name == "." || name == "..") {
		errs = append(errs, fmt.Sprintf("may not be '%s'", name))
	}
	for _, c := range []string{"/", "%"} {
		if strings.Contains(name, c) {
			errs = append(errs, fmt.Sprintf("may not contain '%s'", c))
		}
	}
	return errs
}

// ValidateRole checks the rules.
func ValidateRole(r *rbacv1.Role) field.ErrorList { return validateRules(r.Rules, true) }

// ValidateClusterRole checks the rules and the selectors of an aggregationRule.
func ValidateClusterRole(r *rbacv1.ClusterRole) field.ErrorList {
	errs := validateRules(r.Rules, false)
	if r.AggregationRule == nil {
		return errs
	}
	selectors := field.NewPath("aggregationRule", "clusterRoleSelectors")
	if len(r.AggregationRule.ClusterRoleSelectors) == 0 {
		errs = append(errs, field.Required(selectors, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
	}
	for i := range r.AggregationRule.ClusterRoleSelectors {
		at := selectors.Index(i)
		errs = append(errs, metav1validation.ValidateLabelSelector(&r.AggregationRule.ClusterRoleSelectors[i],
			metav1validation.LabelSelectorValidationOptions{}, at)...)
		if _, err := metav1.LabelSelectorAsSelector(&r.AggregationRule.ClusterRoleSelectors[i]); err != nil {
			errs = append(errs, field.Invalid(at, "", "invalid label selector"))
		}
	}
	return errs
}

func validateRules(rules []rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		errs = append(errs, validateRule(&rules[i], namespaced, field.NewPath("rules").Index(i))...)
	}
	return errs
}

func validateRule(r *rbacv1.PolicyRule, namespaced bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(r.Verbs) == 0 {
		errs = append(errs, field.Required(at.Child("verbs"), "verbs must contain at least one value"))
	}
	if len(r.NonResourceURLs) > 0 {
		if namespaced {
			errs = append(errs, field.Invalid(at.Child("nonResourceURLs"), r.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
		}
		if len(r.APIGroups) > 0 || len(r.Resources) > 0 || len(r.ResourceNames) > 0 {
			errs = append(errs, field.Invalid(at.Child("nonResourceURLs"), r.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
		}
		return errs
	}
	if len(r.APIGroups) == 0 {
		errs = append(errs, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
	}
	if len(r.Resources) == 0 {
		errs = append(errs, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))
	}
	return errs
}

// DefaultRoleBinding fills in the groups that are meant.
func DefaultRoleBinding(b *rbacv1.RoleBinding) {
	setDefault(&b.RoleRef.APIGroup, rbacv1.GroupName)
	defaultSubjects(b.Subjects)
}

// DefaultClusterRoleBinding fills in the groups that are meant.
func DefaultClusterRoleBinding(b *rbacv1.ClusterRoleBinding) {
	setDefault(&b.RoleRef.APIGroup, rbacv1.GroupName)
	defaultSubjects(b.Subjects)
}

func defaultSubjects(all []rbacv1.Subject) {
	for i := range all {
		if all[i].Kind == rbacv1.UserKind || all[i].Kind == rbacv1.GroupKind {
			setDefault(&all[i].APIGroup, rbacv1.GroupName)
		}
	}
}

// ValidateRoleBinding checks the role and the subjects.
func ValidateRoleBinding(b *rbacv1.RoleBinding) field.ErrorList {
	return append(validateRoleRef(b.RoleRef, "Role", "ClusterRole"), validateSubjects(b.Subjects, true)...)
}

// ValidateClusterRoleBinding checks the role and the subjects.
func ValidateClusterRoleBinding(b *rbacv1.ClusterRoleBinding) field.ErrorList {
	return append(validateRoleRef(b.RoleRef, "ClusterRole"), validateSubjects(b.Subjects, false)...)
}

// ValidateRoleBindingUpdate holds the roleRef, which cannot change: who may add
// subjects to a binding must not so be able to bind another role.
func ValidateRoleBindingUpdate(b, old *rbacv1.RoleBinding) field.ErrorList {
	return sameRole(b.RoleRef, old.RoleRef)
}

// ValidateClusterRoleBindingUpdate holds the roleRef.
func ValidateClusterRoleBindingUpdate(b, old *rbacv1.ClusterRoleBinding) field.ErrorList {
	return sameRole(b.RoleRef, old.RoleRef)
}

func sameRole(ref, old rbacv1.RoleRef) field.ErrorList {
	if ref == old {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("roleRef"), ref, "cannot change roleRef")}
}

func validateRoleRef(ref rbacv1.RoleRef, kinds ...string) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("roleRef")
	if ref.APIGroup != rbacv1.GroupName {
		errs = append(errs, field.NotSupported(at.Child("apiGroup"), ref.APIGroup, []string{rbacv1.GroupName}))
	}
	if !slices.Contains(kinds, ref.Kind) {
		errs = append(errs, field.NotSupported(at.Child("kind"), ref.Kind, kinds))
	}
	if ref.Name == "" {
		return append(errs, field.Required(at.Child("name"), ""))
	}
	for _, msg := range ValidateRBACName(ref.Name, false) {
		errs = append(errs, field.Invalid(at.Child("name"), ref.Name, msg))
	}
	return errs
}

func validateSubjects(all []rbacv1.Subject, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i := range all {
		errs = append(errs, validateSubject(&all[i], namespaced, field.NewPath("subjects").Index(i))...)
	}
	return errs
}

func validateSubject(s *rbacv1.Subject, namespaced bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	group := rbacv1.GroupName
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		group = ""
		if s.Name != "" {
			for _, msg := range validation.ValidateServiceAccountName(s.Name, false) {
				errs = append(errs, field.Invalid(at.Child("name"), s.Name, msg))
			}
		}
		if !namespaced && s.Namespace == "" {
			errs = append(errs, field.Required(at.Child("namespace"), ""))
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
	default:
		return append(errs, field.NotSupported(at.Child("kind"), s.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
	}
	if s.APIGroup != group {
		errs = append(errs, field.NotSupported(at.Child("apiGroup"), s.APIGroup, []string{group}))
	}
	return errs
}
