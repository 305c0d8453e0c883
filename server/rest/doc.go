// Package rest is the HTTP edge of the server: Kubernetes' wire format over an
// objects.Registry. One set of handlers serves every kind of the registry's
// table, one HTTP verb a file; subresources that need more than that (binding,
// log, proxy, finalize) have files of their own.
//
// It decides nothing about objects: defaulting, validation and storage are the
// registry's. It does not listen either: whoever makes the http.Server sets its
// time limits, and gives requests their identity through an Authenticator.
//
// A request passes, in this order: metrics and request id, panics, parsing of
// the path, authentication, audit, impersonation, fairness, authorisation, and
// the verb's handler (see chain.go).
package rest
