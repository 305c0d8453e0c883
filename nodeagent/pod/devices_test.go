package pod_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/pod"
)

// adapter is the node's one device, which is at a path, or "gone".
type adapter struct {
	mu    sync.Mutex
	path  string
	owner string
}

func (a *adapter) device() container.Device {
	return container.Device{
		Resource: "edge.bramble.dev/serial", Key: "edge.bramble.dev/serial.a", Class: "serial", Number: "188:0",
		Nodes: []container.Node{{Source: a.path, Target: a.path}},
	}
}

func (a *adapter) move(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.path = path
}

func (a *adapter) Allocate(_ context.Context, p *corev1.Pod, _ *corev1.Container) ([]container.Device, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owner != "" && a.owner != string(p.UID) {
		return nil, errors.New("none is left")
	}
	a.owner = string(p.UID)
	return []container.Device{a.device(), a.device()}, nil
}

func (a *adapter) Look(given []container.Device) (gone, moved []container.Device) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case len(given) == 0:
	case a.path == "gone":
		gone = given[:1]
	case given[0].Nodes[0].Target != a.path:
		moved = given[:1]
	}
	return gone, moved
}

func (a *adapter) Release(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owner == uid {
		a.owner = ""
	}
}

func (n *node) count(reason string) (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.events {
		if strings.HasPrefix(e, reason) {
			count++
		}
	}
	return count
}

func TestDevicesAreGivenAndFollowed(t *testing.T) {
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyNever} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, n, a := newEngine(), newNode(), &adapter{path: "/dev/ttyUSB0", owner: "another"}
				w, stop := agentOn(t, e, e, n, func(cfg *pod.Config) { cfg.Devices = a })
				defer stop()
				w.Set(wanted(restart(policy)))
				synctest.Wait()
				if st := n.last(uid); st.ContainerStatuses[0].State.Waiting == nil || st.ContainerStatuses[0].State.Waiting.Reason != "CreateContainerConfigError" || n.count("DeviceUnavailable: none is left") != 1 {
					t.Errorf("without a device: %+v, events %q", st.ContainerStatuses, n.events)
				}
				a.Release("another")
				time.Sleep(11 * time.Second)
				synctest.Wait()
				if len(e.starts["main"]) != 1 {
					t.Fatalf("with a device: started %d times, events %q", len(e.starts["main"]), n.events)
				}
				want := []container.Env{{Name: "BRAMBLE_SERIAL", Value: "/dev/ttyUSB0,/dev/ttyUSB0"}}
				if diff := cmp.Diff(want, e.last.Env); diff != "" || len(e.last.Devices) != 2 {
					t.Errorf("it is given %v: %s", e.last.Devices, diff)
				}
				look := func(path string, starts, gone, moved int) {
					t.Helper()
					a.move(path)
					for range 3 {
						w.Nudge(uid)
						time.Sleep(time.Minute)
						synctest.Wait()
					}
					if len(e.starts["main"]) != starts || n.count("DeviceGone") != gone || n.count("DeviceMoved") != moved {
						t.Errorf("at %s: started %d times, events %q", path, len(e.starts["main"]), n.events)
					}
				}
				starts := 1
				if policy == corev1.RestartPolicyAlways {
					starts = 2
				}
				look("gone", 1, 1, 0)
				look("/dev/ttyUSB0", 1, 1, 0)
				look("/dev/ttyUSB1", starts, 1, 1)
				w.Set(wanted(restart(policy), deleted(1)))
				synctest.Wait()
				time.Sleep(time.Minute)
				if a.owner != "" {
					t.Errorf("the pod is gone, and %s has the device", a.owner)
				}
			})
		})
	}
}
