package objects

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/server/store"
)

// GroupResource is the kind's group and plural.
func (k *Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Plural}
}

var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

func conflict(k *Kind, name string, why error) error {
	return apierrors.NewConflict(k.GroupResource(), name, why)
}

// readError turns the store's answer to a list or watch at rev into a Status.
func (r *Registry) readError(rev uint64, err error) error {
	switch {
	case errors.Is(err, store.ErrCompact):
		return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", rev, r.store.Revision()))
	case errors.Is(err, store.ErrFuture):
		e := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", rev, r.store.Revision()), 1)
		e.ErrStatus.Details.Causes = []metav1.StatusCause{{
			Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
		}}
		return e
	}
	return r.otherError(err)
}

// otherError is StoreError with the registry's log.
func (r *Registry) otherError(err error) error { return StoreError(r.config.Log, err) }

// StoreError is the Status for what the store says that no client can help; log gets the
// disk's errors.
func StoreError(log *slog.Logger, err error) error {
	switch {
	case errors.Is(err, store.ErrClosed):
		return apierrors.NewServiceUnavailable("the server is stopping: try again")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	log.Error("cannot use the store", "err", err)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		err = fmt.Errorf("%w: make room on the server's disk and try again; what is there can still be read", err)
	case errors.Is(err, syscall.EROFS):
		err = fmt.Errorf("%w: the server's disk takes no writes (see its kernel's log); what is there can still be read", err)
	}
	return apierrors.NewInternalError(fmt.Errorf("nothing was changed: %w", err))
}

// admissionError leaves a Status as it is and makes any other error a refusal.
func admissionError(k *Kind, name string, err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return apierrors.NewForbidden(k.GroupResource(), name, err)
}

func namespaceMissing(namespace string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace)
}

func namespaceEnding(k *Kind, namespace, name string) error {
	err := apierrors.NewForbidden(k.GroupResource(), name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", namespace),
		Field:   "metadata.namespace",
	})
	return err
}
