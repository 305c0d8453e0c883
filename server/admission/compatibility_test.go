package admission_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscovery "k8s.io/api/apidiscovery/v2"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/auth"
	"bramble.dev/bramble/server/kinds"
	"bramble.dev/bramble/server/objects"
	"bramble.dev/bramble/server/rest"
	"bramble.dev/bramble/server/store"
)

var update = flag.Bool("update", false, "write docs/compatibility.md anew")

const compatibilityFile = "../../docs/compatibility.md"

// docs/compatibility.md is what the server says of itself: its own discovery
// documents, the table of kinds, and the table of a pod's fields.
func TestTheCompatibilityDocumentIsCurrent(t *testing.T) {
	var doc bytes.Buffer
	doc.WriteString("# What is served, and what becomes of each field\n\n" +
		"Made by `go test ./server/admission -run Compatibility -update` from the server's\n" +
		"discovery documents and tables. Do not edit: a test compares it.\n\n")
	registry, handler := served(t)
	writeKinds(t, &doc, registry, handler)
	writeLimits(t, &doc, handler)
	writePodFields(t, &doc)
	if *update {
		if err := os.WriteFile(compatibilityFile, doc.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(compatibilityFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(have), "\n"), strings.Split(doc.String(), "\n")); diff != "" {
		t.Errorf("docs/compatibility.md is stale: run go test ./server/admission -run Compatibility -update (-have +want):\n%s", diff)
	}
}

// served is the API with nothing in it.
func served(t *testing.T) (*objects.Registry, http.Handler) {
	db, err := store.Open(t.Context(), store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	registry, err := objects.NewRegistry(db, kinds.All(kinds.Deps{}), objects.Config{})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := rest.New(rest.Config{
		Registry: registry, Log: slog.New(slog.DiscardHandler),
		Authenticator: anyone{}, Authorizer: auth.NewAuthorizer(nil, nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	return registry, handler
}

func writeKinds(t *testing.T, doc *bytes.Buffer, registry *objects.Registry, handler http.Handler) {
	doc.WriteString("## Kinds\n\n| resource | group/version | scope | kept | verbs | subresources (verbs) |\n|---|---|---|---|---|---|\n")
	for _, path := range []string{"/api", "/apis"} {
		for _, group := range discovered(t, handler, path).Items {
			for _, version := range group.Versions {
				for _, r := range version.Resources {
					k, _ := registry.Kind(group.Name, r.Resource)
					writeKind(doc, strings.TrimPrefix(group.Name+"/"+version.Version, "/"), r, k)
				}
			}
		}
	}
	doc.WriteString("\nA verb that a line does not name is answered 405, a resource that is not here 404.\n" +
		"TestEveryVerbOfEveryKind (server/verbs_test.go) does all of that with each, and status; the\n" +
		"other subresources have tests of their own.\n" +
		"Patches are JSON, merge, strategic merge and server-side apply.\n\n" +
		"Field selectors, beside `metadata.name` and `metadata.namespace`:\n\n")
	for _, k := range registry.Kinds() {
		if len(k.FieldNames) > 0 {
			fmt.Fprintf(doc, "- %s: %s\n", k.Plural, code(k.FieldNames))
		}
	}
}

func writeKind(doc *bytes.Buffer, gv string, r apidiscovery.APIResourceDiscovery, k *objects.Kind) {
	name := "`" + r.Resource + "`"
	if len(r.ShortNames) > 0 {
		name += " (" + code(r.ShortNames) + ")"
	}
	var subs []string
	for _, s := range r.Subresources {
		subs = append(subs, fmt.Sprintf("`%s` (%s)", s.Subresource, strings.Join(s.Verbs, ", ")))
	}
	kept := "on disk"
	switch {
	case k.Read != nil:
		kept = "computed"
	case k.Answer != nil:
		kept = "answered"
	case k.Volatile != nil && k.Volatile("default"):
		kept = "in memory"
	case k.Volatile != nil:
		kept = "on disk; in memory in `kube-node-lease`"
	}
	fmt.Fprintf(doc, "| %s | %s | %s | %s | %s | %s |\n", name, gv, strings.ToLower(string(r.Scope)), kept,
		strings.Join(r.Verbs, ", "), strings.Join(subs, ", "))
}

func discovered(t *testing.T, handler http.Handler, path string) apidiscovery.APIGroupDiscoveryList {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	var list apidiscovery.APIGroupDiscoveryList
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list.Items) == 0 {
		t.Fatalf("%s: %v: %s", path, err, w.Body)
	}
	return list
}

func writePodFields(t *testing.T, doc *bytes.Buffer) {
	by := map[string][]admission.FieldVerdict{}
	for _, f := range admission.PodFieldVerdicts() {
		by[f.Verdict] = append(by[f.Verdict], f)
	}
	fmt.Fprintf(doc, "\n## Fields of a pod's spec\n\n"+
		"%d are honoured, %d are admitted with a warning and ignored, %d are refused: those\n"+
		"whose absence would weaken isolation, the safety of data, placement or ordering. A\n"+
		"field that is in none of the lists is refused as well. `[]` stands for any index. What\n"+
		"is said of `containers[]` holds for `initContainers[]` too.\n"+
		"Limits of extended resources below edge.bramble.dev give a container devices of its node:\n"+
		"see [devices.md](devices.md).\n"+
		"Limits of resources hold where the node's user has the cgroup controllers; where it\n"+
		"has not, the node's condition ResourceLimitsUnenforced names them.\n"+
		"After a boot of the node each container is another one: restartCount grows, lastState is\n"+
		"ContainerStatusUnknown with exit code 137, and what was in the container's own files and in\n"+
		"emptyDirs of medium Memory is gone. Other than in Kubernetes an image that is there will do\n"+
		"then whatever imagePullPolicy says: the registry may be out of reach.\n",
		len(by["honoured"]), len(by["warned"]), len(by["refused"]))
	doc.WriteString("\n### Honoured, with all that is in them\n\n| shown by | fields |\n|---|---|\n")
	left := map[string]bool{}
	for _, f := range by["honoured"] {
		left[f.Path] = true
	}
	for _, shown := range readHonoured(t) {
		fmt.Fprintf(doc, "| %s, %s | %s |\n", shown.name, shown.file, code(shown.fields))
		for _, f := range shown.fields {
			if !left[f] {
				t.Errorf("testdata/honoured.txt names %s twice, or it is not honoured", f)
			}
			delete(left, f)
		}
	}
	for f := range left {
		t.Errorf("testdata/honoured.txt names no test for %s: which shows that it is honoured?", f)
	}
	for _, section := range []struct{ verdict, title string }{
		{"warned", "Admitted with a warning"}, {"refused", "Refused"},
	} {
		fmt.Fprintf(doc, "\n### %s\n\n| field | what the client is told | passes silently |\n|---|---|---|\n", section.title)
		for _, f := range by[section.verdict] {
			var harmless []string
			for _, h := range f.Harmless {
				harmless = append(harmless, fmt.Sprintf("%#v", h))
			}
			fmt.Fprintf(doc, "| `%s` | %s | %s |\n", f.Path, f.Words, code(harmless))
		}
	}
}

// showing is a test and the fields that it shows to be honoured.
type showing struct {
	file, name string
	fields     []string
}

// readHonoured reads testdata/honoured.txt, and holds that each test is there and
// speaks of its fields, as in YAML or as in Go.
func readHonoured(t *testing.T) (all []showing) {
	t.Helper()
	data, err := os.ReadFile("testdata/honoured.txt")
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(data), "\n\n") {
		words := strings.Fields(block)
		if len(words) < 3 || words[0] == "#" {
			continue
		}
		shown := showing{words[0], words[1], words[2:]}
		source, err := os.ReadFile(filepath.Join("../..", shown.file))
		if err != nil || !bytes.Contains(source, []byte("func "+shown.name+"(")) {
			t.Errorf("testdata/honoured.txt: no test %s in %s: %v", shown.name, shown.file, err)
		}
		for _, f := range shown.fields {
			leaf := f[strings.LastIndex(f, ".")+1:]
			if !regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(leaf) + `\b`).Match(source) {
				t.Errorf("testdata/honoured.txt: %s does not speak of %s", shown.file, f)
			}
		}
		all = append(all, shown)
	}
	return all
}

func code(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

// anyone is who the request says, else an administrator.
type anyone struct{}

func (anyone) Authenticate(r *http.Request) (api.User, bool, error) {
	if node := r.Header.Get("Node"); node != "" {
		return api.User{Name: api.NodeUserPrefix + node, Groups: []string{api.GroupNodes, api.GroupAuthenticated}}, true, nil
	}
	return api.User{Name: "admin", Groups: []string{api.GroupMasters}}, true, nil
}
