package client

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// WatchPods keeps store equal to the node's pods on the server and blocks until
// ctx ends. Replace brings all of them, the first time and whenever the history
// was lost; errors are tried again with back-off. The store is called from one
// goroutine.
func (c *Client) WatchPods(ctx context.Context, node string, store cache.ReflectorStore) {
	selector := fields.OneTermEqualSelector("spec.nodeName", node).String()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.FieldSelector = selector
			list := &corev1.PodList{}
			err := c.core.Get().Resource("pods").VersionedParams(&opts, metav1.ParameterCodec).Do(ctx).Into(list)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector, opts.Watch = selector, true
			return c.core.Get().Resource("pods").VersionedParams(&opts, metav1.ParameterCodec).Watch(ctx)
		},
	}
	log := logr.FromSlogHandler(c.log.Handler())
	r := cache.NewReflectorWithOptions(lw, &corev1.Pod{}, store, cache.ReflectorOptions{Logger: &log, Name: "pods"})
	r.RunWithContext(ctx)
}
