// Package server is the whole API server put together: the only place where its
// parts meet. It opens the store and the authority, makes the registry of
// objects, its HTTP edge and the controllers, listens, and takes them down in
// the opposite order. cmd/bramble-server reads its configuration.
package server
