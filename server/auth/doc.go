// Package auth says who makes a request and what they may do.
//
// It keeps the cluster's certificate authority and issues from it: the server's
// certificate, the administrator's, and, by join tokens and renewal, those of
// nodes. The Authenticator turns a verified client certificate into a user; the
// Authorizer knows administrators and nodes (RBAC comes later, beside it); the
// NodeRestriction is the part of a node's limits that depends on what it writes.
//
// Package server wires it to the store and the registry through the interfaces
// declared here.
package auth
