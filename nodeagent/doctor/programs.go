package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Programs are those that a node runs.
type Programs struct {
	Found   map[string]string // where they are, by name
	Answers Answers
	Socket  string // of Podman's API; "" if no user is known
	Served  bool   // somebody answers on it
}

// Answers is what programs say of themselves. It does not change while they are the
// same, and costs seconds on a board.
type Answers struct {
	Versions map[string]string // by name
	Info     *PodmanInfo       // nil: not asked, or Err
	Err      error             // why Podman does not say how it runs
}

// PodmanInfo is a part of what `podman info` says.
type PodmanInfo struct {
	Host struct {
		CgroupManager string
		Security      struct{ Rootless bool }
		OCIRuntime    struct{ Name string }
	}
	Store struct{ GraphDriverName string }
}

const (
	versionLimit = 10 * time.Second
	infoLimit    = 60 * time.Second // it may be Podman's first run here
	dialLimit    = time.Second
)

// programs are what a node may run. nsenter enters Podman's namespaces.
var programs = []string{"podman", "crun", "runc", "conmon", "pasta", "slirp4netns", "nsenter"}

func (p Place) lookPrograms(ctx context.Context) Programs {
	out := Programs{Found: p.findPrograms()}
	if p.User != nil {
		out.Socket = filepath.Join(cmp.Or(p.RuntimeDir, "/run/user/"+p.User.Uid), "podman/podman.sock")
		dial := net.Dialer{Timeout: dialLimit}
		if conn, err := dial.DialContext(ctx, "unix", p.path(out.Socket)); err == nil {
			out.Served = true
			_ = conn.Close()
		}
	}
	if p.Answers != nil {
		out.Answers = *p.Answers
	} else {
		out.Answers = p.Ask(ctx)
	}
	return out
}

func (p Place) findPrograms() map[string]string {
	found := map[string]string{}
	for _, name := range programs {
		path := p.find(name)
		for _, dir := range []string{"/usr/libexec/podman", "/usr/lib/podman"} { // Podman's own
			path = cmp.Or(path, Place{Root: p.Root, Path: []string{dir}}.find(name))
		}
		if path != "" {
			found[name] = path
		}
	}
	return found
}

// Ask asks programs for their versions, and Podman how it runs for this process's user.
// It takes some seconds on a board.
func (p Place) Ask(ctx context.Context) Answers {
	a, found := Answers{Versions: map[string]string{}}, p.findPrograms()
	if p.Run == nil {
		return a
	}
	run := func(limit time.Duration, name string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return p.Run(ctx, found[name], args...)
	}
	for _, name := range programs {
		if found[name] == "" {
			continue
		}
		if text, err := run(versionLimit, name, "--version"); err == nil {
			line, _, _ := strings.Cut(text, "\n")
			a.Versions[name] = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(line, name), " version"))
		}
	}
	if found["podman"] == "" || !p.Self {
		return a
	}
	text, err := run(infoLimit, "podman", "info", "--format", "json")
	info := PodmanInfo{}
	if err == nil {
		err = json.Unmarshal([]byte(text), &info)
	}
	if a.Err = err; err == nil {
		a.Info = &info
	}
	return a
}

const checkPodman = "PodmanUnusable"

// oldest is the first version of Podman that serves.
var oldest = [2]int{4, 3}

func checkPodmanRuns(f Facts) []Finding {
	a := f.Programs.Answers
	version := a.Versions["podman"]
	switch {
	case f.Programs.Found["podman"] == "":
		return []Finding{fatal(checkPodman, "Podman is not installed").by("sudo apt install podman")}
	case version != "" && older(version, oldest):
		return []Finding{fatal(checkPodman, "Podman is of version %s, and %d.%d is the first that serves: a newer release of the system has it (Debian 12, Ubuntu 24.04)", version, oldest[0], oldest[1])}
	case a.Err != nil && !Stops(append(checkSubordinate(f), append(checkIDMap(f), append(checkNamespaces(f), checkSession(f)...)...)...)):
		return []Finding{fatal(checkPodman, "Podman does not run for this user: %v", a.Err)}
	case a.Err != nil:
		return []Finding{unknown(checkPodman, "how Podman runs, before the rest is mended: %v", a.Err)}
	case a.Info == nil && version != "":
		return []Finding{unknown(checkPodman, "whether Podman %s runs for the node's user: only a process of that user can tell", version)}
	case a.Info == nil:
		return nil // it was not asked
	case !a.Info.Host.Security.Rootless:
		return []Finding{fatal(checkPodman, "Podman runs as root for this user")}
	}
	all := []Finding{fine(checkPodman, "Podman %s runs rootless, its containers by %s", version, a.Info.Host.OCIRuntime.Name)}
	if a.Info.Store.GraphDriverName == "vfs" {
		all = append(all, warning("ImagesCopied", "Podman copies each layer of an image whole (driver vfs): that takes much room, and wears the card").
			by(`put driver = "overlay" below [storage] in ~/.config/containers/storage.conf, and then: podman system reset`))
	}
	if f.Programs.Served {
		return append(all, fine("PodmanUnserved", "Podman's API is served on %s", f.Programs.Socket))
	}
	return append(all, fine("PodmanUnserved", "nobody serves Podman's API on %s: the agent does when it starts", f.Programs.Socket))
}

// older says whether a version, "4.3.1", is before another. What is none is not.
func older(version string, than [2]int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err == nil && err2 == nil && slices.Compare([]int{major, minor}, than[:]) < 0
}

func checkPrograms(f Facts) (all []Finding) {
	const oci, conmon, out, enter = "OCIRuntimeUnusable", "ConmonMissing", "WayOutMissing", "NsenterMissing"
	p := f.Programs
	all = append(all, checkRuntime(f, oci))
	one := func(check, name, hint, what string) {
		if p.Found[name] == "" {
			all = append(all, fatal(check, "%s is not installed, which %s", name, what).by("sudo apt install %s", hint))
			return
		}
		all = append(all, fine(check, "%s", p.called(name)))
	}
	one(conmon, "conmon", "conmon", "watches each container")
	one(enter, "nsenter", "util-linux", "brings the network process to where Podman's pods are")
	switch {
	case p.Found["pasta"] == "" && p.Found["slirp4netns"] == "":
		all = append(all, fatal(out, "neither pasta nor slirp4netns is installed: pods have no way out of the node").by("sudo apt install passt"))
	case p.Found["pasta"] == "":
		all = append(all, fine(out, "%s is the pods' way out; pasta carries twice as much", p.called("slirp4netns")))
	default:
		all = append(all, fine(out, "%s is the pods' way out", p.called("pasta")))
	}
	return all
}

// called is a program with its version, where it said that.
func (p Programs) called(name string) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s", name, p.Answers.Versions[name]))
}

// checkRuntime looks at what starts containers.
func checkRuntime(f Facts, check string) Finding {
	p := f.Programs
	var found []string
	for _, name := range []string{"crun", "runc"} {
		if p.Found[name] != "" {
			found = append(found, p.called(name))
		}
	}
	const choose = `put runtime = "runc" below [engine] in ~/.config/containers/containers.conf, and end the user's podman system service if it runs`
	info := p.Answers.Info
	switch {
	case found == nil:
		return fatal(check, "neither crun nor runc is installed, which start containers").by("sudo apt install crun")
	case f.Cgroups.Hybrid && p.Found["runc"] == "":
		return fatal(check, "crun refuses to run where both versions of cgroups are mounted, and runc is not installed").by("sudo apt install runc")
	case f.Cgroups.Hybrid && info != nil && info.Host.OCIRuntime.Name == "crun":
		return fatal(check, "Podman has containers started by crun, which refuses where both versions of cgroups are mounted").by("%s", choose)
	case f.Cgroups.Hybrid && info == nil:
		return unknown(check, "whether Podman has containers started by runc: crun refuses where both versions of cgroups are mounted").by("%s", choose)
	}
	return fine(check, "%s", strings.Join(found, " and "))
}
