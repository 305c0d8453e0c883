// Package nodeagent wires a node's agent together: the local record, Podman,
// the network process, the pods' workers, the tunnel to the server and what is
// reported through it. Its siblings never import one another; they meet here.
//
// The order of a start: the record, Podman's service, the network process, and
// then the pods, from the server's list if it comes soon and else from the
// record, so that a node with no server in reach brings its pods back alone.
package nodeagent
