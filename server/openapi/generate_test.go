package openapi_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"bramble.dev/bramble/server/kinds"
	"bramble.dev/bramble/server/objects"
	"bramble.dev/bramble/server/openapi"
)

// The documents are those that the types of today make. It runs two Go
// programs, some 15 s with a warm cache: BRAMBLE_LONG asks for it.
func TestDocumentsAreUpToDate(t *testing.T) {
	if os.Getenv("BRAMBLE_LONG") == "" {
		return
	}
	out := t.TempDir()
	if text, err := exec.CommandContext(t.Context(), "sh", "gen/generate.sh", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	made, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadDir("docs")
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != len(kept) {
		t.Errorf("%d documents are made, docs has %d", len(made), len(kept))
	}
	for _, file := range made {
		now, err := os.ReadFile(filepath.Join(out, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		then, err := os.ReadFile(filepath.Join("docs", file.Name()))
		if err != nil || !bytes.Equal(now, then) {
			t.Errorf("docs/%s is out of date: run go generate ./server/openapi", file.Name())
		}
	}
}

// Every kind of the table is in its group's document, and can be merged.
func TestDocumentsCoverTheTable(t *testing.T) {
	s := load(t)
	tc, err := openapi.TypeConverter()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds.All(kinds.Deps{}) {
		p := "apis/" + k.GroupVersion().String()
		root := "/" + p
		if k.Group == "" {
			p, root = "api/"+k.Version, "/api/"+k.Version
		}
		doc, ok := s.Find("/openapi/v3/"+p, nil)
		if !ok {
			t.Errorf("no document for %s", p)
			continue
		}
		if k.Namespaced {
			root += "/namespaces/{namespace}"
		}
		plain := unpack(t, doc)
		if k.Answer != nil {
			if path := root + "/" + k.Plural; !bytes.Contains(plain, []byte(`"`+path+`":`)) {
				t.Errorf("no %s in the document of %s", path, p)
			}
			continue
		}
		for _, sub := range append([]string{""}, subresources(k.Subresources)...) {
			if path := root + "/" + k.Plural + "/{name}" + sub; !bytes.Contains(plain, []byte(`"`+path+`":`)) {
				t.Errorf("no %s in the document of %s", path, p)
			}
		}
		obj := k.New()
		obj.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
		if _, err := tc.ObjectToTyped(obj); err != nil {
			t.Error(err)
		}
	}
}

// subresources leaves out those whose bodies are no objects: no client asks the
// documents about them.
func subresources(all []objects.Subresource) (paths []string) {
	for _, sub := range all {
		if sub.Update != nil && sub.Name != "finalize" {
			paths = append(paths, "/"+sub.Name)
		}
	}
	return paths
}
