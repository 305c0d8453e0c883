package auth

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bramble.dev/bramble/server/api"
)

// Reviews answers who somebody is and what they may: the kinds of
// authorization.k8s.io and authentication.k8s.io. Who may ask was decided before.
type Reviews struct {
	Decider Decider
	Rules   *RBAC
	Tokens  *AccountTokens
}

// SelfSubject says who asks (`kubectl auth whoami`).
func (v *Reviews) SelfSubject(ctx context.Context, in *authenticationv1.SelfSubjectReview) (*authenticationv1.SelfSubjectReview, error) {
	user, _ := api.UserFrom(ctx)
	in.Status = authenticationv1.SelfSubjectReviewStatus{UserInfo: userInfo(user)}
	return in, nil
}

// SelfAccess says whether who asks may do something (`kubectl auth can-i`).
func (v *Reviews) SelfAccess(ctx context.Context, in *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error) {
	user, _ := api.UserFrom(ctx)
	a, errs := attributesOf(in.Spec.ResourceAttributes, in.Spec.NonResourceAttributes)
	if len(errs) > 0 {
		return nil, invalidReview("SelfSubjectAccessReview", errs)
	}
	a.User = user
	in.Status = v.status(ctx, a)
	return in, nil
}

// Access says whether a user may do something.
func (v *Reviews) Access(ctx context.Context, in *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error) {
	a, errs := subjectAttributes(&in.Spec)
	if len(errs) > 0 {
		return nil, invalidReview("SubjectAccessReview", errs)
	}
	in.Status = v.status(ctx, a)
	return in, nil
}

// LocalAccess says whether a user may do something in one namespace.
func (v *Reviews) LocalAccess(ctx context.Context, namespace string, in *authorizationv1.LocalSubjectAccessReview) (*authorizationv1.LocalSubjectAccessReview, error) {
	a, errs := subjectAttributes(&in.Spec)
	switch r := in.Spec.ResourceAttributes; {
	case in.Spec.NonResourceAttributes != nil:
		errs = append(errs, field.Invalid(field.NewPath("spec", "nonResourceAttributes"), in.Spec.NonResourceAttributes.Path, "disallowed on this kind of request"))
	case r != nil && r.Namespace != namespace:
		errs = append(errs, field.Invalid(field.NewPath("spec", "resourceAttributes", "namespace"), r.Namespace, "must match metadata.namespace"))
	}
	if len(errs) > 0 {
		return nil, invalidReview("LocalSubjectAccessReview", errs)
	}
	in.Status = v.status(ctx, a)
	return in, nil
}

// SelfRules lists what who asks may do in a namespace (`kubectl auth can-i --list`).
func (v *Reviews) SelfRules(ctx context.Context, in *authorizationv1.SelfSubjectRulesReview) (*authorizationv1.SelfSubjectRulesReview, error) {
	if in.Spec.Namespace == "" {
		return nil, apierrors.NewBadRequest("no namespace on request: give spec.namespace")
	}
	user, _ := api.UserFrom(ctx)
	rules, err := v.Rules.Rules(ctx, user, in.Spec.Namespace)
	in.Status = authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}}
	if err != nil {
		in.Status.Incomplete, in.Status.EvaluationError = true, err.Error()
	}
	if node, ok := user.Node(); ok {
		in.Status.Incomplete = true
		in.Status.EvaluationError = strings.TrimPrefix(in.Status.EvaluationError+"; ", "; ") +
			fmt.Sprintf("node %s may besides touch what is its own, which rules cannot say", node)
	}
	for _, r := range rules {
		if len(r.Resources) > 0 {
			in.Status.ResourceRules = append(in.Status.ResourceRules, authorizationv1.ResourceRule{
				Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames,
			})
		}
		if len(r.NonResourceURLs) > 0 {
			in.Status.NonResourceRules = append(in.Status.NonResourceRules, authorizationv1.NonResourceRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
		}
	}
	return in, nil
}

// Token says whose a service account's token is.
func (v *Reviews) Token(ctx context.Context, in *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	if in.Spec.Token == "" {
		return nil, apierrors.NewBadRequest("token is required for TokenReview in authentication: give spec.token")
	}
	audiences := in.Spec.Audiences
	if len(audiences) == 0 {
		audiences = []string{Issuer}
	}
	user, meant, err := v.Tokens.User(ctx, in.Spec.Token, audiences)
	if apierrors.IsInternalError(err) {
		return nil, err
	}
	if err != nil {
		in.Status = authenticationv1.TokenReviewStatus{Error: err.Error()}
		return in, nil
	}
	in.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: userInfo(user), Audiences: meant}
	return in, nil
}

// CreateToken answers a TokenRequest; see AccountTokens.Create.
func (v *Reviews) CreateToken(ctx context.Context, namespace, account string, req *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	return v.Tokens.Create(ctx, namespace, account, req)
}

func (v *Reviews) status(ctx context.Context, a Attributes) authorizationv1.SubjectAccessReviewStatus {
	allowed, reason, err := v.Decider.Authorize(ctx, a)
	s := authorizationv1.SubjectAccessReviewStatus{Allowed: allowed, Reason: reason}
	if err != nil {
		s.Allowed, s.EvaluationError = false, "internal error: see the server's log"
	}
	return s
}

func subjectAttributes(spec *authorizationv1.SubjectAccessReviewSpec) (Attributes, field.ErrorList) {
	a, errs := attributesOf(spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "user"), "", "at least one of user or group must be specified"))
	}
	a.User = api.User{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	for key, values := range spec.Extra {
		if a.User.Extra == nil {
			a.User.Extra = make(map[string][]string)
		}
		a.User.Extra[key] = values
	}
	return a, errs
}

func attributesOf(r *authorizationv1.ResourceAttributes, n *authorizationv1.NonResourceAttributes) (Attributes, field.ErrorList) {
	path := field.NewPath("spec")
	switch {
	case r != nil && n != nil:
		return Attributes{}, field.ErrorList{field.Invalid(path.Child("nonResourceAttributes"), n.Path, "cannot be specified in combination with resourceAttributes")}
	case n != nil:
		return Attributes{Verb: n.Verb, Path: orSlash(n.Path)}, nil
	case r != nil:
		a := Attributes{
			Verb: r.Verb, Group: r.Group, Version: r.Version, Resource: r.Resource, Subresource: r.Subresource,
			Namespace: r.Namespace, Name: r.Name,
		}
		if r.FieldSelector != nil {
			a.Fields = selectorText(r.FieldSelector)
		}
		return a, nil
	}
	return Attributes{}, field.ErrorList{field.Invalid(path.Child("resourceAttributes"), "", "exactly one of nonResourceAttributes or resourceAttributes must be specified")}
}

func orSlash(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// selectorText is a field selector as a query has it. What it cannot say is left
// out: then more is asked for, and less is allowed.
func selectorText(s *authorizationv1.FieldSelectorAttributes) string {
	if s.RawSelector != "" {
		return s.RawSelector
	}
	var parts []string
	for _, r := range s.Requirements {
		if r.Operator == "In" && len(r.Values) == 1 {
			parts = append(parts, r.Key+"="+r.Values[0])
		}
	}
	return strings.Join(parts, ",")
}

func invalidReview(kind string, errs field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: authorizationv1.GroupName, Kind: kind}, "", errs)
}

func userInfo(user api.User) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: user.Name, UID: user.UID, Groups: user.Groups}
	for _, key := range slices.Sorted(maps.Keys(user.Extra)) {
		if info.Extra == nil {
			info.Extra = make(map[string]authenticationv1.ExtraValue)
		}
		info.Extra[key] = user.Extra[key]
	}
	return info
}
