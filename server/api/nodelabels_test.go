package api_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"bramble.dev/bramble/server/api"
)

func TestFitName(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"Raspberry Pi 4 Model B Rev 1.4": "Raspberry-Pi-4-Model-B-Rev-1.4",
		"-x_":                            "x",
		"serial.usb-Silicon_Labs_CP2102_USB_to_UART_Bridge_Controller_0001-if00-port0": "serial.usb-Silicon_Labs_CP2102_USB_to_UART_Bridge_Cont-b4d9d5ff",
	} {
		if got := api.FitName(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func FuzzFitName(f *testing.F) {
	for _, s := range []string{"", "-", "serial.usb-Silicon_Labs_CP2102_USB_to_UART_Bridge_Controller_0001-if00-port0", "Raspberry Pi 4 Model B Rev 1.4", "ä:ö"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := api.FitName(s); got != "" && len(validation.IsQualifiedName(got)) > 0 {
			t.Errorf("%q becomes %q", s, got)
		}
	})
}
