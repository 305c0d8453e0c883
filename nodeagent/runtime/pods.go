package runtime

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/containers/podman/v5/pkg/specgen"

	"bramble.dev/bramble/nodeagent/container"
)

// Create makes the pod and starts its infra container; it succeeds when both
// are there already.
func (r *Runtime) Create(ctx context.Context, spec container.PodSpec) error {
	if err := r.ensurePause(ctx); err != nil {
		return fmt.Errorf("cannot create pod %s/%s: %w", spec.Namespace, spec.Name, err)
	}
	if err := r.createPod(ctx, spec); err != nil {
		return fmt.Errorf("cannot create pod %s/%s: %w", spec.Namespace, spec.Name, err)
	}
	return nil
}

func (r *Runtime) createPod(ctx context.Context, spec container.PodSpec) error {
	create := request{method: http.MethodPost, endpoint: "/pods/create", body: podSpec(spec)}
	err := r.call(ctx, create, nil)
	if err == nil {
		return r.startInfra(ctx, spec.UID)
	}
	if !isConflict(err) {
		r.forgetPause(err)
		return err
	}
	whole, err := r.hasInfra(ctx, spec.UID)
	if err != nil {
		return err
	}
	if whole {
		if err := r.startInfra(ctx, spec.UID); !notFound(err) && !isUnmountable(err) {
			return err
		}
	}
	// Somebody was killed between the pod and its infra container, or that one's
	// files are lost; Podman removes it with the pod only.
	if err := r.Remove(ctx, spec.UID); err != nil {
		return err
	}
	// Of a lost database the storage still has the name.
	if err := r.RemoveContainer(ctx, infraName(spec.UID)); err != nil {
		return err
	}
	if err := r.ensurePause(ctx); err != nil {
		return err
	}
	if err := r.call(ctx, create, nil); err != nil {
		return err
	}
	return r.startInfra(ctx, spec.UID)
}

// startInfra starts the infra container, not the pod: that would start the pod's
// other containers too, ended ones included.
func (r *Runtime) startInfra(ctx context.Context, uid string) error {
	err := r.start(ctx, infraName(uid))
	if isUnmountable(err) {
		r.forgetPause(err)
	}
	return err
}

// hasInfra says whether the pod knows its infra container. Podman makes that one
// first and notes it in the pod afterwards. If its service is killed in between,
// the infra container is there and can be started, and the pod refuses all others.
func (r *Runtime) hasInfra(ctx context.Context, uid string) (bool, error) {
	var pod struct{ InfraContainerID string }
	err := r.call(ctx, request{method: http.MethodGet, endpoint: "/pods/%s/json", path: []string{podName(uid)}}, &pod)
	if notFound(err) {
		return false, nil
	}
	return pod.InfraContainerID != "", err
}

func podSpec(spec container.PodSpec) *specgen.PodSpecGenerator {
	p := specgen.NewPodSpecGenerator()
	p.Name = podName(spec.UID)
	p.Hostname = spec.Hostname
	p.Labels = podLabels(spec) // Podman gives them to the infra container too
	p.InfraImage = pauseImage
	p.InfraName = infraName(spec.UID)
	p.InfraCommand = []string{pausePath}
	p.SharedNamespaces = []string{"ipc", "uts"}
	if spec.SharePID {
		p.SharedNamespaces = append(p.SharedNamespaces, "pid")
	}
	p.NetNS = specgen.Namespace{NSMode: specgen.NoNetwork}
	p.RestartPolicy = "no"
	return p
}

// Remove kills and removes all of the pod's containers and the pod. It succeeds
// when there is none.
func (r *Runtime) Remove(ctx context.Context, uid string) error {
	q := request{method: http.MethodDelete, endpoint: "/pods/%s", path: []string{podName(uid)},
		query: url.Values{"force": {"true"}, "timeout": {"0"}}}
	if err := r.call(ctx, q, nil); err != nil && !notFound(err) {
		return fmt.Errorf("cannot remove pod %s: %w", uid, err)
	}
	if err := r.endOrphans(ctx, clean(uid)); err != nil {
		return err
	}
	return r.removeMessages(uid)
}

// Halt ends the pod's infra container; its other containers stay as they are.
// It succeeds when there is none.
func (r *Runtime) Halt(ctx context.Context, uid string) error {
	if err := r.StopContainer(ctx, infraName(uid), 0); err != nil {
		return fmt.Errorf("cannot halt pod %s: %w", uid, err)
	}
	return nil
}

// Get returns the pod with this uid, or the zero Pod when there is none.
func (r *Runtime) Get(ctx context.Context, uid string) (container.Pod, error) {
	pods, _, err := r.list(ctx, uid)
	if err != nil {
		return container.Pod{}, fmt.Errorf("cannot look up pod %s: %w", uid, err)
	}
	if p, ok := pods[uid]; ok {
		return *p, nil
	}
	return container.Pod{}, nil
}

// List returns all of Bramble's pods, sorted by uid, each with its containers
// sorted by name and restarts. It ends what Podman has forgotten.
func (r *Runtime) List(ctx context.Context) ([]container.Pod, error) {
	if err := r.endOrphans(ctx, ""); err != nil {
		return nil, err
	}
	pods, ids, err := r.list(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("cannot list pods: %w", err)
	}
	r.forgetExits(ids)
	// Pods without an infra container, left by a kill, show up here only.
	var reports []struct {
		ID     string `json:"Id"`
		Labels map[string]string
	}
	q := request{method: http.MethodGet, endpoint: "/pods/json", query: filters("label", LabelPodUID)}
	if err := r.call(ctx, q, &reports); err != nil {
		return nil, fmt.Errorf("cannot list pods: %w", err)
	}
	for _, p := range reports {
		if uid := p.Labels[LabelPodUID]; pods[uid] == nil {
			pods[uid] = podOf(p.ID, p.Labels)
		}
	}
	all := make([]container.Pod, 0, len(pods))
	for _, p := range pods {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b container.Pod) int { return cmp.Compare(a.UID, b.UID) })
	return all, nil
}

// list returns one pod, or by "" all pods, that have containers, and those
// containers' ids.
func (r *Runtime) list(ctx context.Context, uid string) (map[string]*container.Pod, []string, error) {
	all, err := r.containers(ctx, uid)
	if err != nil {
		return nil, nil, err
	}
	pods := map[string]*container.Pod{}
	var ids []string
	for _, c := range all {
		ids = append(ids, c.ID)
		uid := c.Labels[LabelPodUID]
		p := pods[uid]
		if p == nil {
			p = podOf(c.Pod, c.Labels)
			pods[uid] = p
		}
		if c.IsInfra {
			p.Running = phase(c.State) == container.Running
			continue
		}
		state, err := r.state(ctx, c)
		if notFound(err) {
			continue // removed since it was listed
		}
		if err != nil {
			return nil, nil, err
		}
		p.Containers = append(p.Containers, state)
	}
	for _, p := range pods {
		slices.SortFunc(p.Containers, func(a, b container.State) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Restarts, b.Restarts))
		})
	}
	return pods, ids, nil
}

// containers is Podman's list of one pod's containers, or by "" of all pods',
// corrected where Podman has missed an end. What bears our labels and is in no pod
// is a person's: an image that was made by podman commit has the labels of the
// container that it was made from, and gives them to each that is run from it.
func (r *Runtime) containers(ctx context.Context, uid string) ([]listed, error) {
	label := LabelPodUID
	if uid != "" {
		label += "=" + uid
	}
	q := request{method: http.MethodGet, endpoint: "/containers/json", query: filters("label", label)}
	q.query.Set("all", "true")
	var all []listed
	if err := r.call(ctx, q, &all); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, listed.isPersons)
	again := false
	for _, c := range all {
		settled, err := r.settle(ctx, c)
		if err != nil {
			return nil, err
		}
		again = again || settled
	}
	if again {
		all = nil
		if err := r.call(ctx, q, &all); err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, listed.isPersons)
	}
	r.noteRunning(uid, all)
	return all, nil
}

func podOf(id string, labels map[string]string) *container.Pod {
	return &container.Pod{ID: id, UID: labels[LabelPodUID], Namespace: labels[LabelPodNamespace], Name: labels[LabelPodName]}
}
