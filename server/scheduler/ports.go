package scheduler

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// port is a port of a node that a pod takes.
type port struct {
	ip       string // anyIP: of all addresses
	protocol corev1.Protocol
	number   int32
}

const anyIP = "0.0.0.0"

// portsOf are the host ports of p's containers, and of its sidecars.
func portsOf(p *corev1.Pod) []port {
	var ports []port
	add := func(c *corev1.Container) {
		for _, cp := range c.Ports {
			if cp.HostPort > 0 {
				ports = append(ports, port{cmp.Or(cp.HostIP, anyIP), cmp.Or(cp.Protocol, corev1.ProtocolTCP), cp.HostPort})
			}
		}
	}
	for i := range p.Spec.Containers {
		add(&p.Spec.Containers[i])
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	return ports
}

// collides reports whether two pods can not have a and b on one node.
func (a port) collides(b port) bool {
	wild := func(ip string) bool { return ip == anyIP || ip == "::" }
	return a.protocol == b.protocol && a.number == b.number && (a.ip == b.ip || wild(a.ip) || wild(b.ip))
}

func (n *Node) takePorts(p *Pod, sign int) {
	for _, taken := range p.ports {
		if n.ports == nil {
			n.ports = make(map[port]int)
		}
		if n.ports[taken] += sign; n.ports[taken] == 0 {
			delete(n.ports, taken)
		}
	}
}

// HostPorts wants a node of which no other pod has the pod's host ports.
type HostPorts struct{}

// Name implements Filter.
func (HostPorts) Name() string { return "NodePorts" }

// Cures implements Filter.
func (HostPorts) Cures(c Cause) bool { return c.ofNodes() || c == PodLeft }

// Prepare implements Filter.
func (HostPorts) Prepare(_ *Snapshot, p *Pod) Check {
	if len(p.ports) == 0 {
		return nil
	}
	return checkFunc(func(n *Node) []Reason {
		var reasons []Reason
		for _, want := range p.ports {
			for taken := range n.ports {
				if r := same(fmt.Sprintf("had host port %d/%s taken", want.number, want.protocol)); want.collides(taken) && !slices.Contains(reasons, r) {
					reasons = append(reasons, r)
				}
			}
		}
		return reasons
	})
}
