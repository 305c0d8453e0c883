package rest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/auth"
)

// chain puts the filters around h; read it from the bottom up, in the order in
// which a request passes them.
func (s *server) chain(h http.Handler) http.Handler {
	h = s.authorize(h)
	h = s.fairness(h)
	h = slot(h, orElse(s.cfg.Slots.Impersonation, s.impersonate))
	h = slot(h, s.cfg.Slots.Audit)
	h = s.authenticate(h)
	h = hurry(h)
	h = s.parse(h)
	h = s.catchPanics(h)
	h = s.identify(h)
	return h
}

func slot(h http.Handler, m Middleware) http.Handler {
	if m == nil {
		return h
	}
	return m(h)
}

func orElse(m, otherwise Middleware) Middleware {
	if m == nil {
		return otherwise
	}
	return m
}

type (
	requestIDKey struct{}
	infoKey      struct{}
)

func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

func infoFrom(ctx context.Context) info {
	in, _ := ctx.Value(infoKey{}).(info)
	return in
}

// identify gives each request an id (Kubernetes' Audit-Id), the epoch header,
// and a place in the metrics.
func (s *server) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var raw [16]byte
		_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
		id := hex.EncodeToString(raw[:])
		w.Header().Set("Audit-Id", id)
		w.Header().Set(api.HeaderEpoch, s.cfg.Epoch)
		if follows := s.cfg.Follows(); len(follows) > 0 {
			w.Header().Set(api.HeaderFollows, strings.Join(follows, ","))
		}
		w.Header().Set("Date", s.cfg.ServerTime().UTC().Format(http.TimeFormat))
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
		s.metrics.observe(next, w, r)
	})
}

// catchPanics answers 500 for a handler that panicked and keeps the server up.
func (s *server) catchPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p) // net/http's own way to drop a connection
			}
			s.writeError(w, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}()
		next.ServeHTTP(w, r)
	})
}

func (s *server) parse(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := parsePath(r.Method, r.URL.Path, truth(r.URL.Query(), "watch"))
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), infoKey{}, in)))
	})
}

// public are the paths that need no credentials, as in Kubernetes' role
// system:public-info-viewer.
var public = []string{"/version", "/livez", "/readyz", "/healthz"}

func (s *server) isPublic(path string) bool {
	if slices.Contains(public, path) {
		return true
	}
	route, ok := s.routes[path]
	return ok && route.Public
}

// authenticate puts the request's user into its context: system:anonymous for one
// without credentials.
func (s *server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, ok, err := s.cfg.Authenticator.Authenticate(r)
		if err != nil {
			s.cfg.Log.Debug("credentials refused", "path", r.URL.Path, "err", err)
		}
		switch {
		case err == nil && ok:
		case err == nil || s.isPublic(r.URL.Path):
			user = api.User{Name: api.UserAnonymous, Groups: []string{api.GroupUnauthenticated}}
		case apierrors.IsUnauthorized(err):
			s.writeError(w, r, err) // it says what is wrong with the credentials
			return
		default:
			s.writeError(w, r, apierrors.NewUnauthorized("Unauthorized"))
			return
		}
		next.ServeHTTP(w, r.WithContext(api.WithUser(r.Context(), user)))
	})
}

// impersonate serves requests as whom their headers name, if their user may be
// that user (kubectl's --as).
func (s *server) impersonate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _ := api.UserFrom(r.Context())
		as, asked, err := auth.Impersonate(r.Context(), s.cfg.Authorizer, user, r.Header)
		if err != nil {
			s.writeError(w, r, err)
			return
		}
		if asked {
			r = r.WithContext(api.WithUser(r.Context(), as))
		}
		next.ServeHTTP(w, r)
	})
}

// authorize asks the Authorizer about every request that is not public.
func (s *server) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.isPublic(r.URL.Path) {
			if err := s.allowed(r); err != nil {
				if user, _ := api.UserFrom(r.Context()); user.Name == api.UserAnonymous && r.Header.Get("Impersonate-User") == "" {
					err = apierrors.NewUnauthorized("Unauthorized") // credentials would help
				}
				s.writeError(w, r, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (s *server) allowed(r *http.Request) error {
	in := infoFrom(r.Context())
	if route := s.routes[r.URL.Path]; route.Verb != "" {
		in.Verb = route.Verb
	}
	return s.mayDo(r, in)
}

// mayDo asks the Authorizer about what in says, for the user of r.
func (s *server) mayDo(r *http.Request, in info) error {
	user, _ := api.UserFrom(r.Context())
	a := auth.Attributes{User: user, Verb: in.Verb}
	if in.IsResource {
		a.Group, a.Version, a.Namespace = in.Group, in.Version, in.Namespace
		a.Resource, a.Subresource, a.Name = in.Resource, in.Subresource, in.Name
		a.Fields = r.URL.Query().Get("fieldSelector")
		if a.Name == "" && (a.Verb == "list" || a.Verb == "watch") {
			a.Name = selectedName(a.Fields)
		}
	} else {
		a.Path = in.Path
	}
	ok, reason, err := s.cfg.Authorizer.Authorize(r.Context(), a)
	if err != nil {
		return fmt.Errorf("cannot authorise %s %s: %w", in.Verb, in.Path, err)
	}
	if ok {
		return nil
	}
	return forbidden(user, in, reason)
}

// selectedName is the one object that a field selector leaves of a list or watch,
// "" for none: a role's resourceNames hold for that, as in Kubernetes.
func selectedName(selector string) string {
	s, err := fields.ParseSelector(selector)
	if err != nil {
		return "" // the handler says so
	}
	name, _ := s.RequiresExactMatch("metadata.name")
	if len(content.IsPathSegmentName(name)) > 0 {
		return ""
	}
	return name
}

// forbidden says what was not allowed in Kubernetes' words.
func forbidden(user api.User, in info, reason string) error {
	what := fmt.Sprintf("User %q cannot %s path %q", user.Name, in.Verb, in.Path)
	if in.IsResource {
		resource := in.Resource
		if in.Subresource != "" {
			resource += "/" + in.Subresource
		}
		where := "at the cluster scope"
		if in.Namespace != "" {
			where = fmt.Sprintf("in the namespace %q", in.Namespace)
		}
		what = fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", user.Name, in.Verb, resource, in.Group, where)
	}
	if reason != "" {
		what += ": " + reason
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: in.Group, Resource: in.Resource}, in.Name, errors.New(what))
}

// truth reads a parameter as Kubernetes does: what is there is true, but for 0 and false.
func truth(q url.Values, name string) bool { return q.Has(name) && isTrue(q.Get(name)) }

func isTrue(s string) bool { return s != "0" && !strings.EqualFold(s, "false") }
