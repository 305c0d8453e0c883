// Package cluster makes what Bramble's tests and its demo run on: ordinary
// users with rootless Podman of their own, a small image, and real servers and
// agents as processes. It needs root, to make users; nothing it starts runs as
// root but the API server where a test says so. Every name carries a run id, so
// that two runs on one machine do not meet. It is no part of the product.
package cluster
