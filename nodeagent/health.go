package nodeagent

import (
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/report"
)

// kubeVersion is the Kubernetes whose node we speak as.
const kubeVersion = "v1.37.2-bramble."

// health is what the agent's parts know of each other's state.
type health struct {
	mu     sync.Mutex // protects what follows
	engine string     // why Podman does not serve; empty: it does
	net    string     // why the network does not stand
	// database is why the server's database cannot be trusted.
	database string
	host     string
	podman   string // its version
	dns      []string
	images   []corev1.ContainerImage
	findings []report.Finding // nil: not looked yet
}

func (h *health) set(field *string, value string) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	changed = *field != value
	*field = value
	return changed
}

func (h *health) address() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.host
}

func (h *health) podmanVersion() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.podman
}

func (h *health) setAddress(address string) { h.set(&h.host, address) }

func (h *health) setResolver(servers []netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dns = nil
	for _, server := range servers {
		h.dns = append(h.dns, server.String())
	}
}

func (h *health) resolver() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dns
}

func (h *health) setImages(images []corev1.ContainerImage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.images = images
}

// setFindings says whether they are others than before.
func (h *health) setFindings(findings []report.Finding) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	changed := h.findings == nil || !slices.Equal(h.findings, findings)
	h.findings = findings
	return changed
}

// healthNow is what the node's status is composed of.
func (a *Agent) healthNow() report.Health {
	a.health.mu.Lock()
	defer a.health.mu.Unlock()
	return report.Health{
		EngineError: a.health.engine, NetworkError: a.health.net, UnknownDatabase: a.health.database, Address: a.health.host,
		Runtime: "podman://" + a.health.podman, Version: a.cfg.Version, KubeVersion: kubeVersion + a.cfg.Version,
		Images: a.health.images, Board: a.hardware.Conditions(), Findings: a.health.findings,
		Devices: a.devices.amounts(),
	}
}
