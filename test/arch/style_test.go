package arch

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	maxFileLines = 600 // a file has one idea
	maxFuncLines = 80  // a function fits a screen, tables aside
)

func TestFilesAndFunctionsFitTheScreen(t *testing.T) {
	for _, s := range sources(t) {
		if s.lines > maxFileLines {
			t.Errorf("%s has %d lines, more than %d: split it by its ideas", s.path, s.lines, maxFileLines)
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || s.test {
				continue
			}
			lines := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1
			if lines > maxFuncLines {
				t.Errorf("%s: %s has %d lines, more than %d", s.path, f.Name.Name, lines, maxFuncLines)
			}
		}
	}
}

func TestPackagesAreExplained(t *testing.T) {
	explained := map[string]bool{}
	for _, s := range sources(t) {
		if strings.HasSuffix(s.path, "_test.go") && !explained[s.dir] && strings.HasSuffix(s.file.Name.Name, "_test") {
			continue
		}
		explained[s.dir] = explained[s.dir] || s.file.Doc != nil
	}
	for dir, ok := range explained {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

// banned calls, and the trees that may make them all the same.
var banned = map[string][]string{
	"time.Sleep":         {},
	"os.Exit":            {"cmd", "test", "server/openapi/gen"},
	"context.Background": {"cmd", "test"},
	"context.TODO":       {},
	"log.Fatal":          {},
	"log.Printf":         {},
}

func TestBannedCalls(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := call.X.(*ast.Ident)
			if !ok || x.Obj != nil {
				return true
			}
			name := x.Name + "." + call.Sel.Name
			trees, bad := banned[name]
			if !bad || s.test && (name != "time.Sleep" || bubbles(s)) {
				return true
			}
			for _, tree := range trees {
				if under(s.dir, tree) {
					return true
				}
			}
			t.Errorf("%s: %s", s.fset.Position(call.Pos()), name)
			return true
		})
	}
}

// bubbles reports whether a test file sleeps by synctest's clock, not by ours.
func bubbles(s source) bool { return slices.Contains(imports(s), "testing/synctest") }

func TestNoInitFunctions(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" && !strings.HasPrefix(s.dir, "cmd/bramble-network") {
				t.Errorf("%s has an init function", s.path)
			}
		}
	}
}

var skips = regexp.MustCompile(`\b[tb]\.Skip(f|Now)?\(`)

func TestNothingIsSkipped(t *testing.T) {
	for _, s := range sources(t) {
		if s.test && !strings.HasPrefix(s.dir, "test/arch") && skips.MatchString(s.text) {
			t.Errorf("%s skips a test: what is needed, the test installs", s.path)
		}
	}
}

var vague = regexp.MustCompile(`^(util|utils|common|helper|helpers|base|misc|types)$`)

func TestPackageNamesSayWhatTheyAreFor(t *testing.T) {
	for _, s := range sources(t) {
		if vague.MatchString(s.file.Name.Name) {
			t.Errorf("%s: package %s says nothing", s.path, s.file.Name.Name)
		}
	}
}

// TestMakeTestsEveryPackage holds that the Makefile names each package with tests
// where it tests: alone, or by a tree with ... at its end.
func TestMakeTestsEveryPackage(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var named string
	for line := range strings.Lines(string(makefile)) {
		if strings.Contains(line, "$(GO) test") || strings.Contains(line, "$(TEST)") || strings.HasPrefix(line, "RACE_PKGS") || strings.HasPrefix(line, "PURE_PKGS") || strings.HasPrefix(line, "COMMANDS") {
			named += line
		}
	}
	patterns := regexp.MustCompile(`\./[a-z0-9/.-]+`).FindAllString(named, -1)
	tested := func(dir string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			p = strings.TrimPrefix(p, "./")
			tree, whole := strings.CutSuffix(p, "/...")
			return p == dir || whole && under(dir, tree)
		})
	}
	for _, s := range sources(t) {
		if strings.HasSuffix(s.path, "_test.go") && !tested(s.dir) {
			t.Errorf("%s: no target of the Makefile tests this package", s.path)
		}
	}
}
