package auth

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/server/api"
)

// Limits of users' certificates. They cannot be taken back, so they are short;
// what their user may do can be taken back at any time.
const (
	defaultUserLife = 30 * 24 * time.Hour
	minUserLife     = 10 * time.Minute
	maxUserLife     = 365 * 24 * time.Hour
	maxUserName     = 64 // of a certificate's common name (RFC 5280, ub-common-name)
	maxUserGroups   = 32
)

// userCertificate signs a certificate of a user. It is as good as acting as that
// user, so it needs that right: the verb impersonate on the user and each group.
func (e *Enrolment) userCertificate(ctx context.Context, decider Decider, in api.UserCertificateRequest) (*api.UserCertificateResponse, error) {
	csr, err := parseRequest(in.CSR)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	as := api.User{Name: csr.Subject.CommonName, Groups: csr.Subject.Organization}
	if err := checkUser(as); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	life, err := userLife(in.TTLSeconds)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	user, _ := api.UserFrom(ctx)
	for _, a := range impersonations(as) {
		a.User, a.Verb = user, "impersonate"
		ok, _, err := decider.Authorize(ctx, a)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, apierrors.NewForbidden(schema.GroupResource{Group: api.Group, Resource: "usercertificates"}, as.Name, fmt.Errorf(
				"user %q may not make a certificate of %s %q: that needs the verb impersonate on it", user.Name, a.Resource, a.Name))
		}
	}
	until := e.Clock.Now().Add(life)
	cert, err := e.CA.ClientCertificate(as, csr.PublicKey, until)
	if err != nil {
		return nil, err
	}
	e.Log.Info("user certificate made", "user", as.Name, "groups", as.Groups, "by", user.Name, "until", cert.NotAfter.Format(time.RFC3339))
	return &api.UserCertificateResponse{
		Certificate: string(encodeCertificate(cert.Raw)), CA: string(e.CA.PEM()), Expires: cert.NotAfter.Format(time.RFC3339),
	}, nil
}

// CreateUser returns the handler of api.UsersPath. Whoever may call it at all was
// decided before; decider says whose certificates they may make.
func (e *Enrolment) CreateUser(decider Decider) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		serve(w, r, e.Log, func(in api.UserCertificateRequest) (any, int, error) {
			out, err := e.userCertificate(r.Context(), decider, in)
			return out, http.StatusCreated, err
		})
	}
}

// parseRequest checks a certificate request (PEM, PKCS #10): signed by its own
// key, which is strong enough.
func parseRequest(text string) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("csr: no CERTIFICATE REQUEST in PEM")
	}
	if len(rest) > 0 {
		return nil, errors.New("csr: something follows the CERTIFICATE REQUEST")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = checkKey(csr.PublicKey)
	}
	if err == nil {
		err = csr.CheckSignature()
	}
	if err != nil {
		return nil, fmt.Errorf("csr: %w", err)
	}
	return csr, nil
}

// checkUser refuses names that are Kubernetes' own: nodes join, and accounts have
// tokens. An administrator may make others (system:masters).
func checkUser(u api.User) error {
	switch {
	case u.Name == "" || len(u.Name) > maxUserName:
		return fmt.Errorf("csr: the common name, which is the user's, must have 1 to %d bytes", maxUserName)
	case strings.HasPrefix(u.Name, "system:"):
		return errors.New("csr: user names that begin with \"system:\" are reserved; nodes join by a token, service accounts have tokens")
	case len(u.Groups) > maxUserGroups:
		return fmt.Errorf("csr: more than %d groups", maxUserGroups)
	}
	for i, g := range u.Groups {
		if g == "" || strings.HasPrefix(g, "system:") && g != api.GroupMasters || slices.Contains(u.Groups[:i], g) {
			return fmt.Errorf("csr: group %q is empty, twice there, or one of the reserved ones that begin with \"system:\" (but %s)", g, api.GroupMasters)
		}
	}
	return nil
}

func userLife(seconds int64) (time.Duration, error) {
	if seconds == 0 {
		return defaultUserLife, nil
	}
	if seconds < int64(minUserLife/time.Second) || seconds > int64(maxUserLife/time.Second) {
		return 0, fmt.Errorf("ttlSeconds: must be from %d (10 minutes) to %d (a year)", int64(minUserLife/time.Second), int64(maxUserLife/time.Second))
	}
	return time.Duration(seconds) * time.Second, nil
}
