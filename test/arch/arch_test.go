// Package arch holds the architecture: which package may import which, and the
// limits of style that can be counted.
package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const module = "bramble.dev/bramble/"

// source is one Go file of the repository.
type source struct {
	path  string // from the root
	dir   string // its package
	test  bool
	lines int
	file  *ast.File
	fset  *token.FileSet
	text  string
}

func sources(t *testing.T) []source {
	t.Helper()
	root := os.DirFS("../..")
	var all []source
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || path == "deps.go" {
			return nil
		}
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		if ast.IsGenerated(file) {
			return nil
		}
		all = append(all, source{
			path: path, dir: filepath.Dir(path), test: strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "test/"),
			lines: fset.File(file.Pos()).LineCount(), file: file, fset: fset, text: string(text),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("only %d Go files found: the walk is broken", len(all))
	}
	return all
}

// under reports whether dir is tree or below it.
func under(dir, tree string) bool { return dir == tree || strings.HasPrefix(dir, tree+"/") }

func imports(s source) []string {
	var paths []string
	for _, spec := range s.file.Imports {
		paths = append(paths, strings.Trim(spec.Path.Value, `"`))
	}
	return paths
}
