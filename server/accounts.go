package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/objects"
)

// defaultAccount is the service account that each namespace has.
const defaultAccount = "default"

// accounts sees to service accounts: each namespace has one called default, and
// each pod one that exists.
type accounts struct {
	registry         *objects.Registry
	kind, namespaces *objects.Kind
}

// open gives a its kinds, which are made with what a is a part of.
func (a *accounts) open(registry *objects.Registry) error {
	if registry == nil {
		return nil // its own error is told
	}
	var ok, also bool
	a.registry = registry
	a.kind, ok = registry.Kind("", "serviceaccounts")
	a.namespaces, also = registry.Kind("", "namespaces")
	if !ok || !also {
		return errors.New("cannot do without the kinds serviceaccounts and namespaces")
	}
	return nil
}

// Admit completes a pod, and refuses one whose account does not exist. The
// default one is made on the spot where the controller has not come to it yet.
func (a *accounts) Admit(ctx context.Context, req objects.Request) error {
	pod, ok := req.Obj.(*corev1.Pod)
	if !ok || req.Subresource != "" {
		return nil
	}
	if old, ok := req.Old.(*corev1.Pod); ok && req.Verb == "update" {
		keepAccount(&pod.Spec, old.Spec)
	}
	if req.Verb != "create" {
		return nil
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = defaultAccount
	}
	pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	account, err := a.find(ctx, req.Namespace, pod.Spec.ServiceAccountName)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("error looking up service account %s/%s: %v; create it first (kubectl create serviceaccount %[2]s -n %[1]s), or leave serviceAccountName out",
			req.Namespace, pod.Spec.ServiceAccountName, err) // %v: its Status is not that of the request
	}
	if err != nil {
		return err
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, account.ImagePullSecrets...)
	}
	return nil
}

// keepAccount gives a pod that comes without them the account and the pull
// secrets that it was created with: neither can change, and the first apply by
// the server takes away what the client's own applies did not say.
func keepAccount(spec *corev1.PodSpec, old corev1.PodSpec) {
	if spec.ServiceAccountName == "" && spec.DeprecatedServiceAccount == "" {
		spec.ServiceAccountName, spec.DeprecatedServiceAccount = old.ServiceAccountName, old.DeprecatedServiceAccount
	}
	if len(spec.ImagePullSecrets) == 0 {
		spec.ImagePullSecrets = slices.Clone(old.ImagePullSecrets)
	}
}

func (a *accounts) find(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	stored, err := a.registry.Get(ctx, a.kind, namespace, name)
	if apierrors.IsNotFound(err) && name == defaultAccount {
		if err := a.create(ctx, namespace); err != nil {
			return nil, err
		}
		stored, err = a.registry.Get(ctx, a.kind, namespace, name)
	}
	if err != nil {
		return nil, err
	}
	obj, err := a.kind.Decode(stored.Body.Bytes())
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.ServiceAccount), nil
}

// create makes a namespace's default account. That the namespace is gone or
// ending is no error here; one that has it already is fine.
func (a *accounts) create(ctx context.Context, namespace string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: defaultAccount}}
	_, err := a.registry.Create(api.WithoutUser(ctx), a.kind, namespace, account, objects.WriteOptions{FieldManager: manager})
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

// run makes the default account of every namespace, also again when it was
// deleted, until ctx ends.
func (a *accounts) run(ctx context.Context) error {
	wanted := make(chan string, 64)
	want := func(namespace string) {
		select {
		case wanted <- namespace:
		case <-ctx.Done():
		}
	}
	var worker sync.WaitGroup
	defer worker.Wait()
	worker.Go(func() { // ends with ctx
		for {
			select {
			case <-ctx.Done():
				return
			case namespace := <-wanted:
				_ = a.create(ctx, namespace) // tried again by the next event, and by each pod
			}
		}
	})
	return followAll(ctx, func() {},
		&follower{registry: a.registry, kind: a.namespaces, tell: func(obj objects.Object, deleted bool) {
			if !deleted && obj.GetDeletionTimestamp() == nil {
				want(obj.GetName())
			}
		}},
		&follower{registry: a.registry, kind: a.kind, tell: func(obj objects.Object, deleted bool) {
			if deleted && obj.GetName() == defaultAccount {
				want(obj.GetNamespace())
			}
		}},
	)
}
