package pod

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// Hash tells one container's specification from another. It covers what the
// container is made from, so that a change of it makes a new container.
func Hash(spec *corev1.Container) string {
	body, err := json.Marshal(spec)
	if err != nil {
		panic("a container that was decoded cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:8])
}

// Resolver is a node's name resolution, as containers are to have it.
type Resolver struct{ Servers, Searches, Options []string }

// surroundings is what Compose takes from the pod's other steps.
type surroundings struct {
	netns    string
	mounts   []container.Mount
	image    container.Image
	hosts    string
	resolver Resolver
	hostIP   string
	source   Source

	allocatable corev1.ResourceList
	sandbox     string
	devices     []container.Device
}

// compose returns what the engine is to make of a container.
func compose(ctx context.Context, d Desired, spec *corev1.Container, restarts int, with surroundings) (container.Spec, error) {
	env, err := environment(ctx, d, with, spec)
	if err != nil {
		return container.Spec{}, err
	}
	env = addDevices(env, with.devices)
	secured, err := security(d.Pod, spec, with.image.User)
	if err != nil {
		return container.Spec{}, fmt.Errorf("%w (pod: %q, container: %s)", err, d.Pod.Namespace+"/"+d.Pod.Name, spec.Name)
	}
	values := make(map[string]string, len(env))
	for _, e := range env {
		values[e.Name] = e.Value
	}
	lookup := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	dns := resolverOf(d.Pod, with.resolver)
	return container.Spec{
		PodUID: string(d.Pod.UID), PodNamespace: d.Pod.Namespace, PodName: d.Pod.Name,
		Name: spec.Name, Restarts: restarts,
		Image: spec.Image, ImageID: with.image.ID,
		Command: expandAll(spec.Command, lookup), Args: expandAll(spec.Args, lookup),
		Env: env, WorkingDir: spec.WorkingDir,
		Stdin: spec.Stdin, StdinOnce: spec.StdinOnce, TTY: spec.TTY,
		NetNS:      with.netns,
		DNSServers: dns.Servers, DNSSearches: dns.Searches, DNSOptions: dns.Options,
		Hosts: with.hosts, Mounts: with.mounts, Devices: with.devices,
		TerminationMessagePath: spec.TerminationMessagePath,
		MemoryLimitBytes:       spec.Resources.Limits.Memory().Value(),
		CPUQuotaMilli:          spec.Resources.Limits.Cpu().MilliValue(),
		CPUSharesMilli:         spec.Resources.Requests.Cpu().MilliValue(),
		Hash:                   Hash(spec),
		Sandbox:                with.sandbox,
		MessageFromLog:         spec.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError,
		StopSignal:             stopSignal(spec),
		HostNetwork:            d.Pod.Spec.HostNetwork,
		Security:               secured,
	}, nil
}

func stopSignal(spec *corev1.Container) string {
	if spec.Lifecycle == nil || spec.Lifecycle.StopSignal == nil {
		return ""
	}
	return string(*spec.Lifecycle.StopSignal)
}

func expandAll(words []string, lookup func(string) (string, bool)) []string {
	var all []string
	for _, word := range words {
		all = append(all, Expand(word, lookup))
	}
	return all
}

// resolverOf applies the pod's dnsPolicy and dnsConfig. There is no cluster
// DNS yet: ClusterFirst means what Default means.
func resolverOf(pod *corev1.Pod, node Resolver) Resolver {
	r := node
	if pod.Spec.DNSPolicy == corev1.DNSNone {
		r = Resolver{}
	}
	config := pod.Spec.DNSConfig
	if config == nil {
		return r
	}
	r.Servers = append(append([]string(nil), r.Servers...), config.Nameservers...)
	r.Searches = append(append([]string(nil), r.Searches...), config.Searches...)
	r.Options = append([]string(nil), r.Options...)
	for _, option := range config.Options {
		text := option.Name
		if option.Value != nil {
			text += ":" + *option.Value
		}
		r.Options = append(r.Options, text)
	}
	return r
}

// hostname is what the pod calls itself: names are cut to 63 characters, as
// the kubelet does.
func hostname(pod *corev1.Pod) string {
	name := pod.Spec.Hostname
	if node, err := os.Hostname(); pod.Spec.HostNetwork && err == nil {
		name = node
	}
	if name == "" {
		name = pod.Name
	}
	if len(name) > 63 {
		name = strings.TrimRight(name[:63], "-.")
	}
	return name
}

// hostsFile is the text of the pod's /etc/hosts.
func hostsFile(pod *corev1.Pod, addr netip.Addr) string {
	var b strings.Builder
	b.WriteString("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	if addr.IsValid() {
		fmt.Fprintf(&b, "%s\t%s\n", addr, hostname(pod))
	}
	writeAliases(&b, pod)
	return b.String()
}

// nodeHosts is the text of /etc/hosts of a pod in the node's network: the node's own.
func nodeHosts(pod *corev1.Pod) string {
	var b strings.Builder
	text, err := os.ReadFile("/etc/hosts")
	if err != nil {
		text = []byte("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	}
	fmt.Fprintf(&b, "# Kubernetes-managed hosts file (host network).\n%s\n", bytes.TrimRight(text, "\n"))
	writeAliases(&b, pod)
	return b.String()
}

func writeAliases(b *strings.Builder, pod *corev1.Pod) {
	if len(pod.Spec.HostAliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
	}
	for _, alias := range pod.Spec.HostAliases {
		fmt.Fprintf(b, "%s\t%s\n", alias.IP, strings.Join(alias.Hostnames, "\t"))
	}
}
