package kubescheduler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// zones is how many zones the nodes are in; they are all of one site.
const (
	zones     = 10
	siteLabel = "example.org/site"
)

func newNode(i int) *corev1.Node {
	has := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("1000"),
	}
	name := fmt.Sprintf("node-%04d", i)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%zones), siteLabel: "one",
		}},
		Status: corev1.NodeStatus{
			Capacity: has, Allocatable: has,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
		},
	}
}

// newPod is a pod app=APP with requests, which every scheduler may place.
func newPod(name, app string) *corev1.Pod {
	zero := int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			SchedulerName: corev1.DefaultSchedulerName, TerminationGracePeriodSeconds: &zero,
			Containers: []corev1.Container{{
				Name: "c", Image: "localhost/bench:1",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
				}},
			}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// placedPods are pods of 50 apps, evenly on the nodes; each tenth keeps away from
// its own app's.
func placedPods(count, nodes int) []*corev1.Pod {
	all := make([]*corev1.Pod, count)
	for i := range all {
		app := fmt.Sprintf("web%d", i%50)
		p := newPod(fmt.Sprintf("old-%05d", i), app)
		p.Spec.NodeName = fmt.Sprintf("node-%04d", i%nodes)
		p.Status.Phase = corev1.PodRunning
		if i%10 == 0 {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(app, corev1.LabelHostname)},
			}}
		}
		all[i] = p
	}
	return all
}

func term(app, key string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: selects(app)}
}

func selects(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

// kinds of pods that are to be placed, by what they ask for.
var kinds = []struct {
	name   string
	change func(p *corev1.Pod, i int)
}{
	{"plain pods", func(*corev1.Pod, int) {}},
	{"pods near others, by zone", func(p *corev1.Pod, _ int) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term("web3", corev1.LabelTopologyZone)},
		}}
	}},
	{"pods away from their like, by node, in tens", func(p *corev1.Pod, i int) {
		app := fmt.Sprintf("tens%d", i/10)
		p.Labels["app"] = app
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(app, corev1.LabelHostname)},
		}}
	}},
	{"pods spread over zones", func(p *corev1.Pod, _ int) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selects("new"),
		}}
	}},
}

// backlog is pods that wait for a node.
func backlog(count int, change func(p *corev1.Pod, i int)) []*corev1.Pod {
	all := make([]*corev1.Pod, count)
	for i := range all {
		all[i] = newPod(fmt.Sprintf("new-%05d", i), "new")
		change(all[i], i)
	}
	return all
}
