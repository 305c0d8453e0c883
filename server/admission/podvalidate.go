package admission

import (
	"math"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bramble.dev/bramble/server/api"
)

// Kubernetes' limits on a pod's DNS settings.
const (
	maxNameservers = 3
	maxSearches    = 32
	maxSearchChars = 2048
)

// ValidatePod checks all but the metadata of a pod that has been defaulted.
func ValidatePod(p *corev1.Pod) field.ErrorList {
	errs := validateFailover(p)
	refusals, _ := unsupportedFields(&p.Spec)
	errs = append(errs, refusals...)
	return append(errs, validatePodSpec(&p.Spec, field.NewPath("spec"))...)
}

// PodWarnings are what a client is told of an admitted pod.
func PodWarnings(p *corev1.Pod) []string {
	_, warnings := unsupportedFields(&p.Spec)
	return warnings
}

func validateFailover(p *corev1.Pod) field.ErrorList {
	value, set := p.Annotations[api.AnnotationFailover]
	if !set {
		return nil
	}
	switch value {
	case api.FailoverKeep, api.FailoverMove, api.FailoverExclusive:
		return nil
	}
	return field.ErrorList{field.NotSupported(field.NewPath("metadata", "annotations").Key(api.AnnotationFailover), value,
		[]string{api.FailoverKeep, api.FailoverMove, api.FailoverExclusive})}
}

func validatePodSpec(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	volumes, errs := validateVolumes(s.Volumes, s, path.Child("volumes"))
	errs = append(errs, validateContainers(s, volumes, path)...)
	errs = append(errs, validatePodChoices(s, path)...)
	errs = append(errs, validatePodNumbers(s, path)...)
	errs = append(errs, validatePodNames(s, path)...)
	errs = append(errs, metav1validation.ValidateLabels(s.NodeSelector, path.Child("nodeSelector"))...)
	errs = append(errs, validateTolerations(s.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validateReadinessGates(s.ReadinessGates, path.Child("readinessGates"))...)
	errs = append(errs, validatePlacement(s, path)...)
	errs = append(errs, validatePodSecurity(s, path)...)
	errs = append(errs, validateHostAliases(s.HostAliases, path.Child("hostAliases"))...)
	return append(errs, validateDNS(s, path)...)
}

func validatePodChoices(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	errs := oneOf(s.RestartPolicy, path.Child("restartPolicy"),
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	errs = append(errs, oneOf(s.DNSPolicy, path.Child("dnsPolicy"),
		corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)...)
	if s.PreemptionPolicy != nil {
		errs = append(errs, oneOf(*s.PreemptionPolicy, path.Child("preemptionPolicy"),
			corev1.PreemptLowerPriority, corev1.PreemptNever)...)
	}
	if s.OS != nil {
		errs = append(errs, oneOf(s.OS.Name, path.Child("os", "name"), corev1.Linux)...)
	}
	return errs
}

// oneOf wants value among supported; empty is an error of its own.
func oneOf[T ~string](value T, path *field.Path, supported ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	for _, s := range supported {
		if value == s {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, supported)}
}

func validatePodNumbers(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if g := s.TerminationGracePeriodSeconds; g == nil {
		errs = append(errs, field.Required(path.Child("terminationGracePeriodSeconds"), ""))
	} else if *g < 0 {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *g, "must be greater than or equal to 0"))
	}
	if d := s.ActiveDeadlineSeconds; d != nil && (*d < 1 || *d > math.MaxInt32) {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *d, validation.InclusiveRangeError(1, math.MaxInt32)))
	}
	return errs
}

func validatePodNames(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	add := func(name, value string, msgs []string) {
		for _, msg := range msgs {
			errs = append(errs, field.Invalid(path.Child(name), value, msg))
		}
	}
	if s.Hostname != "" {
		add("hostname", s.Hostname, validation.IsDNS1123Label(s.Hostname))
	}
	if s.Subdomain != "" {
		add("subdomain", s.Subdomain, validation.IsDNS1123Label(s.Subdomain))
	}
	if s.NodeName != "" {
		add("nodeName", s.NodeName, apivalidation.NameIsDNSSubdomain(s.NodeName, false))
	}
	if s.ServiceAccountName != "" {
		add("serviceAccountName", s.ServiceAccountName, apivalidation.ValidateServiceAccountName(s.ServiceAccountName, false))
	}
	if s.SchedulerName != "" {
		add("schedulerName", s.SchedulerName, validation.IsQualifiedName(s.SchedulerName))
	}
	for i, ref := range s.ImagePullSecrets {
		if ref.Name == "" {
			errs = append(errs, field.Required(path.Child("imagePullSecrets").Index(i).Child("name"), ""))
		}
	}
	return errs
}

func validateTolerations(tolerations []corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, t := range tolerations {
		p := path.Index(i)
		if t.Key != "" {
			errs = append(errs, metav1validation.ValidateLabelName(t.Key, p.Child("key"))...)
		} else if t.Operator != corev1.TolerationOpExists {
			errs = append(errs, field.Invalid(p.Child("operator"), t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			errs = append(errs, field.Invalid(p.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
		}
		errs = append(errs, validateTolerationOperator(t, p)...)
		errs = append(errs, validateTaintEffect(t.Effect, true, p.Child("effect"))...)
	}
	return errs
}

func validateTolerationOperator(t corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		for _, msg := range validation.IsValidLabelValue(t.Value) {
			errs = append(errs, field.Invalid(path.Child("operator"), t.Value, msg))
		}
	case corev1.TolerationOpExists:
		if t.Value != "" {
			errs = append(errs, field.Invalid(path.Child("operator"), t, "value must be empty when `operator` is 'Exists'"))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("operator"), t.Operator,
			[]corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
	}
	return errs
}

func validateDNS(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	config := path.Child("dnsConfig")
	if s.DNSConfig == nil {
		if s.DNSPolicy == corev1.DNSNone {
			return field.ErrorList{field.Required(config, "must provide `dnsConfig` when `dnsPolicy` is None")}
		}
		return nil
	}
	var errs field.ErrorList
	if s.DNSPolicy == corev1.DNSNone && len(s.DNSConfig.Nameservers) == 0 {
		errs = append(errs, field.Required(config.Child("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None"))
	}
	if n := len(s.DNSConfig.Nameservers); n > maxNameservers {
		errs = append(errs, field.TooMany(config.Child("nameservers"), n, maxNameservers))
	}
	for i, ip := range s.DNSConfig.Nameservers {
		if _, err := netip.ParseAddr(ip); err != nil {
			errs = append(errs, field.Invalid(config.Child("nameservers").Index(i), ip, "must be a valid IP address"))
		}
	}
	for i, o := range s.DNSConfig.Options {
		if o.Name == "" {
			errs = append(errs, field.Required(config.Child("options").Index(i), "must have a name"))
		}
	}
	return append(errs, validateSearches(s.DNSConfig.Searches, config.Child("searches"))...)
}

func validateSearches(searches []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(searches) > maxSearches {
		errs = append(errs, field.TooMany(path, len(searches), maxSearches))
	}
	total := 0
	for i, s := range searches {
		total += len(s) + 1
		if s == "." {
			continue
		}
		if n := len(s); n > 0 && s[n-1] == '.' {
			s = s[:n-1]
		}
		for _, msg := range validation.IsDNS1123SubdomainWithUnderscore(s) {
			errs = append(errs, field.Invalid(path.Index(i), searches[i], msg))
		}
	}
	if total-1 > maxSearchChars {
		errs = append(errs, field.Invalid(path, searches, "must not have more than 2048 characters (including spaces) in the search list"))
	}
	return errs
}
