package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bramble.dev/bramble/server/api"
)

// Limits of service accounts' tokens.
const (
	defaultAccountTokenLife = time.Hour
	minAccountTokenLife     = 10 * time.Minute
	maxAccountTokenLife     = 365 * 24 * time.Hour
	maxAudiences            = 32
)

// Issuer is who issues service accounts' tokens and, where a token names no other,
// whom they are for: this API.
const Issuer = "https://kubernetes.default.svc"

// Keys of api.User.Extra, as in Kubernetes.
const (
	extraPodName    = "authentication.kubernetes.io/pod-name"
	extraPodUID     = "authentication.kubernetes.io/pod-uid"
	extraCredential = "authentication.kubernetes.io/credential-id"
)

// Living are the objects that a token depends on.
type Living interface {
	// Find returns an object of resource serviceaccounts, pods or secrets; its UID
	// is "" when there is none.
	Find(ctx context.Context, resource, namespace, name string) (Bound, error)
}

// Bound is an object that a token can be bound to.
type Bound struct {
	UID           types.UID
	Ending        bool   // it has a deletionTimestamp
	Node, Account string // of a pod
}

// accountClaims is the body of a token, as Kubernetes has it.
type accountClaims struct {
	Issuer     string   `json:"iss"`
	Subject    string   `json:"sub"`
	Audience   []string `json:"aud"`
	Expires    int64    `json:"exp"`
	IssuedAt   int64    `json:"iat"`
	NotBefore  int64    `json:"nbf"`
	ID         string   `json:"jti"`
	Kubernetes struct {
		Namespace string       `json:"namespace"`
		Account   boundObject  `json:"serviceaccount"`
		Pod       *boundObject `json:"pod,omitempty"`
		Secret    *boundObject `json:"secret,omitempty"`
	} `json:"kubernetes.io"`
}

type boundObject struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// AccountTokens makes and verifies tokens of service accounts. A token ends with
// its time (by the server's Clock), with its account, and with the pod or Secret
// that it is bound to. It is safe for concurrent use.
type AccountTokens struct {
	key    *TokenKey
	clock  *Clock
	living Living

	mu       sync.Mutex // protects verified
	verified map[[sha256.Size]byte]accountClaims
}

// NewAccountTokens returns the tokens that key signs.
func NewAccountTokens(key *TokenKey, clock *Clock, living Living) *AccountTokens {
	return &AccountTokens{key: key, clock: clock, living: living, verified: make(map[[sha256.Size]byte]accountClaims)}
}

// Create answers a TokenRequest for an account, and leaves req as it is. A node
// gets tokens only for pods that are bound to it. A refusal is a StatusError; any
// other error is Living's.
func (t *AccountTokens) Create(ctx context.Context, namespace, name string, req *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	req = req.DeepCopy()
	if errs := defaultTokenRequest(req); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: authenticationv1.GroupName, Kind: "TokenRequest"}, name, errs)
	}
	account, err := t.living.Find(ctx, "serviceaccounts", namespace, name)
	if err != nil {
		return nil, err
	}
	if account.UID == "" || account.Ending {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, name)
	}
	now := t.clock.Now()
	expires := now.Add(time.Duration(*req.Spec.ExpirationSeconds) * time.Second)
	claims := accountClaims{
		Issuer: Issuer, Subject: api.AccountUserPrefix + namespace + ":" + name, Audience: req.Spec.Audiences,
		Expires: expires.Unix(), IssuedAt: now.Unix(), NotBefore: now.Unix(), ID: randomHex(16),
	}
	claims.Kubernetes.Namespace = namespace
	claims.Kubernetes.Account = boundObject{name, account.UID}
	if err := t.bind(ctx, &claims, req); err != nil {
		return nil, err
	}
	token, err := t.key.sign(claims)
	if err != nil {
		return nil, err
	}
	req.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(expires.Truncate(time.Second))}
	req.Name, req.Namespace, req.CreationTimestamp = name, namespace, metav1.NewTime(now.Truncate(time.Second))
	return req, nil
}

// defaultTokenRequest fills in what is missing and returns what is wrong.
func defaultTokenRequest(req *authenticationv1.TokenRequest) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	if req.Spec.ExpirationSeconds == nil {
		seconds := int64(defaultAccountTokenLife / time.Second)
		req.Spec.ExpirationSeconds = &seconds
	}
	seconds := *req.Spec.ExpirationSeconds
	if seconds < int64(minAccountTokenLife/time.Second) {
		errs = append(errs, field.Invalid(spec.Child("expirationSeconds"), seconds, "may not specify a duration less than 10 minutes"))
	}
	if seconds > 1<<32 {
		errs = append(errs, field.Invalid(spec.Child("expirationSeconds"), seconds, "may not specify a duration larger than 2^32 seconds"))
	}
	if longest := int64(maxAccountTokenLife / time.Second); seconds > longest {
		req.Spec.ExpirationSeconds = &longest // shortened, as Kubernetes does; the status says it
	}
	if len(req.Spec.Audiences) == 0 {
		req.Spec.Audiences = []string{Issuer}
	}
	if len(req.Spec.Audiences) > maxAudiences {
		errs = append(errs, field.TooMany(spec.Child("audiences"), len(req.Spec.Audiences), maxAudiences))
	}
	for i, a := range req.Spec.Audiences {
		if a == "" {
			errs = append(errs, field.Required(spec.Child("audiences").Index(i), "name who the token is for, or leave audiences out"))
		}
	}
	if ref := req.Spec.BoundObjectRef; ref != nil {
		if ref.Kind != "Pod" && ref.Kind != "Secret" {
			errs = append(errs, field.NotSupported(spec.Child("boundObjectRef", "kind"), ref.Kind, []string{"Pod", "Secret"}))
		}
		if ref.APIVersion != "" && ref.APIVersion != "v1" {
			errs = append(errs, field.NotSupported(spec.Child("boundObjectRef", "apiVersion"), ref.APIVersion, []string{"v1"}))
		}
		if ref.Name == "" {
			errs = append(errs, field.Required(spec.Child("boundObjectRef", "name"), "name the object that the token is bound to"))
		}
	}
	return errs
}

// bind puts the object that req names into the claims.
func (t *AccountTokens) bind(ctx context.Context, claims *accountClaims, req *authenticationv1.TokenRequest) error {
	ref := req.Spec.BoundObjectRef
	user, _ := api.UserFrom(ctx)
	node, byNode := user.Node()
	if byNode && (ref == nil || ref.Kind != "Pod" || ref.UID == "") {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts/token"}, claims.Kubernetes.Account.Name,
			errors.New("a node gets only tokens that are bound to one of its pods, by name and uid"))
	}
	if ref == nil {
		return nil
	}
	resource := map[string]string{"Pod": "pods", "Secret": "secrets"}[ref.Kind]
	bound, err := t.living.Find(ctx, resource, claims.Kubernetes.Namespace, ref.Name)
	if err != nil {
		return err
	}
	gr := schema.GroupResource{Resource: resource}
	switch {
	case bound.UID == "":
		return apierrors.NewNotFound(gr, ref.Name)
	case ref.UID != "" && ref.UID != bound.UID:
		return apierrors.NewConflict(gr, ref.Name, fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
	case resource == "pods" && bound.Account != claims.Kubernetes.Account.Name:
		return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", claims.Kubernetes.Account.Name))
	case byNode && bound.Node != node:
		return apierrors.NewForbidden(gr, ref.Name, fmt.Errorf("the pod is not bound to node %s", node))
	}
	object := &boundObject{ref.Name, bound.UID}
	if resource == "pods" {
		claims.Kubernetes.Pod = object
	} else {
		claims.Kubernetes.Secret = object
	}
	return nil
}

// User says whose token this is, if it is for one of the audiences, and for which
// of them. It fails with an error that says why the token is not good, or with an
// InternalError when Living does not know.
func (t *AccountTokens) User(ctx context.Context, token string, audiences []string) (api.User, []string, error) {
	claims, err := t.claims(token)
	if err != nil {
		return api.User{}, nil, err
	}
	if !t.clock.Now().Before(time.Unix(claims.Expires, 0)) {
		return api.User{}, nil, fmt.Errorf("the token has expired at %s: get another (kubectl create token)", time.Unix(claims.Expires, 0).UTC().Format(time.RFC3339))
	}
	meant := slices.DeleteFunc(slices.Clone(audiences), func(a string) bool { return !slices.Contains(claims.Audience, a) })
	if len(meant) == 0 {
		return api.User{}, nil, fmt.Errorf("the token is for %q, not for %q", claims.Audience, audiences)
	}
	k := &claims.Kubernetes
	user := api.AccountUser(k.Namespace, k.Account.Name, string(k.Account.UID))
	user.Extra = map[string][]string{extraCredential: {"JTI=" + claims.ID}}
	for _, o := range []struct {
		resource string
		object   *boundObject
	}{{"serviceaccounts", &k.Account}, {"pods", k.Pod}, {"secrets", k.Secret}} {
		if o.object == nil {
			continue
		}
		alive, err := t.living.Find(ctx, o.resource, k.Namespace, o.object.Name)
		if err != nil {
			return api.User{}, nil, apierrors.NewInternalError(fmt.Errorf("cannot look up the token's %s: %w", o.resource, err))
		}
		if alive.UID != o.object.UID || alive.Ending && o.resource == "serviceaccounts" {
			return api.User{}, nil, fmt.Errorf("the token has ended with %s %s/%s", o.resource, k.Namespace, o.object.Name)
		}
	}
	if k.Pod != nil {
		user.Extra[extraPodName], user.Extra[extraPodUID] = []string{k.Pod.Name}, []string{string(k.Pod.UID)}
	}
	return user, meant, nil
}

// claims verifies a token, or remembers that it did.
func (t *AccountTokens) claims(token string) (accountClaims, error) {
	sum := sha256.Sum256([]byte(token))
	t.mu.Lock()
	claims, ok := t.verified[sum]
	t.mu.Unlock()
	if ok {
		return claims, nil
	}
	if err := t.key.verify(token, &claims); err != nil {
		return claims, err
	}
	if claims.Issuer != Issuer || claims.Kubernetes.Namespace == "" || claims.Kubernetes.Account.UID == "" {
		return claims, errNotOurs
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.verified) >= maxVerified {
		clear(t.verified)
	}
	t.verified[sum] = claims
	return claims, nil
}
