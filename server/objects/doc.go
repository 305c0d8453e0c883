// Package objects gives Kubernetes' semantics to what server/store keeps:
// names, uids and generations, defaulting and validation by kind, optimistic
// locking, preconditions, graceful deletion, finalizers, selectors, watches,
// field managers, and the life of namespaces.
//
// Its Registry is the one write path: the REST handlers and the server's own
// controllers go through it, and so through admission. It is built from a table
// of kinds (package server/kinds). Objects are kept and handed out as encoded
// JSON; typed copies live only while a write is under way. It does not know
// HTTP.
package objects
