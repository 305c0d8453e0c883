package probe_test

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/probe"
)

// node is what probes work with in a test, and what they told.
type node struct {
	age     time.Duration // of every container
	mu      sync.Mutex
	events  []string
	changes int
	code    int // of each command
	output  string
	execs   int
	hang    bool
	err     error
}

func (n *node) Exec(ctx context.Context, _ container.Target, _ []string, _ int) ([]byte, int, error) {
	n.mu.Lock()
	n.execs++
	code, output, hang, err := n.code, n.output, n.hang, n.err
	n.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, 0, ctx.Err()
	}
	return []byte(output), code, err
}

func (n *node) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

func (n *node) event(_ *corev1.Pod, name, _, reason, message string) {
	n.set(func() { n.events = append(n.events, fmt.Sprintf("%s %s: %s", name, reason, message)) })
}

// probers run until the test ends, or stop is called.
func (n *node) probers(t *testing.T) (p *probe.Probers, stop func()) {
	p = probe.New(probe.Config{
		Dial: (&net.Dialer{}).DialContext, Exec: n.Exec, Event: n.event,
		Age:     func(int) time.Duration { return n.age },
		Changed: func(string) { n.set(func() { n.changes++ }) },
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.Run(ctx)
	}()
	return p, func() {
		cancel()
		<-done
	}
}

func probed(spec *corev1.Container) container.Probed {
	return container.Probed{
		Target:    container.Target{ID: "c1", PID: 7, Address: netip.MustParseAddr("127.0.0.1"), Spec: spec},
		StartedAt: time.Now(),
	}
}

// verdict probes once, as a readiness probe, and returns ready and the events.
func verdict(t *testing.T, n *node, handler corev1.ProbeHandler, ports ...corev1.ContainerPort) (bool, string) {
	t.Helper()
	p, stop := n.probers(t)
	defer stop()
	c := probed(&corev1.Container{Name: "main", Ports: ports, ReadinessProbe: &corev1.Probe{
		ProbeHandler: handler, PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1,
	}})
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		ready := p.Watch("u", &corev1.Pod{}, []container.Probed{c})["c1"].Ready
		n.mu.Lock()
		events := strings.Join(n.events, "\n")
		n.mu.Unlock()
		if ready || events != "" {
			return ready, events
		}
	}
	t.Fatal("nothing was found out")
	return false, ""
}

func TestHTTPProbeFollowsTheKubelet(t *testing.T) {
	var elsewhere string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/fine":
			if r.URL.RawQuery != "a=b" || r.Header.Get("X-Mine") != "1" || r.Host != "example.org" || r.UserAgent() != "kube-probe/1.37" {
				w.WriteHeader(http.StatusTeapot)
			}
		case "/here":
			http.Redirect(w, r, "/bad", http.StatusFound)
		case "/away":
			http.Redirect(w, r, elsewhere, http.StatusFound)
		case "/slow":
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	elsewhere = "http://localhost:1/fine"
	headers := []corev1.HTTPHeader{{Name: "X-Mine", Value: "1"}, {Name: "Host", Value: "example.org"}}
	port := func(s *httptest.Server) int { return s.Listener.Addr().(*net.TCPAddr).Port }
	for name, c := range map[string]struct {
		get   corev1.HTTPGetAction
		ready bool
		event string
	}{
		"headers, query, name": {corev1.HTTPGetAction{Path: "/fine?a=b", Port: intstr.FromString("web"), HTTPHeaders: headers}, true, ""},
		"https":                {corev1.HTTPGetAction{Path: "/fine?a=b", Port: intstr.FromInt(port(secure)), Scheme: corev1.URISchemeHTTPS, HTTPHeaders: headers}, true, ""},
		"host":                 {corev1.HTTPGetAction{Path: "/fine?a=b", Host: "localhost", Port: intstr.FromInt(port(plain)), HTTPHeaders: headers}, true, ""},
		"status":               {corev1.HTTPGetAction{Path: "/bad", Port: intstr.FromInt(port(plain))}, false, "main Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 500"},
		"redirect followed":    {corev1.HTTPGetAction{Path: "/here", Port: intstr.FromInt(port(plain))}, false, "main Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 500"},
		"redirect elsewhere":   {corev1.HTTPGetAction{Path: "/away", Port: intstr.FromInt(port(plain))}, true, "main ProbeWarning: Readiness probe warning: Probe terminated redirects, Response body: "},
		"refused":              {corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt(1)}, false, `main Unhealthy: Readiness probe failed: Get "http://127.0.0.1:1/": dial tcp 127.0.0.1:1: connect: connection refused`},
		"too slow":             {corev1.HTTPGetAction{Path: "/slow", Port: intstr.FromInt(port(plain))}, false, `main Unhealthy: Readiness probe failed: Get "http://127.0.0.1:`},
		"no such port":         {corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("admin")}, false, `main Unhealthy: Readiness probe errored: container main has no port "admin"`},
	} {
		t.Run(name, func(t *testing.T) {
			ready, events := verdict(t, &node{}, corev1.ProbeHandler{HTTPGet: &c.get}, corev1.ContainerPort{Name: "web", ContainerPort: int32(port(plain))})
			if c.ready && events == "" && !ready || !c.ready && ready || !strings.HasPrefix(events, c.event) {
				t.Errorf("ready %v, events %q, want %v and %q", ready, events, c.ready, c.event)
			}
		})
	}
}

func TestTCPAndExec(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tcp := func(port int) corev1.ProbeHandler {
		return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(port)}}
	}
	command := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"check", "me"}}}
	for name, c := range map[string]struct {
		node    *node
		handler corev1.ProbeHandler
		ready   bool
		event   string
	}{
		"open":      {handler: tcp(l.Addr().(*net.TCPAddr).Port), ready: true},
		"closed":    {handler: tcp(1), event: "main Unhealthy: Readiness probe failed: dial tcp 127.0.0.1:1: connect: connection refused"},
		"command":   {handler: command, ready: true},
		"bad code":  {node: &node{code: 1, output: "no good"}, handler: command, event: "main Unhealthy: Readiness probe failed: no good"},
		"too long":  {node: &node{hang: true}, handler: command, event: `main Unhealthy: Readiness probe failed: command timed out: "check me" timed out after 1s`},
		"not there": {node: &node{err: container.ErrNotFound}, handler: command, event: "main Unhealthy: Readiness probe errored: no such pod or container"},
	} {
		t.Run(name, func(t *testing.T) {
			ready, events := verdict(t, cmp.Or(c.node, &node{}), c.handler)
			if ready != c.ready || !strings.HasPrefix(events, c.event) {
				t.Errorf("ready %v, events %q, want %v and %q", ready, events, c.ready, c.event)
			}
		})
	}
}

func (n *node) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.execs
}
