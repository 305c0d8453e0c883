package api

import (
	"context"
	"strings"
)

// User is who makes a request: the subject of a client certificate, with the
// organisation names as groups (RFC 5280; Kubernetes' x509 authentication).
//
// UID and Extra are known of service accounts and of whom somebody acts as;
// Extra of an account names its token and the pod that the token is bound to.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// Names that Kubernetes gives to its own users and groups.
const (
	GroupMasters         = "system:masters"
	GroupNodes           = "system:nodes"
	GroupAuthenticated   = "system:authenticated"
	GroupUnauthenticated = "system:unauthenticated"
	GroupAccounts        = "system:serviceaccounts"
	AccountUserPrefix    = "system:serviceaccount:"
	NodeUserPrefix       = "system:node:"
	UserAnonymous        = "system:anonymous"
	NamespaceNodeLeases  = "kube-node-lease"
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

// AccountUser is the service account of that namespace and name as a user.
func AccountUser(namespace, name, uid string) User {
	return User{
		Name: AccountUserPrefix + namespace + ":" + name, UID: uid,
		Groups: []string{GroupAccounts, GroupAccounts + ":" + namespace, GroupAuthenticated},
	}
}

// Account returns which service account u is, or false when u is none.
func (u User) Account() (namespace, name string, ok bool) { return AccountOf(u.Name) }

// AccountOf returns which service account has that user name.
func AccountOf(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, AccountUserPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != "" && !strings.Contains(name, ":")
}

type sessionKey struct{}

// WithSession returns ctx as that of a tunnel's session, for the requests that come by it.
func WithSession(ctx context.Context) context.Context {
	return context.WithValue(ctx, sessionKey{}, ctx)
}

// Session returns the context of the tunnel's session by which a request came, which
// goes on when the request's has ended; nil for a request that came otherwise.
func Session(ctx context.Context) context.Context {
	session, _ := ctx.Value(sessionKey{}).(context.Context)
	return session
}

type userKey struct{}

// WithUser returns a context that carries u.
func WithUser(ctx context.Context, u User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// WithoutUser returns a context whose writes are the server's own, though they
// come of a user's request.
func WithoutUser(ctx context.Context) context.Context {
	return context.WithValue(ctx, userKey{}, nil)
}

// UserFrom returns the user that ctx carries. The server's own controllers
// carry none and get false: they pass every authorisation check.
func UserFrom(ctx context.Context) (User, bool) {
	u, ok := ctx.Value(userKey{}).(User)
	return u, ok
}
