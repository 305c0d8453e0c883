// Package report tells the server what this node knows: its Node object and
// status, its Lease, its pods' statuses and their events. It writes on change
// only, but for the Lease; it retries with back-off while the server is away;
// and it never puts an older status over a newer one. It decides nothing about
// pods.
package report
