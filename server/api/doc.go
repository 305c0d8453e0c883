// Package api has the names and wire types that all parts of Bramble share:
// the group edge.bramble.dev, its kinds, the join protocol, and the user of a
// request. It is a leaf: it imports nothing of ours.
//
// +k8s:openapi-gen=true
package api
