package probe_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
)

// serve runs a gRPC server of the reference implementation, with the health
// service where that is given.
func serve(t *testing.T, h *health.Server) int32 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	if h != nil {
		healthv1.RegisterHealthServer(s, h)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // until Stop
	}()
	t.Cleanup(func() {
		s.Stop()
		<-done
	})
	return int32(l.Addr().(*net.TCPAddr).Port)
}

func TestGRPCProbeUnderstandsRealHealthServices(t *testing.T) {
	h := health.NewServer()
	h.SetServingStatus("fine", healthv1.HealthCheckResponse_SERVING)
	h.SetServingStatus("ill", healthv1.HealthCheckResponse_NOT_SERVING)
	port, bare := serve(t, h), serve(t, nil)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, c := range map[string]struct {
		port    int32
		service string
		ready   bool
		event   string
	}{
		"server":     {port, "", true, ""},
		"service":    {port, "fine", true, ""},
		"ill":        {port, "ill", false, `main Unhealthy: Readiness probe failed: service unhealthy (responded with "NOT_SERVING")`},
		"unknown":    {port, "none", false, `main Unhealthy: Readiness probe failed: error: health rpc probe failed: rpc error: code = "5" desc = unknown service`},
		"no health":  {bare, "", false, `main Unhealthy: Readiness probe failed: error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown service`},
		"nobody":     {1, "", false, `main Unhealthy: Readiness probe failed: error: failed to connect service at "127.0.0.1:1": dial tcp 127.0.0.1:1: connect: connection refused`},
		"no answers": {int32(silent.Addr().(*net.TCPAddr).Port), "", false, `main Unhealthy: Readiness probe failed: timeout: failed to connect service "127.0.0.1:`},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			ready, events := verdict(t, &node{}, corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: c.port, Service: &c.service}})
			if ready != c.ready || !strings.HasPrefix(events, c.event) || time.Since(began) > 3*time.Second {
				t.Errorf("ready %v, events %q after %v, want %v and %q", ready, events, time.Since(began), c.ready, c.event)
			}
		})
	}
}
