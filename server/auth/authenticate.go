package auth

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bramble.dev/bramble/server/api"
)

// ErrExpired is that a certificate has expired. If it is a node's, it still
// serves to renew itself.
var ErrExpired = errors.New("the client certificate has expired")

// maxVerified bounds the memory of certificates that were verified.
const maxVerified = 1024

// Authenticator knows users by their client certificates, and service accounts by
// their tokens. TLS must have been told to ask for a certificate and not to verify
// it (tls.RequestClientCert): that is done here, by a Clock, so that a stranger
// gets a 401 and no broken handshake.
// It is safe for concurrent use.
type Authenticator struct {
	ca    *Authority
	clock *Clock
	keys  *NodeKeys
	// Tokens are those of service accounts; nil: none is good. Set it before use.
	Tokens *AccountTokens

	mu       sync.Mutex // protects verified
	verified map[[sha256.Size]byte]identity
}

// identity is what a certificate of ours says.
type identity struct {
	user    api.User
	key     string // hash of its public key
	expires time.Time
}

// NewAuthenticator returns an Authenticator for certificates of ca.
func NewAuthenticator(ca *Authority, clock *Clock, keys *NodeKeys) *Authenticator {
	return &Authenticator{ca: ca, clock: clock, keys: keys, verified: make(map[[sha256.Size]byte]identity)}
}

// Authenticate says who makes a request: the node of the tunnel that it came
// through, the owner of the connection's client certificate, or the service
// account of a bearer token. It returns false for a request without credentials
// and a 401 StatusError for bad ones.
func (a *Authenticator) Authenticate(r *http.Request) (api.User, bool, error) {
	if user, ok := api.UserFrom(r.Context()); ok {
		// The tunnel put it there; its node may have been revoked since.
		if node, ok := user.Node(); ok {
			if err := a.keys.Admits(node); err != nil {
				return api.User{}, false, apierrors.NewUnauthorized(endedNode(node, err).Error())
			}
		}
		return user, true, nil
	}
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return a.byToken(r)
	}
	user, err := a.User(r.TLS.PeerCertificates)
	if err != nil {
		return api.User{}, false, apierrors.NewUnauthorized(err.Error())
	}
	return user, true, nil
}

// byToken knows a service account by its bearer token (RFC 6750).
func (a *Authenticator) byToken(r *http.Request) (api.User, bool, error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return api.User{}, false, nil
	}
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") || a.Tokens == nil {
		return api.User{}, false, apierrors.NewUnauthorized("this server knows users by client certificates and by tokens of service accounts, not by passwords")
	}
	user, _, err := a.Tokens.User(r.Context(), strings.TrimSpace(token), []string{Issuer})
	switch {
	case apierrors.IsInternalError(err): // of this server: the client is to keep its token
		return api.User{}, false, err
	case err != nil:
		return api.User{}, false, apierrors.NewUnauthorized(err.Error())
	}
	return user, true, nil
}

func endedNode(node string, err error) error {
	return fmt.Errorf("the certificate of node %s is no longer good: %w; join again with a new token", node, err)
}

// User says who shows these certificates, the leaf first. It fails with
// ErrExpired, or another error that says what to do.
func (a *Authenticator) User(certs []*x509.Certificate) (api.User, error) {
	id, err := a.identify(certs)
	if err != nil {
		return api.User{}, err
	}
	if a.clock.Now().After(id.expires) {
		return api.User{}, fmt.Errorf("%w on %s: a node renews its own; an administrator takes the server's kubeconfig anew",
			ErrExpired, id.expires.Format(time.DateOnly))
	}
	return id.user, nil
}

// identify verifies all but the expiry.
func (a *Authenticator) identify(certs []*x509.Certificate) (identity, error) {
	leaf := certs[0]
	sum := sha256.Sum256(leaf.Raw)
	a.mu.Lock()
	id, ok := a.verified[sum]
	a.mu.Unlock()
	if !ok {
		if err := a.verify(leaf); err != nil {
			return identity{}, err
		}
		groups := append(slices.Clone(leaf.Subject.Organization), api.GroupAuthenticated)
		id = identity{
			user:    api.User{Name: leaf.Subject.CommonName, Groups: groups},
			key:     hashKey(leaf.RawSubjectPublicKeyInfo),
			expires: leaf.NotAfter,
		}
		a.remember(sum, id)
	}
	if node, ok := id.user.Node(); ok {
		if err := a.keys.check(node, id.key); err != nil {
			return identity{}, endedNode(node, err)
		}
	}
	return id, nil
}

// verify checks that the authority signed leaf for a client.
func (a *Authenticator) verify(leaf *x509.Certificate) error {
	roots := x509.NewCertPool()
	roots.AddCert(a.ca.cert)
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots:       roots,
		CurrentTime: leaf.NotBefore, // expiry is judged by the caller
		KeyUsages:   []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return fmt.Errorf("the client certificate of %q was not issued by this cluster: %w", leaf.Subject.CommonName, err)
	}
	if leaf.Subject.CommonName == "" {
		return errors.New("the client certificate names no user")
	}
	return nil
}

func (a *Authenticator) remember(sum [sha256.Size]byte, id identity) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.verified) >= maxVerified {
		clear(a.verified)
	}
	a.verified[sum] = id
}
