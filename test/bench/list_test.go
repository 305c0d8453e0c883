package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"bramble.dev/bramble/test/cluster"
	"bramble.dev/bramble/test/hollow"
)

// TestLongList reads 5,000 running pods at once and in pages of 500: how long it
// takes, and how much the server has resident at its most meanwhile.
func TestLongList(t *testing.T) {
	const nodes, pods = 50, 5000
	s := cluster.StartServer(t)
	hollow.Start(t, s, nodes)
	client := s.Client()
	createPods(t, client, pods)
	waitRunning(t, client)
	rest(t, 5*time.Second)
	u := read(t, s.PID())
	figure(t, fmt.Sprintf("%d nodes, %d pods: server, resident (%.1f MiB of it anonymous)", nodes, pods, u.anonMiB), u.rssMiB, 0, "MiB")
	for _, way := range []struct {
		name  string
		limit string
	}{{"in pages of 500", "500"}, {"at once", ""}} {
		var times []time.Duration
		resetPeak(t, s.PID())
		size := 0
		for range 5 {
			began := time.Now()
			items, bytes := readAll(t, client, way.limit)
			times = append(times, time.Since(began))
			if size = bytes; items != pods {
				t.Fatalf("%d pods, want %d", items, pods)
			}
		}
		note(fmt.Sprintf("list of %d pods %s (%.1f MB)", pods, way.name, float64(size)/1e6), spread(times))
		figure(t, fmt.Sprintf("list of %d pods %s: server, resident at its most", pods, way.name), read(t, s.PID()).peakMiB, 0, "MiB")
	}
}

// readAll reads all pods, in pages of limit where that is not "", and returns how
// many there were and in how many bytes. The objects are not decoded.
func readAll(t *testing.T, client *kubernetes.Clientset, limit string) (items, bytes int) {
	t.Helper()
	next := ""
	for {
		query := url.Values{}
		if limit != "" {
			query.Set("limit", limit)
		}
		if next != "" {
			query.Set("continue", next)
		}
		text, err := page(t.Context(), client, query)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Metadata struct{ Continue string }
			Items    []json.RawMessage
		}
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		items, bytes = items+len(list.Items), bytes+len(text)
		if next = list.Metadata.Continue; next == "" {
			return items, bytes
		}
	}
}

func page(ctx context.Context, client *kubernetes.Clientset, query url.Values) ([]byte, error) {
	request := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/pods").SetHeader("Accept", "application/json")
	for name := range query {
		request.Param(name, query.Get(name))
	}
	return request.DoRaw(ctx)
}
