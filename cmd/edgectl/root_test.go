package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// notOurName is where kubectl is meant and not this program: addresses, names of
// annotations, and the plugins that both have.
var notOurName = regexp.MustCompile(`https?://\S+|kubectl\.kubernetes\.io|"kubectl-"`)

// TestHelpSaysEdgectl reads every text of every command and of its flags.
func TestHelpSaysEdgectl(t *testing.T) {
	root := newRoot(genericiooptions.NewTestIOStreamsDiscard(), []string{name})
	rewordTree(root.Commands()...)
	seen := 0
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		texts := map[string]string{"short": c.Short, "long": c.Long, "example": c.Example, "deprecated": c.Deprecated}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { texts["flag --"+f.Name] = f.Usage + f.Deprecated })
		for what, text := range texts {
			if text = notOurName.ReplaceAllString(text, ""); strings.Contains(text, "kubectl") {
				t.Errorf("%s, %s: %s", c.CommandPath(), what, text)
			}
		}
		for _, sub := range c.Commands() {
			seen++
			look(sub)
		}
	}
	for _, c := range root.Commands() {
		seen++
		look(c)
	}
	if seen < 100 {
		t.Errorf("only %d commands were looked at", seen)
	}
}

// TestClusterInfoSaysEdgectl runs the command whose output names the program.
func TestClusterInfoSaysEdgectl(t *testing.T) {
	answers := map[string]string{
		"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":   `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"services","namespaced":true,"kind":"Service","verbs":["list"]}]}`,
		"/api/v1/namespaces/kube-system/services": `{"kind":"ServiceList","apiVersion":"v1","metadata":{},"items":[]}`,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answers[r.URL.Path])
	}))
	defer srv.Close()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "/nonexistent")
	var out bytes.Buffer
	args := []string{"cluster-info", "--server", srv.URL}
	root := newRoot(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}, append([]string{name}, args...))
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "use 'edgectl cluster-info dump'") || strings.Contains(text, "kubectl") {
		t.Errorf("it says:\n%s", text)
	}
}
