package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bramble.dev/bramble/test/cluster"
)

// TestErrorsSayWhatToDo runs edgectl on what cannot work: the error is the
// server's own where it has one, and a hint says what to do.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	for _, test := range []struct{ args, words string }{
		{"why pod nosuch", `pods "nosuch" not found|hint: see the pods there are`},
		{"why pod pod/nosuch", "is no pod's name|hint: give the name alone"},
		{"token create --ttl 1s", "--ttl 1s is too short|hint: give at least 1m"},
		{"token create --ttl 900h", "ttlSeconds: must be from 1 to 2592000|hint: see --help"},
		{"token create --uses 0", "--uses 0 lets no node join|hint: give 1 or more"},
		{"token create --uses 5000", "may have 1 to 1000 uses|hint: see --help"},
		{"token create --server-address board", `"board" is not HOST:PORT|hint: give host and port`},
		{"token create --kubeconfig /nonexistent", "hint: name a kubeconfig that exists"},
		{"get pods --as bob", `User "bob" cannot list resource "pods"`},
		{"user create system:x", "one of Kubernetes' own names|hint: choose another name"},
		{"user create ann --role nosuch", `neither a Role "nosuch" in namespace default nor such a ClusterRole|hint: see the roles`},
		{"user create ann --role a --cluster-role b", "exclude one another|hint: give one"},
		{"user create ann --for 1m", "--for 1m0s is not served|hint: give 10m"},
		{"user create ann --group system:nodes", "reserved|hint: see --help"},
		{"node revoke nosuch", `nodes "nosuch" not found|hint: see the nodes there are`},
		{"node revoke", "edgectl node revoke needs one NAME, and got 0|hint: see edgectl node revoke --help"},
		{"why hello", `unknown command "hello" for "edgectl why"|hint: there is: edgectl why pod NAME`},
		{"user create ann --role view -n nosuch", `namespaces "nosuch" not found|hint: make it: edgectl create namespace nosuch`},
		{"user create a/b --role view", "may not contain '/'|hint: give what the server's words above allow"},
		{"backup /nonexistent/b.tar.gz", "no such file or directory|hint: name a file in a directory that exists"},
		{"get deployments", "a resource type \"deployments\"|hint: see what the server has: edgectl api-resources"},
		{"get pods --server https://127.0.0.1:1", "was refused|hint: check that the server runs"},
		{"delete namespace default", "this namespace may not be deleted"},
		{"create deployment web --image=web", "Bramble does not serve deployments.apps"},
	} {
		t.Run(test.args, func(t *testing.T) {
			out, err := s.Edgectl(strings.Fields(test.args)...)
			if err == nil {
				t.Fatalf("it did: %s", out)
			}
			for word := range strings.SplitSeq(test.words, "|") {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("no %q in: %v", word, err)
				}
			}
		})
	}
}

// TestCompletion asks for completions as a shell does.
func TestCompletion(t *testing.T) {
	s := cluster.StartServer(t)
	s.Must("run", "web", "--image=web")
	for _, test := range []struct{ args, want string }{
		{"why|pod|w", "web"}, {"why|", "pod"}, {"to", "token"}, {"us", "user"}, {"node|", "revoke"}, {"token|create|--us", "--uses"}, {"get|po", "pods"},
	} {
		out := s.Must(append([]string{"__complete"}, strings.Split(test.args, "|")...)...)
		if !strings.Contains("\n"+out, "\n"+test.want) {
			t.Errorf("%s: %q, want %s", test.args, out, test.want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(cluster.Programs(t), "edgectl"), "completion", shell).Output()
		if err != nil || !strings.Contains(string(out), "edgectl") || strings.Contains(string(out), "kubectl") {
			t.Errorf("%s: %v, kubectl in it %d times", shell, err, strings.Count(string(out), "kubectl"))
		}
	}
}
