package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/test/cluster"
)

// TestViewer makes a user who may view one namespace, and lets every kubectl on
// this machine do as them what they may and may not.
func TestViewer(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	s.Must("create", "namespace", "shop")
	s.Must("run", "web", "--image=web", "-n", "shop")
	s.Must("create", "secret", "generic", "till", "--from-literal=k=v", "-n", "shop")
	admin := s.Kubeconfig
	ann := filepath.Join(t.TempDir(), "ann.kubeconfig")
	if err := os.WriteFile(ann, []byte(s.Must("user", "create", "ann", "--role", "view", "--namespace", "shop", "--for", "24h")), 0o600); err != nil {
		t.Fatal(err)
	}
	const binding = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"mine","namespace":"shop"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"ann"}]}`
	programs := kubectls(t)
	stock := slices.DeleteFunc(slices.Sorted(maps.Keys(programs)), func(v string) bool { return v == "edgectl" })
	whole := []string{"edgectl", stock[0]} // the oldest and the newest try all
	for version, program := range programs {
		t.Run(version, func(t *testing.T) {
			for _, test := range []struct {
				as, args, stdin string
				want            string // in the output, or, with "!" before it, in the error
			}{
				{ann, "get pods", "", "web"},
				{ann, "auth whoami", "", "ann"},
				{ann, "auth can-i list pods", "", "yes"},
				{ann, "auth can-i list secrets", "", "!"},
				{ann, "auth can-i get pods/log -n shop", "", "yes"},
				{ann, "auth can-i get pods -n default", "", "!"},
				{ann, "auth can-i --list", "", "placements.edge.bramble.dev"},
				{ann, "get secrets", "", `!secrets is forbidden: User "ann" cannot list resource "secrets" in API group "" in the namespace "shop"`},
				{ann, "get secret till", "", `!secrets "till" is forbidden: User "ann" cannot get resource "secrets"`},
				{ann, "get pods -n default", "", `!cannot list resource "pods" in API group "" in the namespace "default"`},
				{ann, "get nodes", "", `!nodes is forbidden: User "ann" cannot list resource "nodes" in API group "" at the cluster scope`},
				{ann, "delete pod web", "", `!cannot delete resource "pods"`},
				{ann, "create configmap x --from-literal=a=b", "", `!cannot create resource "configmaps"`},
				{ann, "create token default", "", `!cannot create resource "serviceaccounts/token"`},
				{ann, "create -f -", binding, `!cannot create resource "rolebindings"`},
				{ann, "get pods --as root --as-group system:masters", "", `!User "ann" cannot impersonate resource "users"`},

				{admin, "auth can-i list secrets --as ann -n shop", "", "!"},
				{admin, "auth can-i list pods --as ann -n shop", "", "yes"},
				{admin, "auth can-i create pods --as system:serviceaccount:shop:default", "", "!"},
				{admin, "auth reconcile -f -", strings.NewReplacer("mine", "reconciled-"+version, "cluster-admin", "view", "ann", "bob").Replace(binding), "reconciled"},
				{admin, "create role r-" + version + " --verb=get --resource=pods,pods/log -n shop", "", "created"},
				{admin, "create rolebinding b-" + version + " --role=r-" + version + " --serviceaccount=shop:default -n shop", "", "created"},
				{admin, "create clusterrole c-" + version + " --verb=get --non-resource-url=/metrics", "", "created"},
				{admin, "create clusterrolebinding c-" + version + " --clusterrole=view --group=g", "", "created"},
				{admin, "auth can-i get pods/log -n shop --as system:serviceaccount:shop:default", "", "yes"},
				{admin, "create token default -n shop --duration 20m", "", "ey"},
				{admin, "describe clusterrole view", "", "configmaps"},
				{admin, "delete rolebinding reconciled-" + version + " -n shop", "", "deleted"},
			} {
				if !slices.Contains(whole, version) && !byVersion(test.args) {
					continue
				}
				s.Kubeconfig = test.as
				out, err := s.Kubectl(program, test.stdin, strings.Fields(test.args)...)
				s.Kubeconfig = admin
				refusal, refused := strings.CutPrefix(test.want, "!")
				switch {
				case !refused && (err != nil || !strings.Contains(out, test.want)):
					t.Errorf("%s: %q, %v; want %q", test.args, out, err, test.want)
				case refused && (err == nil || !strings.Contains(err.Error(), refusal)):
					t.Errorf("%s: %q, %v; want the error %q", test.args, out, err, refusal)
				}
			}
		})
	}
}

// byVersion reports whether kubectls differ in how they do a command.
func byVersion(args string) bool {
	return slices.Contains([]string{"auth whoami", "auth can-i list pods", "auth reconcile -f -", "create token default"}, args)
}

// TestNodeComesBackAfterRevoke revokes a real node, and lets it join again.
func TestNodeComesBackAfterRevoke(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	n := s.StartNode(t, "shelf")
	renewed := func() time.Time {
		lease, err := s.Client().CoordinationV1().Leases("kube-node-lease").Get(t.Context(), "shelf", metav1.GetOptions{})
		if err != nil || lease.Spec.RenewTime == nil {
			return time.Time{}
		}
		return lease.Spec.RenewTime.Time
	}
	early := s.Token()
	s.Must("node", "revoke", "shelf")
	if out := s.Must("get", "node", "shelf", "-o", "jsonpath={.spec.taints[*].key}"); !strings.Contains(out, "edge.bramble.dev/revoked") {
		t.Errorf("the node is not marked: %q", out)
	}
	last := renewed()
	n.Kill()
	if out, err := n.Join(s, early); err == nil || !strings.Contains(err.Error()+out, "revoked after this token was made") {
		t.Errorf("it joins with a token from before: %s %v", out, err)
	}
	if out, err := n.Join(s, s.Token()); err != nil {
		t.Fatalf("it cannot come back: %v\n%s", err, out)
	}
	n.Start()
	cluster.Eventually(t, 30*time.Second, func() string {
		if renewed().After(last) {
			return ""
		}
		return "its lease is not renewed"
	})
	if out := s.Must("get", "node", "shelf", "-o", "jsonpath={.spec.taints[*].key}"); strings.Contains(out, "edge.bramble.dev/revoked") {
		t.Errorf("the node is still marked: %q", out)
	}
}
