// Package pod brings each pod of this node to what is wanted of it. Plan
// compares what is desired with what the container engine has and returns the
// next steps; a worker a pod takes them, and repeats that until nothing is left
// to do. What is observed comes from the engine at every turn, so that an agent
// that was killed picks up where the engine stands.
//
// Plan, Status and what they call do no I/O. The package declares the few
// interfaces through which it reaches the engine, the network, the volumes and
// the server; package nodeagent connects them.
package pod
