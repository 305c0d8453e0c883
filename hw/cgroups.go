package hw

import (
	"path"
	"slices"
	"strings"
)

// Cgroups is what the kernel can hold pods to.
type Cgroups struct {
	Available []string `json:"available,omitempty"` // controllers of cgroup v2 on this kernel
	Delegated []string `json:"delegated,omitempty"` // of them those that this user's manager has
	// Memory says whether the kernel counts memory at all: on a Raspberry Pi it does
	// not unless its command line says so.
	Memory Reading[bool] `json:"memory"`
}

type cgroups struct {
	*reader
	out Cgroups
}

func newCgroups(r *reader) sensor { return &cgroups{reader: r} }

func (c *cgroups) scan() {}

const cgroupRoot = "sys/fs/cgroup"

func (c *cgroups) sample() {
	text, err := c.once(cgroupRoot, "cgroup.controllers")
	c.out.Available = strings.Fields(text)
	c.out.Delegated = strings.Fields(c.text(cgroupRoot, UserCgroup(c.text("proc/self/cgroup")), "cgroup.controllers"))
	c.out.Memory = read(c.reader, cgroupRoot+"/cgroup.controllers", slices.Contains(c.out.Available, "memory"), err)
	if old, found := memoryController(c.text("proc/cgroups")); found && (err != nil || !old) {
		c.out.Memory = read(c.reader, "proc/cgroups", old, nil)
	}
}

func (c *cgroups) put(s *Snapshot) { s.Cgroups = c.out }

// memoryController reads the line "memory hierarchy groups enabled" of /proc/cgroups.
// Since Linux 6.12 it may not be there.
func memoryController(text string) (enabled, found bool) {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) == 4 && words[0] == "memory" {
			return words[3] == "1", true
		}
	}
	return false, false
}

// UserCgroup is the part of the hierarchy that systemd hands to the user's manager,
// "user@1000.service", else the process's own, of the line "0::/..." in
// /proc/self/cgroup.
func UserCgroup(text string) string {
	for line := range strings.Lines(text) {
		own, found := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !found {
			continue
		}
		parts := strings.Split(own, "/")
		for i, part := range parts {
			if strings.HasPrefix(part, "user@") && strings.HasSuffix(part, ".service") {
				return path.Join(parts[:i+1]...)
			}
		}
		return own
	}
	return ""
}
