package server

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/api"
)

func said(milliC int64, conditions ...string) *api.NodeHardware {
	n := &api.NodeHardware{ObjectMeta: metav1.ObjectMeta{Name: "attic"}}
	n.Status.SoCTemperatureMilliC = &milliC
	for _, c := range conditions {
		n.Status.Conditions = append(n.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue})
	}
	return n
}

// TestBoardHistory reports for some hours, and reads an hour of it.
func TestBoardHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h boardHistory
		if _, err := h.read(t.Context(), "attic"); !apierrors.IsNotFound(err) {
			t.Errorf("of nobody: %v", err)
		}
		h.note(said(40_000), false)
		time.Sleep(3 * time.Hour)
		h.note(said(50_000, "Throttled", "Hot"), false)
		time.Sleep(10 * time.Minute)
		got, err := h.read(t.Context(), "attic")
		if err != nil || len(got.Samples) != 2 || *got.Samples[0].SoCTemperatureMilliC != 40_000 || got.Samples[1].AgeSeconds != 600 ||
			fmt.Sprint(got.Samples[1].Conditions) != "[Hot Throttled]" {
			t.Errorf("what held when the hour began: %+v, %v", got, err)
		}
		for i := range 1000 {
			time.Sleep(30 * time.Second)
			h.note(said(int64(i)), false)
		}
		got, err = h.read(t.Context(), "attic")
		if err != nil || len(got.Samples) != 122 || got.Samples[0].AgeSeconds < 3600 || got.Samples[1].AgeSeconds > 3600 {
			t.Errorf("%d samples, the oldest of %d s, %v", len(got.Samples), got.Samples[0].AgeSeconds, err)
		}
		for range 1000 {
			h.note(said(1), false)
		}
		if got, err = h.read(t.Context(), "attic"); err != nil || len(got.Samples) != boardReports {
			t.Errorf("%d samples of a flood, %v", len(got.Samples), err)
		}
		h.note(said(1), true)
		if _, err := h.read(t.Context(), "attic"); !apierrors.IsNotFound(err) {
			t.Errorf("of one who is gone: %v", err)
		}
	})
}
