package admission

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// defaultTolerationSeconds is how long a pod stays on a node that is not
// ready or out of reach, unless it says otherwise.
const defaultTolerationSeconds = 300

// DefaultPod fills in what a client left out, as Kubernetes documents it. The
// priority comes from the pod's class: the admission chain of package server.
func DefaultPod(p *corev1.Pod) {
	s := &p.Spec
	setDefault(&s.RestartPolicy, corev1.RestartPolicyAlways)
	setDefault(&s.DNSPolicy, corev1.DNSClusterFirst)
	setDefault(&s.SchedulerName, corev1.DefaultSchedulerName)
	setDefaultPtr(&s.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	setDefaultPtr(&s.SecurityContext, corev1.PodSecurityContext{})
	setDefaultPtr(&s.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	if s.ServiceAccountName == "" {
		s.ServiceAccountName = s.DeprecatedServiceAccount
	}
	s.DeprecatedServiceAccount = s.ServiceAccountName
	defaultTolerations(s)
	for i := range s.Volumes {
		defaultVolume(&s.Volumes[i])
	}
	for i := range s.InitContainers {
		defaultContainer(&s.InitContainers[i])
	}
	for i := range s.Containers {
		defaultContainer(&s.Containers[i])
	}
	if s.HostNetwork {
		defaultHostPorts(s)
	}
}

// defaultHostPorts says of a pod in the node's network what is so anyway: its
// ports are the node's.
func defaultHostPorts(s *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range containers {
			for j := range containers[i].Ports {
				setDefault(&containers[i].Ports[j].HostPort, containers[i].Ports[j].ContainerPort)
			}
		}
	}
}

// defaultTolerations lets a pod stay for a while on a node that is in trouble,
// unless the pod says something about that trouble itself.
func defaultTolerations(s *corev1.PodSpec) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if toleratesExecution(s.Tolerations, key) {
			continue
		}
		seconds := int64(defaultTolerationSeconds)
		s.Tolerations = append(s.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
		})
	}
}

func toleratesExecution(tolerations []corev1.Toleration, key string) bool {
	for _, t := range tolerations {
		if (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return true
		}
	}
	return false
}

func defaultVolume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.ConfigMap != nil {
		setDefaultPtr(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.Secret != nil {
		setDefaultPtr(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	}
	if v.HostPath != nil {
		setDefaultPtr(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.DownwardAPI != nil {
		setDefaultPtr(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		defaultDownward(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		setDefaultPtr(&v.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
		for _, s := range v.Projected.Sources {
			if s.DownwardAPI != nil {
				defaultDownward(s.DownwardAPI.Items)
			}
		}
	}
}

func defaultDownward(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		if items[i].FieldRef != nil {
			setDefault(&items[i].FieldRef.APIVersion, "v1")
		}
	}
}

func defaultContainer(c *corev1.Container) {
	setDefault(&c.ImagePullPolicy, defaultPullPolicy(c.Image))
	setDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultProbe(probe)
	}
	if c.Lifecycle != nil {
		for _, hook := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if hook != nil {
				defaultGet(hook.HTTPGet)
			}
		}
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			setDefault(&from.FieldRef.APIVersion, "v1")
		}
	}
	for i := range c.Ports {
		setDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for name, limit := range c.Resources.Limits {
		if _, set := c.Resources.Requests[name]; set {
			continue
		}
		if c.Resources.Requests == nil {
			c.Resources.Requests = make(corev1.ResourceList, len(c.Resources.Limits))
		}
		c.Resources.Requests[name] = limit.DeepCopy()
	}
}

func defaultProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	setDefault(&p.TimeoutSeconds, 1)
	setDefault(&p.PeriodSeconds, 10)
	setDefault(&p.SuccessThreshold, 1)
	setDefault(&p.FailureThreshold, 3)
	defaultGet(p.HTTPGet)
	if p.GRPC != nil {
		setDefaultPtr(&p.GRPC.Service, "")
	}
}

func defaultGet(get *corev1.HTTPGetAction) {
	if get != nil {
		setDefault(&get.Path, "/")
		setDefault(&get.Scheme, corev1.URISchemeHTTP)
	}
}

// defaultPullPolicy is Always for the tag latest, which moves; a reference
// without tag or digest means that tag.
func defaultPullPolicy(image string) corev1.PullPolicy {
	if strings.Contains(image, "@") {
		return corev1.PullIfNotPresent
	}
	name := image[strings.LastIndex(image, "/")+1:]
	_, tag, tagged := strings.Cut(name, ":")
	if !tagged || tag == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}
