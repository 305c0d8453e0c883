package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/test/cluster"
)

// BenchmarkPodStart makes and starts pods of one container by the runtime and,
// in turn, by the same calls of Podman's API made by hand. The metric ratio is
// the one's time by the other's.
func BenchmarkPodStart(b *testing.B) {
	n := newNode(b)
	post := n.rawClient()
	_ = n.makePod(b, "warm") // loads the pause image
	var ours, raw time.Duration
	count := 0
	for b.Loop() {
		count++
		started := time.Now()
		n.run(b, shell(n.makePod(b, fmt.Sprintf("ours-%d", count)), "sleep 1000"))
		ours += time.Since(started)

		started = time.Now()
		pod := fmt.Sprintf("raw-%d", count)
		for _, call := range [][2]string{
			{"/pods/create", `{"name":"` + pod + `","infra_image":"localhost/bramble/pause:1","infra_name":"i` + pod + `","shared_namespaces":["ipc","uts"],"netns":{"nsmode":"none"}}`},
			{"/containers/i" + pod + "/start", ""},
			{"/containers/create", `{"name":"c` + pod + `","pod":"` + pod + `","image":"` + cluster.TestImage + `","command":["sh","-c","sleep 1000"],"netns":{"nsmode":"none"},"log_configuration":{"driver":"k8s-file"}}`},
			{"/containers/c" + pod + "/start", ""},
		} {
			if err := post(b.Context(), call[0], call[1]); err != nil {
				b.Fatal(err)
			}
		}
		raw += time.Since(started)
		b.StopTimer()
		if err := n.Remove(b.Context(), fmt.Sprintf("ours-%d", count)); err != nil {
			b.Fatal(err)
		}
		if _, err := n.Podman(b.Context(), "pod", "rm", "-f", "-t", "0", pod); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(ours.Milliseconds())/float64(count), "ours-ms")
	b.ReportMetric(float64(raw.Milliseconds())/float64(count), "raw-ms")
	b.ReportMetric(float64(ours)/float64(raw), "ratio")
}

// BenchmarkGet looks up one pod of ten.
func BenchmarkGet(b *testing.B) {
	n := newNode(b)
	for i := range 10 {
		n.run(b, shell(n.makePod(b, fmt.Sprintf("u%d", i)), "sleep 1000"))
	}
	for b.Loop() {
		if p, err := n.Get(b.Context(), "u3"); err != nil || p.Containers[0].Phase != container.Running {
			b.Fatal(p, err)
		}
	}
}

// rawClient posts to Podman's API by nothing but net/http.
func (n *node) rawClient() func(ctx context.Context, path, body string) error {
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", n.PodmanSocket())
	}}}
	return func(ctx context.Context, path, body string) error {
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://d/v4.0.0/libpod"+path, bytes.NewReader([]byte(body)))
		if err != nil {
			return err
		}
		q.Header.Set("Content-Type", "application/json")
		response, err := client.Do(q)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		if response.StatusCode >= 300 {
			return fmt.Errorf("%s: %s", path, text)
		}
		return nil
	}
}
