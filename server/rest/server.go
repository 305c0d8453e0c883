package rest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/server/objects"
	"bramble.dev/bramble/server/openapi"
)

// maxBody is the largest request body: Kubernetes' own limit.
const maxBody = 3 << 20

type server struct {
	cfg        Config
	routes     map[string]Route
	metrics    *metrics
	discovery  *discovery
	openapi    func() (*openapi.Set, error) // loads it once, for the first client that asks
	lanes      *lanes
	exposition http.Handler // of /metrics
}

// New returns the API's handler. It serves until its requests end; it starts no
// goroutine of its own. It fails when Config lacks something or two kinds or
// metrics collide.
func New(cfg Config) (http.Handler, error) {
	if cfg.Registry == nil || cfg.Authenticator == nil || cfg.Authorizer == nil || cfg.Log == nil {
		return nil, errors.New("cannot make the API handler: Registry, Authenticator, Authorizer and Log are needed")
	}
	cfg.setDefaults()
	s := &server{cfg: cfg, routes: make(map[string]Route), lanes: newLanes(cfg.Limits)}
	for _, route := range cfg.Routes {
		s.routes[route.Path] = route
	}
	known := make(map[string]bool)
	for _, k := range cfg.Registry.Kinds() {
		known[k.Plural] = true
	}
	s.exposition = promhttp.HandlerFor(cfg.Metrics, promhttp.HandlerOpts{})
	var err error
	if s.metrics, err = newMetrics(cfg.Metrics, known, cfg.Now); err != nil {
		return nil, fmt.Errorf("cannot register the API's metrics: %w", err)
	}
	if s.discovery, err = newDiscovery(cfg.Registry.Kinds()); err != nil {
		return nil, fmt.Errorf("cannot make the discovery documents: %w", err)
	}
	s.openapi = sync.OnceValues(openapi.Load)
	return s.chain(http.HandlerFunc(s.dispatch)), nil
}

// dispatch finds the handler of a request that may be served.
func (s *server) dispatch(w http.ResponseWriter, r *http.Request) {
	if route, ok := s.routes[r.URL.Path]; ok {
		route.Handler.ServeHTTP(w, r)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, bodyLimit(r))
	in := infoFrom(r.Context())
	var err error
	if in.IsResource {
		err = s.serveResource(w, r, in)
	} else {
		err = s.serveOther(w, r, in)
	}
	if err != nil {
		s.writeError(w, r, err)
	}
}

// serveOther serves what is no resource.
func (s *server) serveOther(w http.ResponseWriter, r *http.Request, in info) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return notFound(in)
	}
	switch path := strings.TrimSuffix(in.Path, "/"); {
	case path == "/version":
		return s.serveVersion(w)
	case path == "/livez", path == "/readyz", path == "/healthz":
		return s.serveHealth(w, r, path)
	case path == "/metrics":
		s.exposition.ServeHTTP(w, r)
		return nil
	case path == "/openapi/v2", path == "/openapi/v3", strings.HasPrefix(path, "/openapi/v3/"):
		return s.serveOpenAPI(w, r, path)
	default:
		return s.discovery.serve(w, r, in)
	}
}

// request is what the verb handlers work on.
type request struct {
	*http.Request
	info
	kind *objects.Kind
	sub  *objects.Subresource // nil: the object itself
}

// serveResource finds kind, subresource and verb.
func (s *server) serveResource(w http.ResponseWriter, r *http.Request, in info) error {
	kind, ok := s.cfg.Registry.Kind(in.Group, in.Resource)
	if !ok || kind.Version != in.Version && !slices.Contains(kind.AlsoVersions, in.Version) {
		return notFound(in)
	}
	if kind.Plural == "namespaces" && kind.Group == "" {
		in.Namespace = "" // Namespaces lie in none, though authorisation sees their own name
	}
	if !kind.Namespaced && in.Namespace != "" {
		return notFound(in)
	}
	req := &request{Request: r, info: in, kind: kind}
	if in.Subresource != "" {
		return s.serveSubresource(w, req)
	}
	if !serves(kind, in.Verb) || !req.fits() {
		return req.notSupported()
	}
	if kind.Answer != nil {
		return s.review(w, req)
	}
	switch in.Verb {
	case "get":
		return s.get(w, req)
	case "list":
		return s.list(w, req)
	case "watch":
		return s.watch(w, req)
	case "create":
		return s.create(w, req)
	case "update":
		return s.update(w, req)
	case "patch":
		return s.patch(w, req)
	case "delete":
		return s.delete(w, req)
	case "deletecollection":
		return s.deleteCollection(w, req)
	}
	return req.notSupported()
}

// fits reports whether the address is one for the verb: of an object or of a
// collection, and in a namespace where one is needed.
func (r *request) fits() bool {
	switch r.Verb {
	case "list", "watch":
		return r.Name == ""
	case "create", "deletecollection":
		return r.Name == "" && (r.Namespace != "" || !r.kind.Namespaced)
	}
	return r.Name != "" && (r.Namespace != "" || !r.kind.Namespaced)
}

// serveSubresource serves those that need code of their own, and the others
// by the generic verbs.
func (s *server) serveSubresource(w http.ResponseWriter, req *request) error {
	i := slices.IndexFunc(req.kind.Subresources, func(sub objects.Subresource) bool { return sub.Name == req.Subresource })
	if i < 0 || req.kind.Namespaced && req.Namespace == "" {
		return notFound(req.info)
	}
	req.sub = &req.kind.Subresources[i]
	if req.Tail != "" && req.sub.Name != "proxy" {
		return notFound(req.info)
	}
	if !slices.Contains(req.sub.Verbs, req.Verb) {
		return req.notSupported()
	}
	switch {
	case req.kind.Resource() == "pods" && req.sub.Name == "binding":
		return s.bind(w, req)
	case req.kind.Resource() == "pods" && req.sub.Name == "eviction":
		return s.evict(w, req)
	case req.kind.Resource() == "pods" && req.sub.Name == "log":
		return s.log(w, req)
	case req.kind.Resource() == "pods" && req.sub.Name == "exec":
		return s.exec(w, req)
	case req.kind.Resource() == "pods" && req.sub.Name == "attach":
		return s.attach(w, req)
	case req.kind.Resource() == "pods" && req.sub.Name == "portforward":
		return s.portForward(w, req)
	case req.kind.Resource() == "pods" && req.sub.Name == "proxy":
		return s.proxy(w, req)
	case req.kind.Resource() == "nodes" && req.sub.Name == "proxy":
		return s.nodeProxy(w, req)
	case req.sub.Answer != nil:
		return s.answerSubresource(w, req)
	case req.Verb == "get":
		return s.get(w, req)
	case req.Verb == "update":
		return s.update(w, req)
	case req.Verb == "patch":
		return s.patch(w, req)
	}
	return req.notSupported()
}

// genericVerbs are those of a kind that names none.
var genericVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

func verbsOf(k *objects.Kind) []string {
	switch {
	case k.Read != nil:
		return []string{"get"}
	case k.Answer != nil:
		return []string{"create"}
	case k.Verbs != nil:
		return k.Verbs
	}
	return genericVerbs
}

func serves(k *objects.Kind, verb string) bool { return slices.Contains(verbsOf(k), verb) }

func (r *request) resource() schema.GroupResource {
	return schema.GroupResource{Group: r.kind.Group, Resource: r.kind.Plural}
}

func (r *request) notSupported() error {
	return apierrors.NewMethodNotSupported(r.resource(), r.Verb)
}

// subresource is the registry's name for what is written.
func (r *request) subresource() string {
	if r.sub == nil {
		return ""
	}
	return r.sub.Name
}
