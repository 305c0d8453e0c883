package nodeagent

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// objects answers with one ConfigMap, or with an error.
type objects struct{ err error }

func (o *objects) GetConfigMap(_ context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	if o.err != nil {
		return nil, o.err
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, nil
}

func (o *objects) GetSecret(context.Context, string, string) (*corev1.Secret, error) {
	return nil, errors.New("not asked for")
}

// TestCopyServesWhileTheServerCannot: only the node's own cluster may say that
// an object is gone; whatever else is wrong with a server, the copy serves.
func TestCopyServesWhileTheServerCannot(t *testing.T) {
	b := newBed(t)
	p := podOf("a")
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}},
	}}}
	if err := b.Add(p); err != nil {
		t.Fatal(err)
	}
	server, connected := &objects{}, true
	s := &source{
		server: server, connected: func() bool { return connected }, known: func() bool { return b.known },
		record: b.record, log: slog.New(slog.DiscardHandler),
	}
	if _, err := s.ConfigMap(t.Context(), "default", "settings"); err != nil {
		t.Fatal(err)
	}
	configMaps := schema.GroupResource{Resource: "configmaps"}
	gone := apierrors.NewNotFound(configMaps, "settings")
	for _, c := range []struct {
		name      string
		err       error
		away      bool
		stranger  bool
		copyServe bool
	}{
		{name: "away", away: true, copyServe: true},
		{name: "deleted", err: gone},
		{name: "another database", err: gone, stranger: true, copyServe: true},
		{name: "refused", err: apierrors.NewForbidden(configMaps, "settings", errors.New("no pod of this node uses it")), stranger: true, copyServe: true},
		{name: "ailing", err: apierrors.NewInternalError(errors.New("disk")), copyServe: true},
		{name: "busy", err: apierrors.NewTooManyRequests("later", 1), copyServe: true},
		{name: "broken off", err: context.DeadlineExceeded, copyServe: true},
	} {
		server.err, connected, b.known = c.err, !c.away, !c.stranger
		object, err := s.ConfigMap(t.Context(), "default", "settings")
		if served := err == nil && object != nil; served != c.copyServe {
			t.Errorf("%s: served %v (%v), want %v", c.name, served, err, c.copyServe)
		}
	}
	server.err = gone
	if _, err := s.ConfigMap(t.Context(), "default", "other"); !apierrors.IsNotFound(err) {
		t.Errorf("an object that nobody has: %v, want NotFound", err)
	}
}
