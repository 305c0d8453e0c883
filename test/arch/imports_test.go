package arch

import (
	"slices"
	"strings"
	"testing"
)

// leaves may be imported by every package of ours.
var leaves = []string{"server/api", "hw", "nodeagent/container", "nodeagent/network/netapi", "systemd"}

// allowed is the import table: what each package of ours may import of ours,
// beside the leaves. A package that is not here may import the leaves only.
var allowed = map[string][]string{
	"server/store":   {},
	"server/objects": {"server/store"},
	"server/rest":    {"server/objects", "server/admission", "server/auth", "server/openapi"},
	"server/kinds":   {"server/objects", "server/admission"},
	"server":         {"server"}, // the whole tree: it wires
	"nodeagent":      {"nodeagent", "server/client", "server/tunnel"},
	"nodeagent/*":    {"server/client", "server/tunnel"},
	"cmd":            {"server", "nodeagent", "cmd/settings"},
	"test":           {"server", "nodeagent", "test", "cmd"},
}

// families are packages with sub-packages of their own, which may meet.
var families = []string{"nodeagent/network", "server/openapi"}

// TestImportTable holds that siblings meet only where they are wired.
func TestImportTable(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, path := range imports(s) {
			to, ours := strings.CutPrefix(path, module)
			if !ours || slices.ContainsFunc(leaves, func(l string) bool { return under(to, l) }) {
				continue
			}
			if !mayImport(s.dir, to) {
				t.Errorf("%s imports %s: not in the import table", s.path, to)
			}
		}
	}
}

func mayImport(from, to string) bool {
	for _, family := range families {
		if under(from, family) && under(to, family) {
			return true
		}
	}
	for _, tree := range table(from) {
		if under(to, tree) {
			return true
		}
	}
	return false
}

// table is the row of the import table for a package.
func table(from string) []string {
	if row, ok := allowed[from]; ok {
		return row
	}
	for _, tree := range []string{"server/rest", "server/kinds", "cmd", "test"} {
		if under(from, tree) {
			return allowed[tree]
		}
	}
	if under(from, "nodeagent") {
		return allowed["nodeagent/*"]
	}
	return nil
}

// homes says where a library may be used at all: the seams that keep it
// replaceable.
var homes = map[string][]string{
	"github.com/containers/podman":         {"nodeagent/runtime"},
	"github.com/containernetworking":       {"nodeagent/network"},
	"github.com/mattn/go-sqlite3":          {"server/store"},
	"github.com/klauspost/compress":        {"server/store"},
	"github.com/coreos/go-systemd":         {"systemd"},
	"github.com/spf13/cobra":               {"cmd"},
	"github.com/hashicorp/yamux":           {"server/tunnel"},
	"github.com/mdlayher/wifi":             {"hw"},
	"k8s.io/client-go":                     {"server/client", "nodeagent", "cmd/edgectl"},
	"k8s.io/kubectl":                       {"cmd/edgectl"},
	"k8s.io/cli-runtime":                   {"cmd/edgectl"},
	"k8s.io/client-go/kubernetes":          {"cmd/edgectl"},
	"k8s.io/client-go/applyconfigurations": {"cmd/edgectl"},
	"k8s.io/apiserver":                     {},
	"k8s.io/kubernetes":                    {},
}

func TestLibrariesStayAtHome(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, path := range imports(s) {
			for library, trees := range homes {
				at := func(tree string) bool { return under(s.dir, tree) }
				if under(path, library) && !slices.ContainsFunc(trees, at) {
					t.Errorf("%s imports %s, whose home is %v", s.path, path, trees)
				}
			}
		}
	}
}
