// Package state is the node's own record on disk: what it learnt when it
// joined, and of each of its pods what it needs to bring the pod back with no
// server in reach: the pod, its ConfigMaps and Secrets, its address and its
// failover policy. The agent alone reads and writes it.
//
// One file holds the node, one file each pod. A file is written when its
// content changes and never else, by rename, with fsync of the file and of its
// directory: after a power cut it is the old one or the new one. A file that
// cannot be read is set aside, never deleted, and the rest is used.
//
// Files are 0600 in directories of 0700. Secrets stand in them in plain text: a
// key on the same card would protect nothing.
package state
