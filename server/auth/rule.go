package auth

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// ruleAllows says whether one rule allows it (Kubernetes' RBAC): "*" stands for
// all verbs, groups or resources, "*/scale" for that subresource of all
// resources, and a path that ends in "*" for all that begin so. A rule with
// resourceNames allows only requests that name one of them.
func ruleAllows(r *rbacv1.PolicyRule, a Attributes) bool {
	if !has(r.Verbs, a.Verb) {
		return false
	}
	if a.Path != "" {
		return slices.ContainsFunc(r.NonResourceURLs, func(url string) bool { return pathMatches(url, a.Path) })
	}
	return has(r.APIGroups, a.Group) && resourceMatches(r.Resources, a.Resource, a.Subresource) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.Name))
}

func has(list []string, s string) bool {
	return slices.ContainsFunc(list, func(x string) bool { return x == s || x == rbacv1.VerbAll })
}

func resourceMatches(list []string, resource, subresource string) bool {
	whole := resource
	if subresource != "" {
		whole += "/" + subresource
	}
	return slices.ContainsFunc(list, func(x string) bool {
		return x == rbacv1.ResourceAll || x == whole || subresource != "" && x == "*/"+subresource
	})
}

func pathMatches(url, path string) bool {
	if url == rbacv1.NonResourceAll || url == path {
		return true
	}
	prefix, open := strings.CutSuffix(url, "*")
	return open && strings.HasPrefix(path, prefix)
}
