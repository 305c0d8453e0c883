package nodeagent_test

import (
	"testing"

	"bramble.dev/bramble/test/cluster"
)

func TestHello(t *testing.T) {
	s := cluster.StartServer(t)
	n := s.StartNode(t, "shelf")
	s.Apply(`
apiVersion: v1
kind: Pod
metadata: {name: hello}
spec:
  nodeName: shelf
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: ` + cluster.TestImage + `, command: [sh, -c, "echo hi; mkdir -p /www; echo page > /www/index.html; httpd -f -p 80 -h /www"]}]
`)
	out, err := s.Edgectl("wait", "--for=condition=Ready", "--timeout=20s", "pod/hello")
	t.Log(out, err)
	t.Log(s.Must("get", "pod", "hello", "-o", "yaml"))
	t.Log(s.Must("get", "pods,nodes", "-o", "wide"))
	t.Log(s.Must("describe", "pod", "hello"))
	out, err = s.Edgectl("logs", "hello")
	t.Log(out, err)
	s.Must("delete", "pod", "hello")
	ps, err := n.Podman(t.Context(), "ps", "-a")
	t.Log(ps, err)
}
