// Package hollow plays nodes that run nothing. Each joins with a token as an agent
// does, holds the agent's connections, renews its lease, reports its status and
// its pods' by the agent's own code and at its periods, and takes every pod that is
// bound to it for running at once. Many of them fit in one process: it is what
// tests and benchmarks of a large cluster use. It is no part of the product.
package hollow
