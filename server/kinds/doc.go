// Package kinds is the table of resources: one file a kind says all that the
// generic handlers and the registry must know of it. Its rules are package
// admission's; here they are only put into their places, beside names,
// selectors and what `get` prints, which is what Kubernetes prints.
package kinds
