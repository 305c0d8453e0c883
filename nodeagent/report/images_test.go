package report_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/report"
)

func TestNodeStatusNamesTheLargestImages(t *testing.T) {
	stored := []container.StoredImage{
		{Tags: []string{"docker.io/library/small:1"}, SizeBytes: 1},
		{Tags: []string{"t2", "t1", "t3", "t4"}, Digests: []string{"d3", "d1", "d2", "d4"}, SizeBytes: 3},
		{Digests: []string{"d@1", "d@2", "d@3", "d@4", "d@5", "d@6"}, SizeBytes: 2},
	}
	want := []corev1.ContainerImage{
		{Names: []string{"d1", "d2", "t1", "t2", "t3"}, SizeBytes: 3},
		{Names: []string{"d@1", "d@2", "d@3", "d@4", "d@5"}, SizeBytes: 2},
		{Names: []string{"docker.io/library/small:1"}, SizeBytes: 1},
	}
	if diff := cmp.Diff(want, report.NodeImages(stored)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	slices.Reverse(stored)
	if diff := cmp.Diff(want, report.NodeImages(stored)); diff != "" {
		t.Errorf("in another order (-want +got):\n%s", diff)
	}
	for i := range 60 {
		stored = append(stored, container.StoredImage{Tags: []string{fmt.Sprint("i", i)}, SizeBytes: int64(100 + i)})
	}
	if got := report.NodeImages(stored); len(got) != 50 || got[0].SizeBytes != 159 || got[49].SizeBytes != 110 {
		t.Errorf("of 63: %d, the first of %d bytes, the last of %d", len(got), got[0].SizeBytes, got[len(got)-1].SizeBytes)
	}
}
