package kubescheduler

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"bramble.dev/bramble/test/cluster"
)

// TestServer has each scheduler bind the same backlog of pods on one
// bramble-server: Bramble's within it, Kubernetes' as a client that nothing
// limits. All pods wait, tried once, for one other pod; what is measured is from
// that one's creation to the last binding that a watch tells. Processor time is the
// server's and, with Kubernetes' scheduler, that one's too.
func TestServer(t *testing.T) {
	const pods, rounds = 1000, 3
	for _, nodes := range []int{10, 100, 1000} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			s := cluster.StartServer(t, "--node-lease-timeout", "1h")
			client := s.Client()
			createNodes(t, client, nodes)
			var bramble, kubernetes []rate
			for range rounds {
				bramble = append(bramble, bind(t, client, corev1.DefaultSchedulerName, pods, s.PID()))
				other := startOther(t, s.Kubeconfig)
				kubernetes = append(kubernetes, bind(t, client, otherName, pods, s.PID(), other.Process.Pid))
				stopOther(t, other)
			}
			what := fmt.Sprintf("through the API, %d pods on %d nodes", pods, nodes)
			compare(what, nodes, bramble, kubernetes)
		})
	}
}

// bind makes pods for a scheduler that wait for another, makes that one, and deletes
// them when all are bound.
func bind(t *testing.T, client *kubernetes.Clientset, schedulerName string, count int, pids ...int) rate {
	t.Helper()
	api := client.CoreV1().Pods("default")
	pods := backlog(count, func(p *corev1.Pod, _ int) {
		p.Spec.SchedulerName = schedulerName
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term("first", siteLabel)},
		}}
	})
	first := newPod("first", "first")
	first.Spec.NodeName = newNode(0).Name
	cluster.Each(t, count, func(ctx context.Context, i int) error {
		_, err := api.Create(ctx, pods[i], metav1.CreateOptions{})
		return err
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	bound := cluster.WatchBound(ctx, t, client, count+1)
	settle(t, client, count, pids)
	before, began := used(t, pids), time.Now()
	if _, err := api.Create(ctx, first, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if seen := <-bound; seen != count+1 {
		t.Fatalf("%d of %d pods of %s were bound", seen, count+1, schedulerName)
	}
	took, cpu := time.Since(began), used(t, pids)-before
	pods = append(pods, first)
	cluster.Each(t, len(pods), func(ctx context.Context, i int) error {
		return api.Delete(ctx, pods[i].Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	})
	return rate{float64(count) / took.Seconds(), cpu / time.Duration(count)}
}

func createNodes(t *testing.T, client *kubernetes.Clientset, count int) {
	t.Helper()
	cluster.Each(t, count, func(ctx context.Context, i int) error {
		made := newNode(i)
		_, err := client.CoreV1().Nodes().Create(ctx, made, metav1.CreateOptions{})
		if err == nil { // of whatever version: the server taints it meanwhile
			_, err = client.CoreV1().Nodes().UpdateStatus(ctx, made, metav1.UpdateOptions{})
		}
		return err
	})
}

// startOther starts Kubernetes' scheduler and returns when it is ready.
func startOther(t *testing.T, kubeconfig string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), kubeconfigVariable+"="+kubeconfig)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("Kubernetes' scheduler does not start: %q, %v", line, err)
	}
	return cmd
}

func stopOther(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("Kubernetes' scheduler: %v", err)
	}
}

// settle waits until each pod was tried and may be tried again, and until the
// processes have nothing left to do from before.
func settle(t *testing.T, client *kubernetes.Clientset, count int, pids []int) {
	t.Helper()
	tick := time.NewTicker(2 * time.Second) // the back-off of one try is a second
	defer tick.Stop()
	for range 30 {
		before := used(t, pids)
		<-tick.C
		if used(t, pids)-before > 60*time.Millisecond {
			continue
		}
		list, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		tried := 0
		for i := range list.Items {
			for _, c := range list.Items[i].Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
					tried++
				}
			}
		}
		if tried == count && len(list.Items) == count {
			<-tick.C
			return
		}
	}
	t.Fatal("the pods do not come to rest in a minute")
}

// used is the processor time of processes (proc(5), stat).
func used(t *testing.T, pids []int) time.Duration {
	t.Helper()
	const tick = 10 * time.Millisecond // USER_HZ
	var sum time.Duration
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		for _, field := range fields[11:13] {
			ticks, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			sum += time.Duration(ticks) * tick
		}
	}
	return sum
}
