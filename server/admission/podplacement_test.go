package admission_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/admission"
)

const gatedPod = `
metadata: {name: p, labels: {app: web, pod-template-hash: abc}}
spec:
  schedulingGates: [{name: a}, {name: b}]
  nodeSelector: {disk: ssd}
  containers: [{name: c, image: i}]
`

func TestGatesMayOnlyBeRemoved(t *testing.T) {
	was := podOf(t, gatedPod)
	admission.PreparePod(was)
	if c := was.Status.Conditions; len(c) != 1 || c[0].Type != corev1.PodScheduled || c[0].Status != corev1.ConditionFalse || c[0].Reason != "SchedulingGated" {
		t.Errorf("conditions of a gated pod: %v", c)
	}
	require := func(keys ...string) *corev1.Affinity {
		var term corev1.NodeSelectorTerm
		for _, key := range keys {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpExists})
		}
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}}
	}
	for name, tt := range map[string]struct {
		change, before func(*corev1.PodSpec)
		want           string // of the errors; "": none
	}{
		"one removed":           {change: func(s *corev1.PodSpec) { s.SchedulingGates = s.SchedulingGates[1:] }},
		"all removed":           {change: func(s *corev1.PodSpec) { s.SchedulingGates = nil }},
		"one added":             {change: func(s *corev1.PodSpec) { s.SchedulingGates[0].Name = "c" }, want: "spec.schedulingGates[0]: Forbidden: only deletion is allowed, but found new scheduling gate 'c'"},
		"selector added to":     {change: func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"disk": "ssd", "x": "y"} }},
		"selector changed":      {change: func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"disk": "hdd"} }, want: "changed: nodeSelector"},
		"affinity set":          {change: func(s *corev1.PodSpec) { s.Affinity = require("a") }},
		"affinity narrowed":     {before: func(s *corev1.PodSpec) { s.Affinity = require("a") }, change: func(s *corev1.PodSpec) { s.Affinity = require("a", "b") }},
		"affinity widened":      {before: func(s *corev1.PodSpec) { s.Affinity = require("a", "b") }, change: func(s *corev1.PodSpec) { s.Affinity = require("a") }, want: "changed: affinity"},
		"affinity of another":   {change: func(s *corev1.PodSpec) { s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}} }, want: "changed: affinity"},
		"not gated any more":    {before: func(s *corev1.PodSpec) { s.SchedulingGates = nil }, change: func(s *corev1.PodSpec) { s.Affinity = require("a") }, want: "changed: affinity"},
		"gates where none were": {before: func(s *corev1.PodSpec) { s.SchedulingGates = nil }, change: func(s *corev1.PodSpec) { s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}} }, want: "only deletion is allowed"},
	} {
		old := was.DeepCopy()
		if tt.before != nil {
			tt.before(&old.Spec)
		}
		now := old.DeepCopy()
		tt.change(&now.Spec)
		errs := admission.ValidatePodUpdate(now, old)
		if got := fmt.Sprint(errs); tt.want == "" && len(errs) > 0 || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %q", name, got, tt.want)
		}
	}
	bound := was.DeepCopy()
	bound.Spec.NodeName = "n"
	if errs := admission.ValidateBinding(bound, was); len(errs) != 1 || !strings.Contains(errs[0].Detail, "remove the gates first") {
		t.Errorf("a gated pod may be bound: %v", errs)
	}
}

func TestLabelKeysBecomeRequirements(t *testing.T) {
	p := podOf(t, gatedPod)
	term := corev1.PodAffinityTerm{
		TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		MatchLabelKeys: []string{"pod-template-hash", "none"}, MismatchLabelKeys: []string{"app"},
	}
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{LabelSelector: &metav1.LabelSelector{}, MatchLabelKeys: []string{"pod-template-hash"}}}
	admission.PreparePod(p)
	hash := metav1.LabelSelectorRequirement{Key: "pod-template-hash", Operator: metav1.LabelSelectorOpIn, Values: []string{"abc"}}
	want := []metav1.LabelSelectorRequirement{hash, {Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"web"}}}
	if diff := cmp.Diff(want, p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchExpressions); diff != "" {
		t.Errorf("anti-affinity (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:1], p.Spec.TopologySpreadConstraints[0].LabelSelector.MatchExpressions); diff != "" {
		t.Errorf("spread (-want +got):\n%s", diff)
	}
}

// What a pod asks of its placement is bounded, and said so at once however much
// it is.
func TestPlacementIsBounded(t *testing.T) {
	selector := func(values int) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In", Values: make([]string, values)}}}
	}
	for name, tt := range map[string]struct {
		change func(*corev1.PodSpec)
		want   string
	}{
		"terms": {func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: make([]corev1.PodAffinityTerm, 4000)}}
		}, "has 4000 terms of affinity and anti-affinity to pods, at most 32 are supported"},
		"a million values": {func(s *corev1.PodSpec) {
			for range 16 {
				s.TopologySpreadConstraints = append(s.TopologySpreadConstraints, corev1.TopologySpreadConstraint{LabelSelector: selector(1 << 16)})
			}
		}, "has 1048592 keys, values and names"},
		"requirements": {func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{LabelSelector: &metav1.LabelSelector{MatchExpressions: make([]metav1.LabelSelectorRequirement, 4000)}}}
		}, "has 4000 requirements of pods"},
		"constraints": {func(s *corev1.PodSpec) { s.TopologySpreadConstraints = make([]corev1.TopologySpreadConstraint, 17) }, "has 17 items, at most 16"},
		"node terms": {func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 4000)}}}
		}, "has 4000 terms, at most 256"},
		"gates": {func(s *corev1.PodSpec) { s.SchedulingGates = make([]corev1.PodSchedulingGate, 65) }, "has 65 items, at most 64"},
	} {
		p := podOf(t, gatedPod)
		tt.change(&p.Spec)
		begin := time.Now()
		errs := admission.ValidatePod(p)
		if len(errs) != 1 || !strings.Contains(errs[0].Detail, tt.want) || time.Since(begin) > time.Second {
			t.Errorf("%s: %d errors after %s, the first of which: %.200v", name, len(errs), time.Since(begin), errs)
		}
	}
}

func TestSystemPriorityClassesAreKept(t *testing.T) {
	class := func(name string, value int32, change ...func(*schedulingv1.PriorityClass)) *schedulingv1.PriorityClass {
		c := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		admission.DefaultPriorityClass(c)
		for _, f := range change {
			f(c)
		}
		return c
	}
	policy := func(p corev1.PreemptionPolicy) func(*schedulingv1.PriorityClass) {
		return func(c *schedulingv1.PriorityClass) { c.PreemptionPolicy = &p }
	}
	for _, tt := range []struct {
		class *schedulingv1.PriorityClass
		want  string
	}{
		{class("high", 1_000_000_000), ""},
		{class("low", -5), ""},
		{class("too-high", 1_000_000_001), "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"},
		{class("system-mine", 5), "system-mine is not a known system priority class"},
		{class("system-node-critical", 5), "value of system-node-critical PriorityClass must be 2000001000"},
		{class("system-node-critical", 2_000_001_000), ""},
		{class("system-cluster-critical", 2_000_000_000, func(c *schedulingv1.PriorityClass) { c.GlobalDefault = true }), "globalDefault of system-cluster-critical"},
		{class("p", 1, policy("Sometimes")), `preemptionPolicy: Unsupported value: "Sometimes"`},
	} {
		got := fmt.Sprint(admission.ValidatePriorityClass(tt.class))
		if tt.want == "" && got != "[]" || !strings.Contains(got, tt.want) {
			t.Errorf("%s %d: %s, want %q", tt.class.Name, tt.class.Value, got, tt.want)
		}
	}
	for _, c := range admission.SystemPriorityClasses() {
		if errs := admission.ValidatePriorityClass(c); len(errs) > 0 {
			t.Errorf("%s: %v", c.Name, errs)
		}
	}
	if errs := admission.ValidatePriorityClassUpdate(class("a", 2, policy(corev1.PreemptNever)), class("a", 1)); len(errs) != 2 {
		t.Errorf("value and policy may change: %v", errs)
	}
	if errs := admission.ValidatePriorityClassUpdate(class("a", 1, func(c *schedulingv1.PriorityClass) { c.GlobalDefault = true }), class("a", 1)); len(errs) > 0 {
		t.Errorf("globalDefault may not change: %v", errs)
	}
}
