package auth_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/auth"
)

// alive are objects that tokens depend on, by "resource/namespace/name".
type alive map[string]auth.Bound

func (a alive) Find(_ context.Context, resource, namespace, name string) (auth.Bound, error) {
	return a[resource+"/"+namespace+"/"+name], nil
}

func accountTokens(t testing.TB, objects auth.Living) *auth.AccountTokens {
	t.Helper()
	key, err := auth.OpenTokenKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return auth.NewAccountTokens(key, auth.NewClock(buildDate()), objects)
}

func TestTokenRequestIsCheckedAndBound(t *testing.T) {
	objects := alive{
		"serviceaccounts/a/bot": {UID: "1"}, "serviceaccounts/a/ending": {UID: "2", Ending: true},
		"pods/a/p": {UID: "3", Node: "shelf", Account: "bot"}, "pods/a/other": {UID: "4", Node: "attic", Account: "bot"},
		"pods/a/default": {UID: "5", Node: "shelf", Account: "default"}, "secrets/a/s": {UID: "6"},
	}
	tokens := accountTokens(t, objects)
	seconds := func(n int64) *int64 { return &n }
	ref := func(kind, name, uid string) *authenticationv1.BoundObjectReference {
		r := &authenticationv1.BoundObjectReference{Kind: kind, APIVersion: "v1", Name: name}
		r.UID = objects[map[string]string{"Pod": "pods", "Secret": "secrets"}[kind]+"/a/"+name].UID
		if uid != "" {
			r.UID = auth.Bound{UID: r.UID}.UID + "x"
		}
		return r
	}
	shelf := api.WithUser(t.Context(), nodeUser("shelf"))
	for _, test := range []struct {
		name    string
		ctx     context.Context
		account string
		spec    authenticationv1.TokenRequestSpec
		want    string // in the error
	}{
		{"plain", t.Context(), "bot", authenticationv1.TokenRequestSpec{}, ""},
		{"no account", t.Context(), "nosuch", authenticationv1.TokenRequestSpec{}, "not found"},
		{"an account that ends", t.Context(), "ending", authenticationv1.TokenRequestSpec{}, "not found"},
		{"short", t.Context(), "bot", authenticationv1.TokenRequestSpec{ExpirationSeconds: seconds(599)}, "spec.expirationSeconds: Invalid value"},
		{"long", t.Context(), "bot", authenticationv1.TokenRequestSpec{ExpirationSeconds: seconds(1 << 31)}, ""},
		{"far too long", t.Context(), "bot", authenticationv1.TokenRequestSpec{ExpirationSeconds: seconds(1<<32 + 1)}, "spec.expirationSeconds: Invalid value"},
		{"for nobody", t.Context(), "bot", authenticationv1.TokenRequestSpec{Audiences: []string{""}}, "spec.audiences[0]: Required value"},
		{"of a pod", t.Context(), "bot", authenticationv1.TokenRequestSpec{BoundObjectRef: ref("Pod", "p", "")}, ""},
		{"of a Secret", t.Context(), "bot", authenticationv1.TokenRequestSpec{BoundObjectRef: ref("Secret", "s", "")}, ""},
		{"of no pod", t.Context(), "bot", authenticationv1.TokenRequestSpec{BoundObjectRef: ref("Pod", "nosuch", "")}, `pods "nosuch" not found`},
		{"of an earlier pod", t.Context(), "bot", authenticationv1.TokenRequestSpec{BoundObjectRef: ref("Pod", "p", "x")}, "does not match the UID in record"},
		{"of another account's pod", t.Context(), "bot", authenticationv1.TokenRequestSpec{BoundObjectRef: ref("Pod", "default", "")}, "different serviceaccount name"},
		{"of a node", t.Context(), "bot", authenticationv1.TokenRequestSpec{BoundObjectRef: ref("Node", "p", "")}, "spec.boundObjectRef.kind: Unsupported value"},
		{"a node for its pod", shelf, "bot", authenticationv1.TokenRequestSpec{BoundObjectRef: ref("Pod", "p", "")}, ""},
		{"a node for another's pod", shelf, "bot", authenticationv1.TokenRequestSpec{BoundObjectRef: ref("Pod", "other", "")}, "not bound to node shelf"},
		{"a node for no pod", shelf, "bot", authenticationv1.TokenRequestSpec{}, "bound to one of its pods"},
	} {
		got, err := tokens.Create(test.ctx, "a", test.account, &authenticationv1.TokenRequest{Spec: test.spec})
		if test.want != "" {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", test.name, err, test.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		user, meant, err := tokens.User(t.Context(), got.Status.Token, []string{"x", auth.Issuer})
		if err != nil || user.Name != "system:serviceaccount:a:bot" || len(meant) != 1 {
			t.Errorf("%s: %+v %v %v", test.name, user, meant, err)
		}
		if life := time.Until(got.Status.ExpirationTimestamp.Time); life > 366*24*time.Hour {
			t.Errorf("%s: it lives for %v", test.name, life)
		}
	}
}

// broken is alive until its store fails.
type broken struct {
	alive
	failing bool
}

func (b *broken) Find(ctx context.Context, resource, namespace, name string) (auth.Bound, error) {
	if b.failing {
		return auth.Bound{}, errors.New("disk I/O error")
	}
	return b.alive.Find(ctx, resource, namespace, name)
}

func TestAFailingStoreIsNotTheTokensFault(t *testing.T) {
	objects := &broken{alive: alive{"serviceaccounts/a/bot": {UID: "1"}}}
	tokens := accountTokens(t, objects)
	got, err := tokens.Create(t.Context(), "a", "bot", &authenticationv1.TokenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	objects.failing = true
	r := httptest.NewRequest(http.MethodGet, "/api", nil)
	r.Header.Set("Authorization", "Bearer "+got.Status.Token)
	if _, _, err := (&auth.Authenticator{Tokens: tokens}).Authenticate(r); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "disk I/O error") {
		t.Errorf("a request is answered %v", err)
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: got.Status.Token}}
	if answer, err := (&auth.Reviews{Tokens: tokens}).Token(t.Context(), review); !apierrors.IsInternalError(err) {
		t.Errorf("a review is answered %v, %v", answer, err)
	}
}

func TestTokensEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := alive{"serviceaccounts/a/bot": {UID: "1"}, "pods/a/p": {UID: "3", Account: "bot"}}
		tokens := accountTokens(t, objects)
		req := &authenticationv1.TokenRequest{}
		req.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", Name: "p"}
		got, err := tokens.Create(t.Context(), "a", "bot", req)
		if err != nil {
			t.Fatal(err)
		}
		check := func(name, want string) {
			t.Helper()
			_, _, err := tokens.User(t.Context(), got.Status.Token, []string{auth.Issuer})
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
		check("fresh", "")
		if _, _, err := tokens.User(t.Context(), got.Status.Token, []string{"another"}); err == nil {
			t.Error("it is good for whom it is not meant")
		}
		objects["pods/a/p"] = auth.Bound{UID: "other", Account: "bot"}
		check("another pod of the name", "ended with pods a/p")
		objects["pods/a/p"] = auth.Bound{UID: "3", Account: "bot", Ending: true}
		check("a pod that ends", "")
		objects["serviceaccounts/a/bot"] = auth.Bound{UID: "1", Ending: true}
		check("an account that ends", "ended with serviceaccounts a/bot")
		objects["serviceaccounts/a/bot"] = auth.Bound{UID: "1"}
		<-time.After(59 * time.Minute)
		check("nearly over", "")
		<-time.After(2 * time.Minute)
		check("over", "expired")
	})
}

// A token that was touched, or that another key signed, is nobody's.
func TestForgedTokenIsNobodys(t *testing.T) {
	objects := alive{"serviceaccounts/a/bot": {UID: "1"}}
	tokens, others := accountTokens(t, objects), accountTokens(t, objects)
	mint := func(from *auth.AccountTokens) string {
		got, err := from.Create(t.Context(), "a", "bot", &authenticationv1.TokenRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return got.Status.Token
	}
	good := mint(tokens)
	parts := strings.Split(good, ".")
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"empty":        "",
		"another key":  mint(others),
		"no signature": parts[0] + "." + parts[1] + ".",
		"none":         encode(`{"alg":"none"}`) + "." + parts[1] + ".",
		"HS256":        encode(`{"alg":"HS256"}`) + "." + parts[1] + "." + parts[2],
		"another user": parts[0] + "." + encode(strings.Replace(string(body), "bot", "bob", 1)) + "." + parts[2],
		"four parts":   good + ".x",
		"huge":         strings.Repeat("x", 1<<20),
	} {
		if user, _, err := tokens.User(t.Context(), token, []string{auth.Issuer}); err == nil {
			t.Errorf("%s: taken for %+v", name, user)
		}
	}
}

func FuzzToken(f *testing.F) {
	objects := alive{"serviceaccounts/a/bot": {UID: "1"}}
	tokens := accountTokens(f, objects)
	got, err := tokens.Create(context.Background(), "a", "bot", &authenticationv1.TokenRequest{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(got.Status.Token)
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, token string) {
		user, _, err := tokens.User(t.Context(), token, []string{auth.Issuer})
		if err == nil && token != got.Status.Token {
			t.Errorf("%q is taken for %+v", token, user)
		}
	})
}

func TestImpersonationNeedsEachRight(t *testing.T) {
	f := defaultPolicy()
	f.put(ofCluster("ann", policyRule("impersonate", "", "users,groups", "bob", "g"),
		policyRule("impersonate", "authentication.k8s.io", "userextras/scopes", "x"), policyRule("impersonate", "", "serviceaccounts"))...)
	z := auth.NewAuthorizer(nil, auth.NewRBAC(f))
	for _, test := range []struct {
		name    string
		headers map[string][]string
		as      string // with groups; "": refused
		want    string
	}{
		{"a user", map[string][]string{"Impersonate-User": {"bob"}}, "bob [system:authenticated]", ""},
		{"with a group", map[string][]string{"Impersonate-User": {"bob"}, "Impersonate-Group": {"g"}}, "bob [g system:authenticated]", ""},
		{"another", map[string][]string{"Impersonate-User": {"carol"}}, "", `User "ann" cannot impersonate resource "users" in API group "" at the cluster scope`},
		{"administrators", map[string][]string{"Impersonate-User": {"bob"}, "Impersonate-Group": {"g", "system:masters"}}, "", `resource "groups"`},
		{"extra", map[string][]string{"Impersonate-User": {"bob"}, "Impersonate-Extra-Scopes": {"x"}}, "bob [system:authenticated]", ""},
		{"other extra", map[string][]string{"Impersonate-User": {"bob"}, "Impersonate-Extra-Scopes": {"y"}}, "", `"userextras/scopes"`},
		{"uid", map[string][]string{"Impersonate-User": {"bob"}, "Impersonate-Uid": {"7"}}, "", `"uids"`},
		{"account", map[string][]string{"Impersonate-User": {"system:serviceaccount:a:b"}}, "system:serviceaccount:a:b [system:serviceaccounts system:serviceaccounts:a system:authenticated]", ""},
		{"a group alone", map[string][]string{"Impersonate-Group": {"g"}}, "", "without impersonating a user"},
	} {
		as, asked, err := auth.Impersonate(t.Context(), z, member("ann"), test.headers)
		if !asked {
			t.Errorf("%s: not asked", test.name)
		}
		got := as.Name + " [" + strings.Join(as.Groups, " ") + "]"
		if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) || test.want == "" && (err != nil || got != test.as) {
			t.Errorf("%s: %s %v, want %s %s", test.name, got, err, test.as, test.want)
		}
	}
	nobody := api.User{Name: api.UserAnonymous, Groups: []string{api.GroupUnauthenticated}}
	if _, _, err := auth.Impersonate(t.Context(), z, nobody, map[string][]string{"Impersonate-User": {"bob"}}); !apierrors.IsForbidden(err) {
		t.Errorf("without credentials: %v", err)
	}
}
