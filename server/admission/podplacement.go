package admission

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits of what a pod may ask of its placement: each decision compares it with
// all nodes, and a part of it with all pods. Kubernetes has none; no pod that
// is meant comes near.
const (
	maxPodTerms        = 32   // of affinity and anti-affinity to pods
	maxPodRequirements = 256  // in the selectors of those and of the spread
	maxSpread          = 16   // topologySpreadConstraints
	maxNodeTerms       = 256  // of node affinity
	maxPlacementValues = 4096 // keys, values and names in all of it
	maxGates           = 64
)

// validatePlacement checks what a pod asks of its node and its neighbours. What
// is beyond all measure is not looked at more closely.
func validatePlacement(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	if errs := boundPlacement(s, path); len(errs) > 0 {
		return errs
	}
	errs := validateAffinity(s.Affinity, path.Child("affinity"))
	errs = append(errs, validateSpread(s.TopologySpreadConstraints, path.Child("topologySpreadConstraints"))...)
	errs = append(errs, validateGates(s, path)...)
	if s.PriorityClassName != "" {
		for _, msg := range apivalidation.NameIsDNSSubdomain(s.PriorityClassName, false) {
			errs = append(errs, field.Invalid(path.Child("priorityClassName"), s.PriorityClassName, msg))
		}
	}
	return errs
}

func validateGates(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, g := range s.SchedulingGates {
		p := path.Child("schedulingGates").Index(i)
		for _, msg := range validation.IsQualifiedName(g.Name) {
			errs = append(errs, field.Invalid(p.Child("name"), g.Name, msg))
		}
		if seen[g.Name] {
			errs = append(errs, field.Duplicate(p, g.Name))
		}
		seen[g.Name] = true
	}
	if len(s.SchedulingGates) > 0 && s.NodeName != "" {
		errs = append(errs, field.Forbidden(path.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"))
	}
	return errs
}

// boundPlacement counts.
func boundPlacement(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var c placementCount
	c.spec(s)
	var errs field.ErrorList
	for _, l := range []struct {
		path     *field.Path
		what     string
		has, max int
	}{
		{path.Child("affinity"), "terms of affinity and anti-affinity to pods", c.podTerms, maxPodTerms},
		{path.Child("affinity"), "requirements of pods in the selectors of affinity and topologySpreadConstraints", c.requirements, maxPodRequirements},
		{path.Child("affinity", "nodeAffinity"), "terms", c.nodeTerms, maxNodeTerms},
		{path.Child("affinity"), "keys, values and names in all of its terms and of topologySpreadConstraints", c.values, maxPlacementValues},
		{path.Child("topologySpreadConstraints"), "items", len(s.TopologySpreadConstraints), maxSpread},
		{path.Child("schedulingGates"), "items", len(s.SchedulingGates), maxGates},
	} {
		if l.has > l.max {
			errs = append(errs, field.Forbidden(l.path, fmt.Sprintf("has %d %s, at most %d are supported; use fewer, for instance one label for many values", l.has, l.what, l.max)))
		}
	}
	return errs
}

// placementCount is how much a pod asks.
type placementCount struct{ podTerms, requirements, nodeTerms, values int }

func (c *placementCount) spec(s *corev1.PodSpec) {
	if a := s.Affinity; a != nil && a.NodeAffinity != nil {
		if r := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
			for i := range r.NodeSelectorTerms {
				c.node(&r.NodeSelectorTerms[i])
			}
		}
		for i := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			c.node(&a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
		}
	}
	if a := s.Affinity; a != nil && a.PodAffinity != nil {
		c.pods(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := s.Affinity; a != nil && a.PodAntiAffinity != nil {
		c.pods(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	for i := range s.TopologySpreadConstraints {
		t := &s.TopologySpreadConstraints[i]
		c.selector(t.LabelSelector)
		c.values += len(t.MatchLabelKeys)
	}
}

func (c *placementCount) node(t *corev1.NodeSelectorTerm) {
	c.nodeTerms++
	for i := range t.MatchExpressions {
		c.values += 1 + len(t.MatchExpressions[i].Values)
	}
	for i := range t.MatchFields {
		c.values += 1 + len(t.MatchFields[i].Values)
	}
}

func (c *placementCount) pods(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	for i := range required {
		c.term(&required[i])
	}
	for i := range preferred {
		c.term(&preferred[i].PodAffinityTerm)
	}
}

func (c *placementCount) term(t *corev1.PodAffinityTerm) {
	c.podTerms++
	c.values += len(t.Namespaces) + len(t.MatchLabelKeys) + len(t.MismatchLabelKeys)
	c.selector(t.LabelSelector)
	c.selector(t.NamespaceSelector)
}

func (c *placementCount) selector(s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	c.requirements += len(s.MatchLabels) + len(s.MatchExpressions)
	c.values += len(s.MatchLabels)
	for i := range s.MatchExpressions {
		c.values += 1 + len(s.MatchExpressions[i].Values)
	}
}
