// Package admission has what happens to an object between its decoding and
// its storing: defaults, preparation (what a client may not set), validation
// of new objects and of changes, and warnings, for every kind that is served.
// Metadata, which all kinds have alike, is package objects' matter.
// The rules are Kubernetes' documented ones, less what Bramble does not do
// yet: podfields.go has that list for pods.
//
// All functions are pure: they touch only their arguments, do no I/O and ask
// no clock. Validation returns all errors at once, each with its field's path.
// Package kinds puts these functions into the table of resources.
package admission
