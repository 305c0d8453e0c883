package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/test/cluster"
)

// TestThreeNodes runs 30 pods with mixed requests and constraints on three nodes
// that are hosts of their own: all run, each where it may, no node is given more
// than it has; and when they are deleted nothing of them is left anywhere.
func TestThreeNodes(t *testing.T) {
	t.Parallel()
	hosts := cluster.NewHosts(t)
	s := cluster.StartServerOn(t, hosts)
	nodes := map[string]*cluster.Node{}
	for _, name := range []string{"bow", "mast", "stern"} {
		nodes[name] = s.StartNodeOn(t, name, hosts.Add())
	}
	s.Must("label", "node", "mast", "antenna=yes")
	client := s.Client()
	for i := range 30 {
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), mixedPod(i), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	cluster.Eventually(t, 3*time.Minute, func() string {
		list, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase!=Running"})
		if err != nil || len(list.Items) > 0 {
			return fmt.Sprintf("%d pods do not run: %v", len(list.Items), err)
		}
		return ""
	})
	checkPlaces(t, s)

	s.Must("delete", "pods", "--all", "--wait=false")
	cluster.Eventually(t, 2*time.Minute, func() string {
		list, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) > 0 {
			return fmt.Sprintf("%d pods are left: %v", len(list.Items), err)
		}
		for name, n := range nodes {
			if left := remains(t, n); left != "" {
				return name + ": " + left
			}
		}
		return ""
	})
}

// mixedPod is the i-th of pods with different requests and constraints.
func mixedPod(i int) *corev1.Pod {
	grace := int64(0)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%02d", i), Labels: map[string]string{"group": fmt.Sprint(i % 5)}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Volumes:                       []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			Containers: []corev1.Container{{
				Name: "c", Image: cluster.TestImage, Command: []string{"sleep", "1000000"},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(20+10*(i%7)), resource.DecimalSI),
					corev1.ResourceMemory: *resource.NewQuantity(int64(8+i%9)<<20, resource.BinarySI),
				}},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			}},
		},
	}
	group := &metav1.LabelSelector{MatchLabels: map[string]string{"group": fmt.Sprint(i % 5)}}
	switch i % 5 {
	case 0:
		p.Spec.NodeSelector = map[string]string{"antenna": "yes"}
	case 1:
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: group,
		}}
	case 2:
		p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
			ProbeHandler:     corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}},
			TimeoutSeconds:   20,
			PeriodSeconds:    60,
			FailureThreshold: 3,
		}
	case 3:
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{LabelSelector: group, TopologyKey: corev1.LabelHostname},
		}}}
	}
	if i < 3 { // one of them on each node
		p.Labels["lonely"] = "yes"
		p.Spec.NodeSelector, p.Spec.TopologySpreadConstraints = nil, nil
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"lonely": "yes"}}, TopologyKey: corev1.LabelHostname},
		}}}
	}
	return p
}

// checkPlaces holds the pods' places against what mixedPod asks, and the nodes'
// sums against what they have.
func checkPlaces(t *testing.T, s *cluster.Server) {
	t.Helper()
	pods, err := s.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := s.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]corev1.ResourceList{}
	count := map[string]map[string]int{} // by group or "lonely", by node
	addresses := map[string]string{}
	for _, p := range pods.Items {
		node, group := p.Spec.NodeName, p.Labels["group"]
		if p.Labels["lonely"] != "" {
			group = "lonely"
		}
		if count[group] == nil {
			count[group] = map[string]int{}
		}
		count[group][node]++
		if requests[node] == nil {
			requests[node] = corev1.ResourceList{}
		}
		for name, quantity := range p.Spec.Containers[0].Resources.Requests {
			sum := requests[node][name]
			sum.Add(quantity)
			requests[node][name] = sum
		}
		if other := addresses[p.Status.PodIP]; other != "" || p.Status.PodIP == "" {
			t.Errorf("pods %s and %s have the address %q", p.Name, other, p.Status.PodIP)
		}
		addresses[p.Status.PodIP] = p.Name
	}
	for _, n := range nodes.Items {
		for name, sum := range requests[n.Name] {
			if has := n.Status.Allocatable[name]; sum.Cmp(has) > 0 {
				t.Errorf("node %s was given %s of %s, and has %s", n.Name, sum.String(), name, has.String())
			}
		}
	}
	if len(count["0"]) != 1 || count["0"]["mast"] == 0 {
		t.Errorf("pods for the node with the antenna are on %v", count["0"])
	}
	if len(count["lonely"]) != 3 {
		t.Errorf("pods that shun each other are on %v", count["lonely"])
	}
	if len(count["3"]) != 1 {
		t.Errorf("pods that seek each other are on %v", count["3"])
	}
	low, high := 100, 0
	for _, n := range nodes.Items {
		low, high = min(low, count["1"][n.Name]), max(high, count["1"][n.Name])
	}
	if high-low > 2 { // 1, and the lonely one of the group, which counts too
		t.Errorf("pods to be spread are on %v", count["1"])
	}
}

// remains says what a node still has of pods; "" is nothing.
func remains(t *testing.T, n *cluster.Node) string {
	t.Helper()
	for _, args := range [][]string{{"ps", "-a", "--format", "{{.Names}}"}, {"pod", "ps", "--format", "{{.Name}}"}, {"volume", "ls", "-q"}} {
		out, err := n.Podman(t.Context(), args...)
		if err != nil || strings.TrimSpace(out) != "" {
			return fmt.Sprintf("podman %v: %s (%v)", args, out, err)
		}
	}
	for _, pattern := range []string{
		filepath.Join(n.StateDir(), "pods", "*"), filepath.Join(n.StateDir(), "volumes", "*"),
		filepath.Join(n.RuntimeDir, "bramble", "pods", "*"), filepath.Join(n.RuntimeDir, "bramble", "volumes", "*"),
		filepath.Join(n.RuntimeDir, "bramble", "netns", "pods", "*"),
		filepath.Join(n.StateDir(), "fetching", "*"),
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) > 0 {
			return fmt.Sprintf("files: %v (%v)", files, err)
		}
	}
	temporary, err := os.ReadDir("/var/tmp")
	if err != nil {
		return err.Error()
	}
	for _, e := range temporary {
		info, err := e.Info()
		if err == nil && info.Sys().(*syscall.Stat_t).Uid == uint32(n.UID) {
			return "of the node's user there is /var/tmp/" + e.Name()
		}
	}
	return ""
}
