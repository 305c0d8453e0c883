package rest

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/auth"
	"bramble.dev/bramble/server/objects"
)

// Authenticator says who makes a request. It returns false where the request
// carries no credentials, and an error where it carries bad ones: both are 401
// to the client, but for the paths that anybody may read.
type Authenticator interface {
	Authenticate(*http.Request) (api.User, bool, error)
}

// Authorizer says whether a user may do what Attributes describe, and why. The
// reason is shown to the client when it is not allowed.
type Authorizer interface {
	Authorize(ctx context.Context, a auth.Attributes) (allowed bool, reason string, err error)
}

// Nodes gives a way to the HTTP server of a node's agent. Transport may have to
// open it, for as long as ctx lasts, and fails when the node is not connected.
type Nodes interface {
	Transport(ctx context.Context, node string) (http.RoundTripper, error)
}

// Check is one line of /livez and /readyz. Run must be quick, and safe for
// concurrent use.
type Check struct {
	Name string
	Live bool // its failure can only be cured by a restart: asked by /livez too
	Run  func(context.Context) error
}

// Route is a handler outside the table of resources, at one exact path.
type Route struct {
	Path   string
	Public bool // without authentication and authorisation: the handler has its own
	// Verb is what a user must be allowed, where the method says too little; "": what
	// the method says.
	Verb    string
	Handler http.Handler
}

// Middleware wraps a handler. The request's user is in its context
// (api.UserFrom).
type Middleware func(http.Handler) http.Handler

// Slots are places in the chain; nil: empty, and for Impersonation rest's own.
type Slots struct {
	Audit, Impersonation Middleware
}

// Config is what a handler needs. Registry, Authenticator, Authorizer and Log
// are required.
type Config struct {
	Registry      *objects.Registry
	Authenticator Authenticator
	Authorizer    Authorizer
	Nodes         Nodes // nil: no node is ever connected
	Epoch         string
	Follows       func() []string // the epochs for api.HeaderFollows; nil: none
	Version       string          // of Bramble, without "v"
	Checks        []Check
	Routes        []Route
	Metrics       *prometheus.Registry // nil: one of its own
	Slots         Slots
	Limits        Limits // of each user
	Log           *slog.Logger

	Now          func() time.Time     // nil: time.Now
	ServerTime   func() time.Time     // the time that answers carry as their Date, which nodes trust; nil: Now
	WatchTimeout func() time.Duration // for watches that name none; nil: 30 to 60 minutes
}

func (c *Config) setDefaults() {
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Follows == nil {
		c.Follows = func() []string { return nil }
	}
	if c.ServerTime == nil {
		c.ServerTime = c.Now
	}
	if c.WatchTimeout == nil {
		c.WatchTimeout = randomWatchTimeout
	}
}
