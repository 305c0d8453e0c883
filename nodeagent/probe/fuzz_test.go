package probe_test

import (
	"encoding/binary"
	"testing"

	"google.golang.org/protobuf/proto"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"bramble.dev/bramble/nodeagent/probe"
)

// FuzzHealthStatus holds that what protobuf's own decoder takes is read the same.
func FuzzHealthStatus(f *testing.F) {
	f.Add([]byte{8, 1})
	f.Add([]byte{8, 1, 8, 2})
	f.Add([]byte{18, 2, 'h', 'i', 8, 3})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, message []byte) {
		frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
		got, err := probe.HealthStatus(frame)
		var want healthv1.HealthCheckResponse
		if proto.Unmarshal(message, &want) != nil {
			return
		}
		if err == nil && int32(got) != int32(want.Status) {
			t.Errorf("%x: got %d, want %d", message, got, want.Status)
		}
		if _, err := probe.HealthStatus(message); err == nil && len(message) < 5 {
			t.Errorf("%x: a frame without its head passed", message)
		}
	})
}
