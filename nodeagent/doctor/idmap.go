package doctor

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// IDMap is one of the programs that give a user namespace its subordinate ids
// (newuidmap(1)): as root's, or they give nothing.
type IDMap struct {
	Name       string
	Path       string // "" if it is not installed
	Privileged bool   // setuid to root, or with a file capability
}

func (p Place) lookIDMap() (all []IDMap) {
	for _, name := range []string{"newuidmap", "newgidmap"} {
		m := IDMap{Name: name, Path: p.find(name)}
		if info, err := os.Stat(p.path(m.Path)); m.Path != "" && err == nil {
			_, err := unix.Getxattr(p.path(m.Path), "security.capability", nil)
			m.Privileged = info.Mode()&os.ModeSetuid != 0 || err == nil
		}
		all = append(all, m)
	}
	return all
}

const checkIDMapTools = "IDMapToolsUnusable"

func checkIDMap(f Facts) []Finding {
	var missing, plain []string
	for _, m := range f.IDMap {
		switch {
		case m.Path == "":
			missing = append(missing, m.Name)
		case !m.Privileged:
			plain = append(plain, m.Path)
		}
	}
	switch {
	case missing != nil:
		return []Finding{fatal(checkIDMapTools, "not installed: %s, which give pods the user's subordinate ids", strings.Join(missing, " and ")).by("sudo apt install uidmap")}
	case plain != nil:
		return []Finding{fatal(checkIDMapTools, "neither setuid nor with a capability: %s, which so give pods no subordinate ids", strings.Join(plain, " and ")).by("sudo chmod u+s %s", strings.Join(plain, " "))}
	}
	return []Finding{fine(checkIDMapTools, "newuidmap and newgidmap are there, and may do their work")}
}

// Namespaces is whether users may make user namespaces.
type Namespaces struct {
	Kernel   bool   // it knows them
	Max      string // user.max_user_namespaces
	Clone    string // kernel.unprivileged_userns_clone, of Debian's kernels until 2024
	AppArmor string // kernel.apparmor_restrict_unprivileged_userns, of Ubuntu's since 23.10
	Profile  bool   // AppArmor has a profile that lets Podman make them
	Inside   bool   // this process is in one, and not the host's
}

func (p Place) lookNamespaces() Namespaces {
	_, kernel := os.Stat(p.path("proc/sys/user/max_user_namespaces"))
	_, profile := os.Stat(p.path("etc/apparmor.d/podman"))
	ids := strings.Fields(p.line("proc/self/uid_map"))
	return Namespaces{
		Kernel: kernel == nil, Max: p.line("proc/sys/user/max_user_namespaces"),
		Clone:    p.line("proc/sys/kernel/unprivileged_userns_clone"),
		AppArmor: p.line("proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		Profile:  profile == nil,
		Inside:   len(ids) == 3 && strings.Join(ids, " ") != "0 0 4294967295",
	}
}

const checkUserns = "UserNamespacesForbidden"

func checkNamespaces(f Facts) []Finding {
	switch n := f.Namespaces; {
	case n.Inside:
		return []Finding{fatal(checkUserns, "this is inside a user namespace, where no node's agent can run: leave the container, or what `podman unshare` began")}
	case !n.Kernel:
		return []Finding{fatal(checkUserns, "the kernel has no user namespaces (CONFIG_USER_NS): rootless Podman needs another kernel")}
	case n.Max == "0":
		return []Finding{fatal(checkUserns, "user.max_user_namespaces is 0: rootless Podman can make no user namespace").by("%s", sysctl("user.max_user_namespaces=10000"))}
	case n.Clone == "0":
		return []Finding{fatal(checkUserns, "kernel.unprivileged_userns_clone is 0: only root may make user namespaces, and rootless Podman needs one").by("%s", sysctl("kernel.unprivileged_userns_clone=1"))}
	case n.AppArmor == "1" && !n.Profile:
		return []Finding{fatal(checkUserns, "kernel.apparmor_restrict_unprivileged_userns is 1, and AppArmor has no profile that lets Podman make a user namespace with rights").by("%s", sysctl("kernel.apparmor_restrict_unprivileged_userns=0"))}
	case n.AppArmor == "1":
		return []Finding{note(checkUserns, "kernel.apparmor_restrict_unprivileged_userns is 1: of user namespaces with rights Podman may make its own, by /etc/apparmor.d/podman, and another program of the user may not")}
	}
	return []Finding{fine(checkUserns, "users may make user namespaces")}
}
