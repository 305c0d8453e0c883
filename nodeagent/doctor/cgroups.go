package doctor

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bramble.dev/bramble/hw"
)

// Cgroups is the hierarchy as it is mounted, and the user's part of it.
type Cgroups struct {
	Mounted    bool // some version is
	Unified    bool // version 2 alone is
	Hybrid     bool // both versions are
	Controller hw.Reading[bool]
	// Manager is the cgroup of the user's systemd, "user@1000.service"; "" if there is
	// none, as before the first login of a user that does not linger.
	Manager   string
	Delegated []string // the controllers of Manager, else of this process's own cgroup
}

func (p Place) lookCgroups(s hw.Snapshot) Cgroups {
	c := Cgroups{Controller: s.Cgroups.Memory, Delegated: s.Cgroups.Delegated}
	exists := func(path ...string) bool {
		_, err := os.Stat(p.board(path...))
		return err == nil
	}
	const root = "sys/fs/cgroup"
	c.Mounted = exists(root)
	c.Unified = exists(root, "cgroup.controllers")
	c.Hybrid = !c.Unified && exists(root, "unified")
	if p.User == nil {
		return c
	}
	manager := "user@" + p.User.Uid + ".service"
	path := filepath.Join(root, "user.slice", "user-"+p.User.Uid+".slice", manager)
	if exists(path) {
		c.Manager = manager
		c.Delegated = strings.Fields(firstLine(p.board(path, "cgroup.controllers")))
	}
	return c
}

const (
	checkUnified = "CgroupsNotUnified"
	checkMemory  = "MemoryCgroupOff"
)

// memoryWords have a Raspberry Pi's kernel count memory, which by its firmware it does
// not (raspberrypi/linux#5933); kernels differ in which of them they take.
func memoryWords() []string {
	return []string{"cgroup_enable=cpuset", "cgroup_enable=memory", "cgroup_memory=1"}
}

func checkCgroups(f Facts) (all []Finding) {
	c := f.Cgroups
	switch {
	case f.Recorded && !c.Mounted:
	case c.Unified:
		all = append(all, fine(checkUnified, "cgroups are of version 2"))
	case f.Init.Systemd && slices.Contains(f.Boot.Words, "systemd.unified_cgroup_hierarchy=0"):
		all = append(all, warning(checkUnified, "cgroups are of version 1, by systemd.unified_cgroup_hierarchy=0 on the kernel's command line: limits of pods are not held").
			by("take systemd.unified_cgroup_hierarchy=0 out of the kernel's command line (%s) and reboot", cmp.Or(f.Boot.File, "where the boot loader has it")))
	case f.Init.Systemd || f.Recorded:
		all = append(all, warning(checkUnified, "cgroups are not of version 2 alone: limits of pods are not held").by("%s", f.Boot.add("systemd.unified_cgroup_hierarchy=1")))
	default:
		all = append(all, warning(checkUnified, "cgroups are not of version 2 alone: limits of pods are not held; what mounts them (%s) would have to mount version 2 at /sys/fs/cgroup", cmp.Or(f.Init.Name, "process 1")))
	}
	all = append(all, checkMemoryCgroup(f)...)
	if c.Unified {
		all = append(all, checkDelegation(f)...)
	}
	return all
}

func checkMemoryCgroup(f Facts) []Finding {
	switch on, err := f.Cgroups.Controller.Get(); {
	case f.Recorded && errors.Is(err, hw.ErrAbsent):
		return nil
	case err != nil:
		return []Finding{unknown(checkMemory, "whether the kernel counts the memory of cgroups: %v", err)}
	case on:
		return []Finding{fine(checkMemory, "the kernel counts the memory of cgroups")}
	}
	bad := warning(checkMemory, "the kernel does not count the memory of cgroups: no pod's memory limit is held")
	if slices.Contains(f.Boot.Words, "cgroup_disable=memory") {
		bad.Message += "; cgroup_disable=memory is on its command line"
	}
	missing := f.Boot.lacks(memoryWords()...)
	if len(missing) == 0 {
		bad.Message += ", though its command line asks for it: another kernel is needed"
		return []Finding{bad.by("sudo apt full-upgrade && sudo reboot")}
	}
	return []Finding{bad.by("%s", f.Boot.add(missing...))}
}

// checkDelegation says whether the node's user has the controllers that pods' limits
// need. Without a user's manager it is the agent's own cgroup that counts.
func checkDelegation(f Facts) []Finding {
	c := f.Cgroups
	var missing []string
	for _, controller := range []string{"cpu", "memory", "pids"} {
		off := controller == "memory" && c.Controller.OK() && !c.Controller.Value
		if !off && !slices.Contains(c.Delegated, controller) {
			missing = append(missing, controller)
		}
	}
	names := strings.Join(missing, ", ")
	switch {
	case f.User == nil:
		return []Finding{unknown(limitsCondition, "which cgroup controllers the node's user has: it is not known who that is")}
	case f.Recorded && c.Manager == "":
		return nil // its users are not recorded
	case f.Init.Systemd && c.Manager == "":
		return []Finding{unknown(limitsCondition, "which cgroup controllers %s has: systemd runs no manager of that user now", f.User.Username).by("sudo loginctl enable-linger %s", f.User.Username)}
	case !f.Init.Systemd && !f.Self:
		return []Finding{unknown(limitsCondition, "which cgroup controllers %s has: there is no systemd to give them, and this is not a process of that user", f.User.Username)}
	case len(missing) == 0:
		return []Finding{fine(limitsCondition, "%s has the cgroup controllers cpu, memory and pids", cmp.Or(c.Manager, "the user"))}
	case !f.Init.Systemd:
		return []Finding{warning(limitsCondition, "this user's cgroup has no controller for: %s; limits of pods for it are not held, and process 1 (%s) is not systemd, which could give it", names, f.Init.Name)}
	}
	return []Finding{warning(limitsCondition, "%s has no cgroup controller for: %s; limits of pods for it are not held", c.Manager, names).
		by(`sudo install -d /etc/systemd/system/user@.service.d && printf '[Service]\nDelegate=cpu cpuset io memory pids\n' | sudo tee /etc/systemd/system/user@.service.d/delegate.conf && sudo systemctl daemon-reload && sudo reboot`)}
}
