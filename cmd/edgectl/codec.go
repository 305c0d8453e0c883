package main

import (
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// withCodec prepares a copy of config for calls of our own paths; errors come
// back as Kubernetes' Status.
func withCodec(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return c
}
