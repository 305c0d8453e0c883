package kinds

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/server/objects"
)

// Reviews answers who somebody is and what they may, and makes tokens. Its
// errors are StatusErrors. It may change and return what it is given.
type Reviews interface {
	SelfSubject(context.Context, *authenticationv1.SelfSubjectReview) (*authenticationv1.SelfSubjectReview, error)
	SelfAccess(context.Context, *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error)
	SelfRules(context.Context, *authorizationv1.SelfSubjectRulesReview) (*authorizationv1.SelfSubjectRulesReview, error)
	Access(context.Context, *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error)
	LocalAccess(context.Context, string, *authorizationv1.LocalSubjectAccessReview) (*authorizationv1.LocalSubjectAccessReview, error)
	Token(context.Context, *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error)
	CreateToken(ctx context.Context, namespace, account string, req *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error)
}

// reviews are the kinds that are created to be answered, and never stored.
func reviews(d Deps) []*objects.Kind {
	authn, authz := authenticationv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion
	whoami := review(authn, "SelfSubjectReview", "selfsubjectreviews", func() objects.Object { return &authenticationv1.SelfSubjectReview{} },
		func(ctx context.Context, in *authenticationv1.SelfSubjectReview) (objects.Object, error) {
			return d.Reviews.SelfSubject(ctx, in)
		})
	whoami.AlsoVersions = []string{"v1beta1"} // all that kubectl 1.27 knows; of the same shape
	local := review(authz, "LocalSubjectAccessReview", "localsubjectaccessreviews", func() objects.Object { return &authorizationv1.LocalSubjectAccessReview{} },
		func(ctx context.Context, in *authorizationv1.LocalSubjectAccessReview) (objects.Object, error) {
			return d.Reviews.LocalAccess(ctx, in.Namespace, in)
		})
	local.Namespaced = true
	return []*objects.Kind{
		whoami, local,
		review(authn, "TokenReview", "tokenreviews", func() objects.Object { return &authenticationv1.TokenReview{} },
			func(ctx context.Context, in *authenticationv1.TokenReview) (objects.Object, error) {
				return d.Reviews.Token(ctx, in)
			}),
		review(authz, "SelfSubjectAccessReview", "selfsubjectaccessreviews", func() objects.Object { return &authorizationv1.SelfSubjectAccessReview{} },
			func(ctx context.Context, in *authorizationv1.SelfSubjectAccessReview) (objects.Object, error) {
				return d.Reviews.SelfAccess(ctx, in)
			}),
		review(authz, "SelfSubjectRulesReview", "selfsubjectrulesreviews", func() objects.Object { return &authorizationv1.SelfSubjectRulesReview{} },
			func(ctx context.Context, in *authorizationv1.SelfSubjectRulesReview) (objects.Object, error) {
				return d.Reviews.SelfRules(ctx, in)
			}),
		review(authz, "SubjectAccessReview", "subjectaccessreviews", func() objects.Object { return &authorizationv1.SubjectAccessReview{} },
			func(ctx context.Context, in *authorizationv1.SubjectAccessReview) (objects.Object, error) {
				return d.Reviews.Access(ctx, in)
			}),
	}
}

func review[T objects.Object](gv schema.GroupVersion, kind, plural string, fresh func() objects.Object, answer func(context.Context, T) (objects.Object, error)) *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: gv.WithKind(kind),
		Plural:           plural, Singular: plural[:len(plural)-1],
		New:   fresh,
		NoAge: true,
		Row:   func(objects.Object, time.Time) []any { return nil },
		Answer: func(ctx context.Context, _ string, obj objects.Object) (objects.Object, error) {
			return answer(ctx, obj.(T))
		},
		Columns: []metav1.TableColumnDefinition{},
	}
}
