package main

import (
	"strings"
	"testing"

	"bramble.dev/bramble/server/api"
)

// TestSpark draws an hour.
func TestSpark(t *testing.T) {
	at := func(minutes, milliC int64) api.HardwareSample {
		return api.HardwareSample{AgeSeconds: minutes * 60, SoCTemperatureMilliC: &milliC}
	}
	for _, tt := range []struct {
		name    string
		samples []api.HardwareSample
		want    string
	}{
		{"nothing", nil, ""},
		{"nothing known", []api.HardwareSample{{AgeSeconds: 60}}, ""},
		{"steady", []api.HardwareSample{at(200, 45_000)}, "45.0 °C to 45.0 °C:\n" + strings.Repeat("▁", 60)},
		{"a step", []api.HardwareSample{at(200, 40_000), at(9, 80_000)}, "40.0 °C to 80.0 °C:\n" + strings.Repeat("▁", 50) + strings.Repeat("█", 10)},
		{"new", []api.HardwareSample{at(4, 40_000), at(1, 60_000), {AgeSeconds: 0}}, "40.0 °C to 60.0 °C:\n" + strings.Repeat(" ", 55) + "▁▁▁█ "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := spark(tt.samples); !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
