package api

import "context"

// User is who makes a request: the subject of a client certificate, with the
// organisation names as groups (RFC 5280; Kubernetes' x509 authentication).
type User struct {
	Name   string
	Groups []string
}

// Names that Kubernetes gives to its own users and groups.
const (
	GroupMasters        = "system:masters"
	GroupNodes          = "system:nodes"
	GroupAuthenticated  = "system:authenticated"
	NodeUserPrefix      = "system:node:"
	UserAnonymous       = "system:anonymous"
	NamespaceNodeLeases = "kube-node-lease"
)

// InGroup reports whether u is a member of group.
func (u User) InGroup(group string) bool {
	for _, g := range u.Groups {
		if g == group {
			return true
		}
	}
	return false
}

// Node returns the name of the node that u is, or false when u is no node.
func (u User) Node() (string, bool) {
	if len(u.Name) <= len(NodeUserPrefix) || u.Name[:len(NodeUserPrefix)] != NodeUserPrefix || !u.InGroup(GroupNodes) {
		return "", false
	}
	return u.Name[len(NodeUserPrefix):], true
}

type userKey struct{}

// WithUser returns a context that carries u.
func WithUser(ctx context.Context, u User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// UserFrom returns the user that ctx carries. The server's own controllers
// carry none and get false: they pass every authorisation check.
func UserFrom(ctx context.Context) (User, bool) {
	u, ok := ctx.Value(userKey{}).(User)
	return u, ok
}
