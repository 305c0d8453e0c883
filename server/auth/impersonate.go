package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/server/api"
)

// Headers by which a client acts as somebody else (--as and its kin).
const (
	headerAs      = "Impersonate-User"
	headerAsUID   = "Impersonate-Uid"
	headerAsGroup = "Impersonate-Group"
	headerAsExtra = "Impersonate-Extra-"
)

// Impersonate returns who the request's headers ask to act as, when user may do
// so: that is asked of decider by the verb "impersonate" on users, groups,
// serviceaccounts, uids and userextras, each for itself. asked is false when the
// headers name nobody. Errors are StatusErrors.
func Impersonate(ctx context.Context, decider Decider, user api.User, h http.Header) (as api.User, asked bool, err error) {
	as = api.User{Name: h.Get(headerAs), UID: h.Get(headerAsUID), Groups: slices.Clone(h.Values(headerAsGroup))}
	for key, values := range h {
		name, ok := cutFold(key, headerAsExtra)
		if !ok {
			continue
		}
		if unescaped, err := url.PathUnescape(name); err == nil {
			name = unescaped
		}
		if as.Extra == nil {
			as.Extra = make(map[string][]string)
		}
		as.Extra[strings.ToLower(name)] = values
	}
	if as.Name == "" {
		if as.UID != "" || len(as.Groups) > 0 || len(as.Extra) > 0 {
			return as, true, apierrors.NewBadRequest(fmt.Sprintf("requested %v without impersonating a user: name one (--as)", as))
		}
		return as, false, nil
	}
	if user.Name == api.UserAnonymous {
		return as, true, apierrors.NewForbidden(schema.GroupResource{Resource: "users"}, as.Name, errAnonymous)
	}
	for _, a := range impersonations(as) {
		a.User, a.Verb = user, "impersonate"
		ok, reason, err := decider.Authorize(ctx, a)
		if err != nil {
			return as, true, err
		}
		if !ok {
			return as, true, refuseImpersonation(a, reason)
		}
	}
	return completed(as), true, nil
}

// impersonations are the single rights that acting as somebody needs.
func impersonations(as api.User) []Attributes {
	var all []Attributes
	if namespace, name, ok := as.Account(); ok {
		all = append(all, Attributes{Version: "v1", Resource: "serviceaccounts", Namespace: namespace, Name: name})
	} else {
		all = append(all, Attributes{Version: "v1", Resource: "users", Name: as.Name})
	}
	for _, group := range as.Groups {
		all = append(all, Attributes{Version: "v1", Resource: "groups", Name: group})
	}
	const group = "authentication.k8s.io"
	if as.UID != "" {
		all = append(all, Attributes{Group: group, Version: "v1", Resource: "uids", Name: as.UID})
	}
	for key, values := range as.Extra {
		for _, value := range values {
			all = append(all, Attributes{Group: group, Version: "v1", Resource: "userextras", Subresource: key, Name: value})
		}
	}
	return all
}

// completed adds the groups that such a user always has.
func completed(as api.User) api.User {
	if namespace, name, ok := as.Account(); ok && len(as.Groups) == 0 {
		as.Groups = api.AccountUser(namespace, name, "").Groups
	}
	switch {
	case as.Name == api.UserAnonymous:
		if !as.InGroup(api.GroupUnauthenticated) {
			as.Groups = append(as.Groups, api.GroupUnauthenticated)
		}
	case !as.InGroup(api.GroupAuthenticated) && !as.InGroup(api.GroupUnauthenticated):
		as.Groups = append(as.Groups, api.GroupAuthenticated)
	}
	return as
}

func refuseImpersonation(a Attributes, reason string) error {
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	where := "at the cluster scope"
	if a.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	text := fmt.Sprintf("User %q cannot impersonate resource %q in API group %q %s", a.User.Name, resource, a.Group, where)
	if reason != "" {
		text += ": " + reason
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name, errors.New(text))
}

// errAnonymous is that somebody without credentials wants to be somebody else.
var errAnonymous = errors.New("who has no credentials cannot act as somebody else")

func cutFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return "", false
	}
	return s[len(prefix):], true
}
