package runtime

import (
	"net"
	"strconv"

	"github.com/containers/podman/v5/pkg/specgen"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"bramble.dev/bramble/nodeagent/container"
)

// generator is the container as Podman is asked to make it. message is the
// file on the node for its termination message.
func generator(s container.Spec, message string) *specgen.SpecGenerator {
	image := s.ImageID
	if image == "" {
		image = s.Image
	}
	g := specgen.NewSpecGenerator(image, false)
	g.Name = containerName(s)
	g.Pod = podName(s.PodUID)
	g.Labels = containerLabels(s)
	g.Entrypoint, g.Command = s.Command, s.Args
	g.Env = map[string]string{}
	for _, e := range s.Env {
		g.Env[e.Name] = e.Value
	}
	g.WorkDir, g.CreateWorkingDir = s.WorkingDir, ptr(true)
	g.Terminal, g.Stdin = ptr(s.TTY), ptr(s.Stdin)
	g.EnvHost, g.HTTPProxy = ptr(false), ptr(false)
	g.RestartPolicy = "no"
	if signal := unix.SignalNum(s.StopSignal); signal != 0 {
		g.StopSignal = &signal
	}
	g.Systemd = "false"
	g.SdNotifyMode = "ignore"
	g.LogConfiguration = &specgen.LogConfig{Driver: "k8s-file"} // beside the container, and removed with it
	g.Mounts = mounts(s, message)
	g.ResourceLimits = limits(s)
	network(g, s)
	secure(g, s.Security)
	return g
}

// secure sets what the container's processes may do.
func secure(g *specgen.SpecGenerator, s container.Security) {
	g.User = s.User
	for _, group := range s.Groups {
		g.Groups = append(g.Groups, strconv.FormatInt(group, 10))
	}
	for _, name := range s.CapAdd {
		g.CapAdd = append(g.CapAdd, capability(name))
	}
	for _, name := range s.CapDrop {
		g.CapDrop = append(g.CapDrop, capability(name))
	}
	g.ReadOnlyFilesystem = ptr(s.ReadOnlyRoot)
	g.NoNewPrivileges = ptr(s.NoNewPrivileges)
	if s.Unconfined {
		g.SeccompProfilePath = "unconfined"
	}
}

// capability is the engine's name of a capability.
func capability(name string) string {
	if name == "ALL" {
		return name
	}
	return "CAP_" + name
}

func network(g *specgen.SpecGenerator, s container.Spec) {
	g.UseImageHosts = ptr(true) // Podman would add the node's own; ours is mounted
	g.NetNS = specgen.Namespace{NSMode: specgen.NoNetwork}
	if s.HostNetwork {
		g.NetNS = specgen.Namespace{NSMode: specgen.Host}
	}
	if s.NetNS == "" || s.HostNetwork {
		return
	}
	g.NetNS = specgen.Namespace{NSMode: specgen.Path, Value: s.NetNS}
	for _, server := range s.DNSServers {
		if ip := net.ParseIP(server); ip != nil {
			g.DNSServers = append(g.DNSServers, ip)
		}
	}
	g.DNSSearch, g.DNSOptions = s.DNSSearches, s.DNSOptions
}

func mounts(s container.Spec, message string) []specs.Mount {
	var all []specs.Mount
	for _, m := range s.Mounts {
		all = append(all, mount(m))
	}
	for _, d := range s.Devices {
		all = append(all, deviceMounts(d)...)
	}
	if s.Hosts != "" {
		all = append(all, mount(container.Mount{Source: s.Hosts, Target: "/etc/hosts"}))
	}
	if message != "" {
		all = append(all, mount(container.Mount{Source: message, Target: s.TerminationMessagePath}))
	}
	return all
}

func mount(m container.Mount) specs.Mount {
	if m.Tmpfs || m.TmpfsBytes != 0 {
		return tmpfs(m)
	}
	access := "rw"
	if m.ReadOnly {
		access = "ro"
	}
	return specs.Mount{Type: "bind", Source: m.Source, Destination: m.Target, Options: []string{"rbind", access, "rprivate"}}
}

func tmpfs(m container.Mount) specs.Mount {
	options := []string{"nosuid", "nodev", "mode=1777"}
	if m.TmpfsBytes > 0 {
		options = append(options, "size="+strconv.FormatInt(m.TmpfsBytes, 10))
	}
	if m.ReadOnly {
		options = append(options, "ro")
	}
	return specs.Mount{Type: "tmpfs", Source: "tmpfs", Destination: m.Target, Options: options}
}

// limits are the cgroup's: what the node's cgroups do not support, Podman
// leaves out. Shares follow the kubelet's sums.
func limits(s container.Spec) *specs.LinuxResources {
	r := &specs.LinuxResources{}
	if s.MemoryLimitBytes > 0 {
		r.Memory = &specs.LinuxMemory{Limit: ptr(s.MemoryLimitBytes), Swap: ptr(s.MemoryLimitBytes)}
	}
	if s.CPUQuotaMilli > 0 || s.CPUSharesMilli > 0 {
		r.CPU = &specs.LinuxCPU{}
	}
	if s.CPUQuotaMilli > 0 {
		r.CPU.Period, r.CPU.Quota = ptr(uint64(100_000)), ptr(max(s.CPUQuotaMilli*100, 1000))
	}
	if s.CPUSharesMilli > 0 {
		r.CPU.Shares = ptr(uint64(min(max(s.CPUSharesMilli*1024/1000, 2), 262_144)))
	}
	if r.Memory == nil && r.CPU == nil {
		return nil
	}
	return r
}

func ptr[T any](v T) *T { return &v }
