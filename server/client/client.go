// Package client is what a node's agent speaks to the server with: typed calls
// for the few kinds that a node touches, a reflector for its pods, and joining
// and renewal of its certificate.
//
// It is client-go's rest client and reflector on a trimmed scheme, at a fraction
// of a clientset's weight. Requests go through the connection that the caller
// dials, usually the tunnel's control connection. Errors of calls are
// apimachinery's StatusErrors where the server answered.
package client

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"bramble.dev/bramble/server/api"
)

// Config is what a Client may be told; all of it may be left out.
type Config struct {
	UserAgent string
	// OnEpoch is called with the epoch of the server's database, and with those
	// whose place it has taken, on the first response and whenever they differ
	// from the last, before the response is handed to the caller. It may be
	// called from several goroutines.
	OnEpoch func(epoch string, follows []string)
	Log     *slog.Logger
}

// Client makes requests to the API server. It is safe for concurrent use.
type Client struct {
	core, leases, own rest.Interface
	transport         *http.Transport
	epoch             *epochKeeper
	beats             heartbeat
	log               *slog.Logger
}

// New returns a Client whose connections come from dial (see
// tunnel.Dialer.DialContext). It makes no request.
func New(dial func(ctx context.Context, network, address string) (net.Conn, error), cfg Config) (*Client, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &Client{log: cfg.Log}
	c.transport = &http.Transport{
		DialContext:       dial,
		DisableKeepAlives: true, // a stream is cheap to open, and costs the server's memory while it is
	}
	c.epoch = &epochKeeper{next: c.transport, agent: cfg.UserAgent, onChange: cfg.OnEpoch}
	scheme := api.NewScheme()
	var err error
	if c.core, err = c.restClient(scheme, "/api", corev1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	if c.leases, err = c.restClient(scheme, "/apis", coordinationv1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	if c.own, err = c.restClient(scheme, "/apis", api.GroupVersion()); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Client) restClient(scheme *runtime.Scheme, path string, gv schema.GroupVersion) (rest.Interface, error) {
	config := &rest.Config{
		Host:    "http://" + api.ServerName,
		APIPath: path,
		ContentConfig: rest.ContentConfig{
			GroupVersion:         &gv,
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
			ContentType:          runtime.ContentTypeJSON,
		},
		QPS: -1, // the server protects itself
	}
	r, err := rest.RESTClientForConfigAndClient(config, &http.Client{Transport: c.epoch})
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for %s: %w", gv, err)
	}
	return r, nil
}

// Epoch is that of the last response, or empty before the first.
func (c *Client) Epoch() string { return c.epoch.last() }

// ServerTime is the server's time now, by its last response and the monotonic
// clock: no step of this machine's clock moves it. It is false before the first
// response.
func (c *Client) ServerTime() (time.Time, bool) { return c.epoch.now() }

// Close drops idle connections and the heartbeats.
func (c *Client) Close() {
	c.beats.close()
	c.transport.CloseIdleConnections()
}

// get, create, update and patch are the verbs for all kinds below. An empty
// namespace is that of cluster-scoped kinds.
func get[T any, P object[T]](ctx context.Context, c rest.Interface, resource, namespace, name string) (P, error) {
	out := P(new(T))
	err := c.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource).Name(name).Do(ctx).Into(out)
	return result(out, err)
}

func create[T any, P object[T]](ctx context.Context, c rest.Interface, resource string, obj P) (P, error) {
	out := P(new(T))
	ns := obj.GetNamespace()
	err := c.Post().NamespaceIfScoped(ns, ns != "").Resource(resource).Body(obj).Do(ctx).Into(out)
	return result(out, err)
}

func update[T any, P object[T]](ctx context.Context, c rest.Interface, resource, sub string, obj P) (P, error) {
	out := P(new(T))
	ns := obj.GetNamespace()
	err := c.Put().NamespaceIfScoped(ns, ns != "").Resource(resource).Name(obj.GetName()).SubResource(subresource(sub)...).
		Body(obj).Do(ctx).Into(out)
	return result(out, err)
}

func patch[T any, P object[T]](ctx context.Context, c rest.Interface, resource, sub, namespace, name string, p Patch) (P, error) {
	out := P(new(T))
	err := c.Patch(p.Type).NamespaceIfScoped(namespace, namespace != "").Resource(resource).Name(name).
		SubResource(subresource(sub)...).Body(p.Body).Do(ctx).Into(out)
	return result(out, err)
}

// object is a pointer to a typed Kubernetes object.
type object[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

func result[T any, P object[T]](out P, err error) (P, error) {
	if err != nil {
		return nil, err
	}
	return out, nil
}

func subresource(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}
