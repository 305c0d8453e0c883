package kubescheduler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	kube "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// kubeconfigVariable makes this program Kubernetes' scheduler, as a process of its
// own whose processor time is nobody else's.
const kubeconfigVariable = "BRAMBLE_BENCH_KUBECONFIG"

// otherName is the schedulerName of the pods that are left to it.
const otherName = "kubernetes-scheduler"

func TestMain(m *testing.M) {
	kubeconfig := os.Getenv(kubeconfigVariable)
	if kubeconfig == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := runScheduler(ctx, kubeconfig); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// runScheduler runs Kubernetes' scheduler as its command does, without the
// election of a leader and without a limit on requests. It says "ready" when it
// knows the cluster.
func runScheduler(ctx context.Context, kubeconfig string) error {
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	c.QPS, c.ContentType, c.UserAgent = -1, "application/vnd.kubernetes.protobuf", otherName
	c.Wrap(answerUnserved)
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return err
	}
	forEvents, err := kubernetes.NewForConfig(rest.CopyConfig(c))
	if err != nil {
		return err
	}
	broadcaster := events.NewEventBroadcasterAdapterWithContext(ctx, forEvents)
	broadcaster.StartRecordingToSink(ctx.Done())
	defer broadcaster.Shutdown()
	informers := kube.NewInformerFactory(client, 0, nil)
	defaults, err := defaultProfile()
	if err != nil {
		return err
	}
	defaults.SchedulerName = otherName
	s, err := kube.New(ctx, client, informers, nil, profile.RecorderFactory(func(name string) events.EventRecorderLogger {
		return broadcaster.NewRecorder(name)
	}), kube.WithProfiles(defaults), kube.WithKubeConfig(c))
	if err != nil {
		return err
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := s.WaitForHandlersSync(ctx); err != nil {
		return err
	}
	fmt.Println("ready")
	s.Run(ctx)
	return nil
}
