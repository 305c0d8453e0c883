package e2e

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bramble.dev/bramble/test/cluster"
)

// faultyRegistry serves busybox by TLS to who has its password. The name before
// the tag says what is wrong with it, until it is mended.
type faultyRegistry struct {
	*httptest.Server
	blobs     map[string][]byte
	manifests map[string][]byte // by name
	layers    map[string]bool   // the blobs that are layers

	mu     sync.Mutex // protects mended and held
	mended map[string]bool
	held   chan struct{} // closed when the layer of "held" is asked for
}

func startFaultyRegistry(t *testing.T, address string) *faultyRegistry {
	t.Helper()
	r := &faultyRegistry{blobs: map[string][]byte{}, manifests: map[string][]byte{}, layers: map[string]bool{}, mended: map[string]bool{}, held: make(chan struct{})}
	var root bytes.Buffer
	if err := cluster.WriteBusyboxRoot(t.Context(), &root); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"held", "cut", "liar", "alien"} {
		root.Write(make([]byte, 512)) // a layer of its own, which no other pull has brought
		r.add(name, root.Bytes())
	}
	r.Server = httptest.NewUnstartedServer(r)
	if address != "" {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Listener.Close()
		r.Listener = l
	}
	r.StartTLS()
	t.Cleanup(r.CloseClientConnections)
	t.Cleanup(r.Close)
	return r
}

// add adds an image whose one layer is that tar.
func (r *faultyRegistry) add(name string, root []byte) {
	keep := func(kind string, data []byte) map[string]any {
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
		r.blobs[digest] = data
		return map[string]any{"digest": digest, "size": len(data), "mediaType": "application/vnd.oci.image." + kind}
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(root)
	_ = w.Close()
	architecture := runtime.GOARCH
	if name == "alien" {
		architecture = "s390x"
	}
	config, _ := json.Marshal(map[string]any{
		"architecture": architecture, "os": "linux", "config": map[string]any{"Cmd": []string{"/bin/sh"}, "Env": []string{"PATH=/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(root))}},
	})
	layer := keep("layer.v1.tar+gzip", packed.Bytes())
	r.layers[layer["digest"].(string)] = true
	r.manifests[name], _ = json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": keep("config.v1+json", config), "layers": []any{layer},
	})
}

func (r *faultyRegistry) mend(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mended[name] = true
}

// works reports whether an image is mended.
func (r *faultyRegistry) works(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mended[name]
}

func (r *faultyRegistry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if user, password, _ := q.BasicAuth(); user != "robot" || password != "hush-9471" {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/v2/"), "/")
	last := q.URL.Path[strings.LastIndexByte(q.URL.Path, '/')+1:]
	switch {
	case q.URL.Path == "/v2/":
	case strings.Contains(q.URL.Path, "/manifests/"):
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		_, _ = w.Write(r.manifests[name])
	case !r.layers[last] || r.works(name):
		_, _ = w.Write(r.blobs[last])
	default:
		r.serveLayer(w, q, name, r.blobs[last])
	}
}

func (r *faultyRegistry) serveLayer(w http.ResponseWriter, q *http.Request, name string, data []byte) {
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	switch name {
	case "cut":
		_, _ = w.Write(data[:len(data)/2])
		panic(http.ErrAbortHandler)
	case "liar":
		data = bytes.Clone(data)
		data[len(data)/2] ^= 1
		_, _ = w.Write(data)
	case "held":
		_, _ = w.Write(data[:len(data)/2])
		_ = http.NewResponseController(w).Flush()
		r.mu.Lock()
		select {
		case <-r.held:
		default:
			close(r.held)
		}
		r.mu.Unlock()
		<-q.Context().Done()
	default:
		_, _ = w.Write(data)
	}
}

// trust lets the node's Podman trust the registry.
func (r *faultyRegistry) trust(t *testing.T, n *cluster.Node) {
	t.Helper()
	dir := filepath.Join(n.Home, ".config/containers/certs.d", r.Listener.Addr().String())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), ca, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestRegistryFaults pulls, with the credentials of a Secret that stock kubectl
// made, from a registry that does all that registries do wrong: the events say
// what, and when it is mended the pods run without anybody's help.
func TestRegistryFaults(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	n := s.StartNode(t, "shelf")
	r := startFaultyRegistry(t, "")
	host := r.Listener.Addr().String()
	r.trust(t, n)
	kubectl := filepath.Join(cluster.Programs(t), "kubectl")
	if _, err := s.Kubectl(kubectl, "", "create", "secret", "docker-registry", "robot", "--docker-server="+host, "--docker-username=robot", "--docker-password=hush-9471"); err != nil {
		t.Fatal(err)
	}
	apply := func(name, image string) {
		s.Apply(strings.Replace(one(name, "imagePullSecrets: [{name: robot}]", "sleep 100000", "imagePullPolicy: Always"), cluster.TestImage, host+"/"+image+"/app:1", 1))
	}
	// Whoever is killed in the middle of a pull pulls again.
	apply("held", "held")
	select {
	case <-r.held:
	case <-time.After(time.Minute):
		t.Fatal("the layer is not asked for")
	}
	killService(t, n)
	r.mend("held")
	s.WaitFor("condition=Ready", "pod/held")

	faults := map[string]string{
		"cut":   "EOF",
		"liar":  "push the image anew, or pull it from another registry",
		"alien": "it is for s390x, and this node is " + runtime.GOARCH,
	}
	for name := range faults {
		apply(name, name)
	}
	for name, what := range faults {
		says(t, s, name, what)
		r.mend(name)
	}
	s.WaitFor("condition=Ready", "pod/cut", "pod/liar")
	s.Apply(strings.Replace(one("stranger", "enableServiceLinks: true", "true", "imagePullPolicy: Always"), cluster.TestImage, host+"/secret/app:1", 1))
	says(t, s, "stranger", "name it in the pod's imagePullSecrets")

	r.CloseClientConnections()
	r.Close()
	apply("away", "cut") // it is here, but Always means the registry
	says(t, s, "away", "check the address "+host+" in the image's name")
	if got := s.Must("get", "pod", "liar", "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].restartCount}"); got != "Running 0" {
		t.Errorf("without its registry a pod that runs is %s", got)
	}
	startFaultyRegistry(t, host).mend("cut")
	s.WaitFor("condition=Ready", "pod/away")
	s.Must("delete", "pods", "--all")
	cluster.Eventually(t, time.Minute, func() string { return remains(t, n) })
}

// says waits until a pod's events say something.
func says(t *testing.T, s *cluster.Server, pod, what string) {
	t.Helper()
	cluster.Eventually(t, time.Minute, func() string {
		got := s.Must("get", "events", "--field-selector", "involvedObject.name="+pod+",reason=Failed", "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(got, what) {
			return fmt.Sprintf("the events of %s say %q, want %q:\n%s", pod, got, what, s.Must("get", "events,pods"))
		}
		return ""
	})
	t.Logf("%s: %s", pod, s.Must("get", "events", "--field-selector", "involvedObject.name="+pod+",reason=Failed", "-o", "jsonpath={.items[0].message}"))
}

// killService kills the node's Podman service.
func killService(t *testing.T, n *cluster.Node) {
	t.Helper()
	pids, err := n.Processes()
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, pid := range pids {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if bytes.Contains(line, []byte("system\x00service")) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			killed++
		}
	}
	if killed == 0 {
		t.Error("podman's service does not run")
	}
}
