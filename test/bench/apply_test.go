package bench

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"bramble.dev/bramble/test/cluster"
)

// TestApplyToRunning compares three ways to get a container running, in turn,
// on one node: a pod by Bramble's API until its status says Running; the same
// Podman API calls made by hand; and `podman kube play`.
func TestApplyToRunning(t *testing.T) {
	s := cluster.StartServer(t)
	n := s.StartNode(t, "bench")
	client := s.Client()
	applyPod(t, client, "warm")
	var ours, raw, play []time.Duration
	for i := range 15 {
		began := time.Now()
		applyPod(t, client, fmt.Sprintf("pod-%d", i))
		ours = append(ours, time.Since(began))

		began = time.Now()
		rawPod(t, n, fmt.Sprintf("raw-%d", i))
		raw = append(raw, time.Since(began))

		manifest := kubeFile(t, n, fmt.Sprintf("play-%d", i))
		began = time.Now()
		if _, err := n.Podman(t.Context(), "kube", "play", "--network", "none", manifest); err != nil {
			t.Fatal(err)
		}
		play = append(play, time.Since(began))
	}
	note("apply to Running, image present", spread(ours))
	note("the same Podman API calls by hand", spread(raw))
	note("podman kube play", spread(play))
	figure(t, "apply to Running / Podman API calls (medians)", float64(median(ours))/float64(median(raw)), 1.2, "×")
	figure(t, "apply to Running / podman kube play (medians)", float64(median(ours))/float64(median(play)), 1, "×")
}

// applyPod creates a pod and returns when the API says that it is Running.
func applyPod(t *testing.T, client *kubernetes.Clientset, name string) {
	t.Helper()
	zero := int64(0)
	pods := client.CoreV1().Pods("default")
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &zero, Containers: []corev1.Container{{
			Name: "c", Image: cluster.TestImage, Command: []string{"sleep", "1000000"},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := pods.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: pod.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if p, ok := event.Object.(*corev1.Pod); ok && p.Status.Phase == corev1.PodRunning {
			return
		}
	}
	t.Fatalf("the watch of pod %s ended before it ran", name)
}

// rawPod makes and starts what Bramble makes for a pod, by bare HTTP.
func rawPod(t *testing.T, n *cluster.Node, name string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", n.PodmanSocket())
	}}}
	for _, call := range [][2]string{
		{"/pods/create", `{"name":"` + name + `","infra_image":"localhost/bramble/pause:1","infra_name":"i` + name + `","shared_namespaces":["ipc","uts"],"netns":{"nsmode":"none"}}`},
		{"/containers/i" + name + "/start", ""},
		{"/containers/create", `{"name":"c` + name + `","pod":"` + name + `","image":"` + cluster.TestImage + `","command":["sleep","1000000"],"netns":{"nsmode":"none"},"log_configuration":{"driver":"k8s-file"}}`},
		{"/containers/c" + name + "/start", ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://podman/v4.0.0/libpod"+call[0], bytes.NewBufferString(call[1]))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode >= 300 {
			t.Fatalf("%s: %s", call[0], response.Status)
		}
	}
}

func kubeFile(t *testing.T, n *cluster.Node, name string) string {
	t.Helper()
	path := filepath.Join(n.Home, name+".yaml")
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec:\n  containers:\n    - {name: c, image: '" + cluster.TestImage + "', command: [sleep, '1000000']}\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
