package auth

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/server/api"
)

// NodeObjects are the Node objects, as far as joining needs them.
type NodeObjects interface {
	NodeExists(ctx context.Context, name string) (bool, error)
	// CreateNode makes a Node with this podCIDR; of one that exists it only takes
	// the mark of a revoked node.
	CreateNode(ctx context.Context, name, podCIDR string) error
	// MarkRevoked marks a Node, if there is one, as revoked at that time.
	MarkRevoked(ctx context.Context, name string, at time.Time) error
}

// Cluster is what every node is told of its cluster.
type Cluster struct{ Epoch, ClusterCIDR, ServiceCIDR string }

// Enrolment serves joining, renewal and the making of join tokens over HTTP. All
// fields are required but OnReplaced.
type Enrolment struct {
	CA            *Authority
	Clock         *Clock
	Tokens        *Tokens
	Keys          *NodeKeys
	Authenticator *Authenticator
	Nodes         NodeObjects
	Cluster       Cluster
	Log           *slog.Logger
	// OnReplaced is told that a node's name has another key from now on, or none:
	// what is connected by the old one must end.
	OnReplaced func(node string)
	// NodeLife is how long a node's certificate is valid; 0: a year.
	NodeLife time.Duration
}

// Join serves api.JoinPath: a certificate for a token. It needs no other
// authentication.
func (e *Enrolment) Join(w http.ResponseWriter, r *http.Request) {
	serve(w, r, e.Log, func(in api.JoinRequest) (any, int, error) {
		bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			return nil, 0, apierrors.NewUnauthorized("joining needs a join token; " + wayOut)
		}
		out, err := e.join(r.Context(), strings.TrimSpace(bearer), in)
		return out, http.StatusOK, err
	})
}

func (e *Enrolment) join(ctx context.Context, bearer string, in api.JoinRequest) (*api.JoinResponse, error) {
	// The cheap check first; who has no token shall not learn which names exist.
	if err := e.Tokens.check(bearer, tokenUse{Node: in.NodeName}); err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	if err := checkNodeName(in.NodeName); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	req, err := parseNodeRequest(in.CSR)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if req.name != in.NodeName {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("csr: it is for node %q, nodeName is %q", req.name, in.NodeName))
	}
	use := tokenUse{Node: req.name, Key: req.key}
	made, err := e.Tokens.made(bearer, use)
	if err != nil {
		return nil, err
	}
	if err := e.Keys.mayClaim(req.name, req.key, made, e.gone(ctx)); err != nil {
		return nil, taken(req.name, err)
	}
	if err := e.Tokens.use(ctx, bearer, use); err != nil {
		return nil, err
	}
	podCIDR, replaced, err := e.Keys.claim(ctx, req.name, req.key, made, e.gone(ctx))
	if err != nil {
		return nil, taken(req.name, err)
	}
	if replaced && e.OnReplaced != nil {
		e.OnReplaced(req.name)
	}
	if err := e.Nodes.CreateNode(ctx, req.name, podCIDR); err != nil {
		return nil, fmt.Errorf("cannot create node %s: %w", req.name, err)
	}
	e.Log.Info("node joined", "node", req.name, "podCIDR", podCIDR)
	return e.answer(req.name, podCIDR, req.public)
}

// gone says whether a node's name is free to be taken by another key. When that
// cannot be known, it is not.
func (e *Enrolment) gone(ctx context.Context) func(string) bool {
	return func(name string) bool {
		exists, err := e.Nodes.NodeExists(ctx, name)
		return err == nil && !exists
	}
}

func taken(name string, err error) error {
	nodes := schema.GroupResource{Resource: "nodes"}
	switch {
	case errors.Is(err, errKeyRevoked):
		refusal := apierrors.NewConflict(nodes, name, fmt.Errorf("%w: join with another key", err))
		refusal.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: api.CauseKeyRevoked, Message: err.Error()}}
		return refusal
	case errors.Is(err, errOldToken):
		return apierrors.NewConflict(nodes, name, fmt.Errorf("%w; %s", err, wayOut))
	case errors.Is(err, errNameTaken), errors.Is(err, errRevoked):
		return apierrors.NewConflict(nodes, name, fmt.Errorf(
			"%w; join under another name (bramble-agent join --node-name NAME), or, if the old board is gone or was set up anew, "+
				"free the name first: edgectl delete node %s", err, name))
	case errors.Is(err, errNoCIDR):
		return apierrors.NewForbidden(nodes, name, fmt.Errorf(
			"%w; delete nodes that are gone, or start the server with a larger --cluster-cidr", err))
	}
	return err
}

// Renew serves api.RenewPath: a new certificate for the same key, by the present
// one, which may have expired.
func (e *Enrolment) Renew(w http.ResponseWriter, r *http.Request) {
	serve(w, r, e.Log, func(in api.RenewRequest) (any, int, error) {
		if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
			return nil, 0, apierrors.NewUnauthorized("renewal needs the node's present certificate, over a connection of its own")
		}
		id, err := e.Authenticator.identify(r.TLS.PeerCertificates)
		if err != nil {
			return nil, 0, apierrors.NewUnauthorized(err.Error())
		}
		out, err := e.renew(r.Context(), id, in)
		return out, http.StatusOK, err
	})
}

func (e *Enrolment) renew(ctx context.Context, id identity, in api.RenewRequest) (*api.JoinResponse, error) {
	node, ok := id.user.Node()
	if !ok {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", fmt.Errorf("%s is no node", id.user.Name))
	}
	req, err := parseNodeRequest(in.CSR)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if req.name != node || req.key != id.key {
		return nil, apierrors.NewBadRequest("csr: name and key must be those of the present certificate; for others, join again")
	}
	podCIDR, err := e.Keys.adopt(ctx, node)
	if err != nil {
		return nil, taken(node, err)
	}
	e.Log.Info("node certificate renewed", "node", node)
	return e.answer(node, podCIDR, req.public)
}

func (e *Enrolment) answer(node, podCIDR string, public crypto.PublicKey) (*api.JoinResponse, error) {
	now := e.Clock.Now()
	user := api.User{Name: api.NodeUserPrefix + node, Groups: []string{api.GroupNodes}}
	cert, err := e.CA.ClientCertificate(user, public, now.Add(e.nodeLife()))
	if err != nil {
		return nil, err
	}
	return &api.JoinResponse{
		NodeName:    node,
		Certificate: string(encodeCertificate(cert.Raw)),
		CA:          string(e.CA.PEM()),
		Epoch:       e.Cluster.Epoch,
		PodCIDR:     podCIDR,
		ClusterCIDR: e.Cluster.ClusterCIDR,
		ServiceCIDR: e.Cluster.ServiceCIDR,
		ServerTime:  now.Format(time.RFC3339),
	}, nil
}

// CreateToken serves api.TokensPath. Whoever may call it was decided before.
func (e *Enrolment) CreateToken(w http.ResponseWriter, r *http.Request) {
	serve(w, r, e.Log, func(in api.TokenRequest) (any, int, error) {
		if in.TTLSeconds < 0 || in.TTLSeconds > int64(maxTokenLife/time.Second) {
			return nil, 0, apierrors.NewBadRequest(fmt.Sprintf("ttlSeconds: must be from 1 to %d (30 days)", int64(maxTokenLife/time.Second)))
		}
		text, expires, err := e.Tokens.Create(r.Context(), time.Duration(in.TTLSeconds)*time.Second, in.Uses)
		if err != nil {
			return nil, 0, err
		}
		return &api.TokenResponse{Token: text, Expires: expires.Format(time.RFC3339)}, http.StatusCreated, nil
	})
}

func (e *Enrolment) nodeLife() time.Duration {
	if e.NodeLife > 0 {
		return e.NodeLife
	}
	return nodeLife
}
