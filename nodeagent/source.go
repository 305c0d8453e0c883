package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bramble.dev/bramble/nodeagent/state"
)

const objectTimeout = 10 * time.Second

// objectServer is what the server does with pods' objects; *client.Client.
type objectServer interface {
	GetConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	GetSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// source gives pods their ConfigMaps and Secrets: the server's, which are then
// recorded, or the record's where the server is away, ails, or has another
// database than the one that this node knows.
type source struct {
	server    objectServer
	connected func() bool
	known     func() bool // the server's epoch is the one known
	record    *state.Record
	log       *slog.Logger
}

// ConfigMap follows pod.Source.
func (s *source) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return fetch(ctx, s, "ConfigMap", namespace, name, s.server.GetConfigMap, s.record.KeepConfigMap, s.record.ConfigMap)
}

// Secret follows pod.Source.
func (s *source) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return fetch(ctx, s, "Secret", namespace, name, s.server.GetSecret, s.record.KeepSecret, s.record.Secret)
}

func fetch[T any](ctx context.Context, s *source, kind, namespace, name string,
	get func(context.Context, string, string) (*T, error), keep func(*T) error, kept func(string, string) *T,
) (*T, error) {
	err := errors.New("the server is not in reach")
	if s.connected() {
		ctx, cancel := context.WithTimeout(ctx, objectTimeout)
		defer cancel()
		var object *T
		object, err = get(ctx, namespace, name)
		if err == nil {
			if err := keep(object); err != nil {
				s.log.Error("cannot record a pod's object", "kind", kind, "name", namespace+"/"+name, "err", err)
			}
			return object, nil
		}
	}
	if apierrors.IsNotFound(err) && s.known() {
		return nil, fmt.Errorf("cannot get %s %s/%s: %w", kind, namespace, name, err)
	}
	if object := kept(namespace, name); object != nil {
		return object, nil
	}
	return nil, fmt.Errorf("cannot get %s %s/%s, of which this node has no copy: %w", kind, namespace, name, err)
}
