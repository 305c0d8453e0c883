package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"bramble.dev/bramble/server"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/client"
)

func podOf(name, node, secret string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName:   node,
			Containers: []corev1.Container{{Name: "c", Image: "example.org/i:1"}},
			Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}},
		},
	}
}

func TestNodeFromTokenToStatus(t *testing.T) {
	ctx := t.Context()
	s := start(t, t.TempDir(), nil)
	admin := s.admin(t).CoreV1()
	n := s.join(t, "kitchen", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "log of %s", r.URL.Path)
	}))
	got, err := n.GetNode(ctx, "kitchen")
	if err != nil || got.Spec.PodCIDR != n.joined.PodCIDR || n.joined.PodCIDR == "" {
		t.Fatalf("its Node: %+v, %v", got, err)
	}
	if epoch := <-n.epochs; epoch != n.joined.Epoch || n.Epoch() != epoch {
		t.Errorf("epoch %q, joined with %q", epoch, n.joined.Epoch)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.NamespaceNodeLeases, Name: "kitchen"}}
	if lease, err = n.CreateLease(ctx, lease); err != nil {
		t.Fatal(err)
	}
	now := metav1.NowMicro()
	lease.Spec.RenewTime = &now
	if _, err = n.UpdateLease(ctx, lease); err != nil {
		t.Error(err)
	}
	for _, secret := range []string{"used", "unused"} {
		if _, err := admin.Secrets("default").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pods := cache.NewStore(cache.MetaNamespaceKeyFunc)
	watching, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.WatchPods(watching, "kitchen", pods)
	}()
	defer func() { cancel(); <-done }()
	if _, err := admin.Pods("default").Create(ctx, podOf("p", "kitchen", "used"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node sees its pod", func() bool { return len(pods.ListKeys()) == 1 })
	if _, err := n.GetSecret(ctx, "default", "used"); err != nil {
		t.Errorf("its pod's Secret: %v", err)
	}
	if _, err := n.GetSecret(ctx, "default", "unused"); !apierrors.IsForbidden(err) {
		t.Errorf("another Secret: %v, want 403", err)
	}
	p, err := client.StrategicPatch(map[string]any{"status": map[string]any{"phase": "Running"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.PatchPodStatus(ctx, "default", "p", p); err != nil {
		t.Error(err)
	}
	if pod, err := admin.Pods("default").Get(ctx, "p", metav1.GetOptions{}); err != nil || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod's phase is %v, %v", pod.Status.Phase, err)
	}
	log, err := admin.Pods("default").GetLogs("p", &corev1.PodLogOptions{}).DoRaw(ctx)
	if string(log) != "log of /containerLogs/default/p/c" || err != nil {
		t.Errorf("the log: %q, %v", log, err)
	}
	zero := int64(0)
	if err := n.DeletePod(ctx, "default", "p", metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Error(err)
	}
	eventually(t, "the node sees its pod go", func() bool { return len(pods.ListKeys()) == 0 })
}

func TestNodeTouchesNothingOfAnothers(t *testing.T) {
	ctx := t.Context()
	s := start(t, t.TempDir(), nil)
	admin := s.admin(t).CoreV1()
	attic := s.join(t, "attic", nil)
	s.join(t, "kitchen", nil)
	if _, err := admin.Secrets("default").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Pods("default").Create(ctx, podOf("p", "kitchen", "s"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p, err := client.MergePatch(map[string]any{"status": map[string]any{"phase": "Failed"}})
	if err != nil {
		t.Fatal(err)
	}
	_, secret := attic.GetSecret(ctx, "default", "s")
	_, pod := attic.GetPod(ctx, "default", "p")
	_, status := attic.PatchPodStatus(ctx, "default", "p", p)
	_, other := attic.GetNode(ctx, "kitchen")
	_, nodeStatus := attic.PatchNodeStatus(ctx, "kitchen", p)
	_, lease := attic.CreateLease(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.NamespaceNodeLeases, Name: "kitchen"}})
	_, event := attic.CreateEvent(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: "e"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "p"},
	})
	for what, err := range map[string]error{
		"Secret": secret, "pod": pod, "pod's status": status, "delete": attic.DeletePod(ctx, "default", "p", metav1.DeleteOptions{}),
		"Node": other, "Node's status": nodeStatus, "Lease": lease, "event": event,
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s of another node: %v, want 403", what, err)
		}
	}
}

func TestStrangersGet401(t *testing.T) {
	s, other := start(t, t.TempDir(), nil), start(t, t.TempDir(), nil)
	stranger := rest.CopyConfig(s.config)
	stranger.CertData, stranger.KeyData = other.config.CertData, other.config.KeyData
	nobody := rest.CopyConfig(s.config)
	nobody.CertData, nobody.KeyData = nil, nil
	for name, test := range map[string]struct {
		config *rest.Config
		want   string
	}{
		"another CA": {stranger, "not issued by this cluster"},
		"nobody":     {nobody, "Unauthorized"},
	} {
		c, err := rest.HTTPClientFor(test.config)
		if err != nil {
			t.Fatal(err)
		}
		for path, code := range map[string]int{"/api/v1/pods": 401, "/version": 200, "/readyz": 200, "/metrics": 401, api.TokensPath: 401} {
			resp, err := c.Get(s.config.Host + path)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			resp.Body.Close()
			if resp.StatusCode != code {
				t.Errorf("%s, %s: %d, want %d", name, path, resp.StatusCode, code)
			}
			if resp.Header.Get(api.HeaderEpoch) == "" {
				t.Errorf("%s, %s: no epoch", name, path)
			}
		}
		c.CloseIdleConnections()
	}
}

func TestJoinRefusalsReachTheNode(t *testing.T) {
	s, other := start(t, t.TempDir(), nil), start(t, t.TempDir(), nil)
	token := s.token(t)
	key := newKey(t)
	if _, err := client.Join(t.Context(), other.address, token, "kitchen", key); !errors.Is(err, client.ErrOtherCA) {
		t.Errorf("at another cluster: %v, want ErrOtherCA", err)
	}
	if _, err := client.Join(t.Context(), s.address, "secret", "kitchen", key); err == nil || !strings.Contains(err.Error(), "edgectl token create") {
		t.Errorf("no token: %v", err)
	}
	if _, err := client.Join(t.Context(), s.address, token[:len(token)-1], "kitchen", key); !apierrors.IsUnauthorized(err) {
		t.Errorf("a wrong token: %v, want 401", err)
	}
	if _, err := client.Join(t.Context(), "https://"+s.address+"/", token, "kitchen", key); err != nil {
		t.Errorf("the right one: %v", err)
	}
	if _, err := client.Join(t.Context(), s.address, token, "attic", newKey(t)); !apierrors.IsForbidden(err) {
		t.Errorf("used: %v, want 403", err)
	}
	_, err := client.Join(t.Context(), s.address, s.token(t), "kitchen", newKey(t))
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "edgectl delete node kitchen") {
		t.Errorf("a taken name: %v, want 409 with the way out", err)
	}
}

func TestRenewAndRedial(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	n := s.join(t, "kitchen", nil)
	wrong := func() time.Time { return time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC) }
	out, err := client.Renew(t.Context(), s.address, []byte(n.joined.CA), n.cert, wrong)
	if err != nil || out.PodCIDR != n.joined.PodCIDR || out.Certificate == n.joined.Certificate {
		t.Fatalf("renewed: %+v, %v", out, err)
	}
	n.dialer.Redial()
	eventually(t, "connected", n.dialer.Connected)
	if _, err := n.GetNode(t.Context(), "kitchen"); err != nil {
		t.Error(err)
	}
}

func TestRestart(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, nil)
	n := s.join(t, "kitchen", nil)
	if _, err := n.GetNode(t.Context(), "kitchen"); err != nil {
		t.Fatal(err)
	}
	watch, err := s.admin(t).CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := s.stop(); err != nil {
		t.Errorf("stopping with a watch and a tunnel open: %v", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("stopping took %v", took)
	}
	for range watch.ResultChan() {
	}
	s = start(t, dir, func(c *server.Config) { c.Listen = s.address })
	eventually(t, "the node is back by its old certificate", func() bool {
		_, err := n.GetNode(t.Context(), "kitchen")
		return err == nil
	})
	ns, err := s.admin(t).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(ns.Items) != 4 {
		t.Errorf("%d namespaces, %v", len(ns.Items), err)
	}
}

func TestConfigValidate(t *testing.T) {
	if err := server.DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	bad := server.Config{DataDir: "here", Listen: "6443", ClusterCIDR: "10.100.0.0/14", ServiceCIDR: "10.101.0.0/16", NodeBits: 8}
	err := bad.Validate()
	for _, setting := range []string{"data-dir", "listen", "service-cidr", "node-bits", "node-lease-timeout", "shutdown-timeout"} {
		if err == nil || !strings.Contains(err.Error(), setting+":") {
			t.Errorf("nothing about %s in %v", setting, err)
		}
	}
}

// TestListenErrorsSayWhatToDo: the advice fits what is wrong with the address.
func TestListenErrorsSayWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, test := range []struct{ listen, words string }{
		{taken.Addr().String(), "is another server running?"},
		{"192.0.2.1:6443", "no interface of this machine has it"}, // RFC 5737: for documentation
		{"127.0.0.1:99999", "HOST:PORT"},
	} {
		cfg := server.DefaultConfig()
		cfg.DataDir, cfg.Listen = t.TempDir(), test.listen
		s, err := server.New(cfg, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: %v, want %q", test.listen, err, test.words)
		}
	}
}

// TestStoppedAsSoonAsReady: a stop may come before any listener is served. The race
// detector judges it.
func TestStoppedAsSoonAsReady(t *testing.T) {
	for range 10 {
		if err := start(t, t.TempDir(), nil).stop(); err != nil {
			t.Fatal(err)
		}
	}
}
