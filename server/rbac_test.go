package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"bramble.dev/bramble/server/api"
)

// as returns a client with an administrator's certificate that acts as another.
func (r *running) as(t *testing.T, user string, groups ...string) *kubernetes.Clientset {
	t.Helper()
	config := rest.CopyConfig(r.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// withToken returns a client that has only a bearer token.
func (r *running) withToken(t *testing.T, token string) *kubernetes.Clientset {
	t.Helper()
	config := rest.AnonymousClientConfig(r.config)
	config.BearerToken, config.QPS = token, -1
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestUsualRolesAreMended(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, nil)
	roles := r.admin(t).RbacV1().ClusterRoles()
	spoil := func(name, autoupdate string) {
		t.Helper()
		role, err := roles.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		role.Rules = []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/mine"}}}
		role.Annotations["rbac.authorization.kubernetes.io/autoupdate"] = autoupdate
		if _, err := roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	spoil("system:discovery", "true")
	spoil("system:monitoring", "false")
	if err := roles.Delete(t.Context(), "system:basic-user", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = start(t, dir, nil)
	roles = r.admin(t).RbacV1().ClusterRoles()
	paths := func(name string) (all []string) {
		t.Helper()
		role, err := roles.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			all = append(all, rule.NonResourceURLs...)
		}
		return all
	}
	if got := paths("system:discovery"); !slices.Contains(got, "/apis/*") || !slices.Contains(got, "/mine") {
		t.Errorf("system:discovery has %v", got)
	}
	if got := paths("system:monitoring"); !slices.Equal(got, []string{"/mine"}) {
		t.Errorf("system:monitoring, which is left alone, has %v", got)
	}
	paths("system:basic-user")

	// What an administrator adds for the usual roles reaches them.
	_, err := roles.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "more", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"more.example"}, Resources: []string{"things"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool {
		role, err := roles.Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(role.Rules, func(p rbacv1.PolicyRule) bool { return slices.Contains(p.APIGroups, "more.example") })
	}
	eventually(t, "view, edit and admin gather it", func() bool { return has("view") && has("edit") && has("admin") })
	if err := roles.Delete(t.Context(), "more", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "they lose it again", func() bool { return !has("view") && !has("edit") && !has("admin") })
}

func TestGrantsAndEscalation(t *testing.T) {
	r := start(t, t.TempDir(), nil)
	admin, ann := r.admin(t), r.as(t, "ann")
	bind := func(namespace, name, role, user string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: user}},
		}
	}
	_, err := ann.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if want := `pods is forbidden: User "ann" cannot list resource "pods" in API group "" in the namespace "default"`; !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	made, err := admin.RbacV1().RoleBindings("default").Create(t.Context(), bind("default", "ann", "admin", "ann"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ann.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a grant does not hold at once: %v", err)
	}
	if _, err := ann.RbacV1().RoleBindings("default").Create(t.Context(), bind("default", "bob", "view", "bob"), metav1.CreateOptions{}); err != nil {
		t.Errorf("she may not give what she has: %v", err)
	}
	_, err = ann.RbacV1().RoleBindings("default").Create(t.Context(), bind("default", "more", "cluster-admin", "ann"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "attempting to grant RBAC permissions not currently held") {
		t.Errorf("she gives more than she has: %v", err)
	}
	made.RoleRef.Name = "cluster-admin"
	if _, err := admin.RbacV1().RoleBindings("default").Update(t.Context(), made, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a roleRef changed: %v", err)
	}
	if err := admin.RbacV1().RoleBindings("default").Delete(t.Context(), "ann", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := ann.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("what was taken away holds on: %v", err)
	}
	config := rest.AnonymousClientConfig(r.config)
	resp, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.CloseIdleConnections()
	for path, want := range map[string]int{"/version": http.StatusOK, "/api/v1/pods": http.StatusUnauthorized, "/apis": http.StatusUnauthorized} {
		got, err := resp.Get(config.Host + path)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != want {
			t.Errorf("%s without credentials: %s", path, got.Status)
		}
	}
}

func TestEachPodHasAServiceAccount(t *testing.T) {
	r := start(t, t.TempDir(), nil)
	admin := r.admin(t)
	core := admin.CoreV1()
	pod := func(name, account string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
			ServiceAccountName: account, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		}}
	}
	if _, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	made, err := core.Pods("shop").Create(t.Context(), pod("p", ""), metav1.CreateOptions{}) // at once: no race with the controller
	if err != nil || made.Spec.ServiceAccountName != "default" {
		t.Fatalf("%v %v", made, err)
	}
	again := made.DeepCopy() // as the first apply by the server, which drops what the client's applies did not say
	again.Spec.ServiceAccountName, again.Spec.DeprecatedServiceAccount, again.ResourceVersion = "", "", ""
	if again, err = core.Pods("shop").Update(t.Context(), again, metav1.UpdateOptions{}); err != nil || again.Spec.ServiceAccountName != "default" {
		t.Errorf("an update without the account: %v %v", again, err)
	}
	if _, err := core.Pods("shop").Create(t.Context(), pod("q", "nosuch"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "kubectl create serviceaccount nosuch -n shop") {
		t.Errorf("a pod of an account that does not exist: %v", err)
	}
	if err := core.ServiceAccounts("shop").Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the default account is made again", func() bool {
		_, err := core.ServiceAccounts("shop").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})

	request := func(bound *corev1.Pod) *authenticationv1.TokenRequest {
		req := &authenticationv1.TokenRequest{}
		if bound != nil {
			req.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: bound.Name, UID: bound.UID}
		}
		return req
	}
	whole, err := core.ServiceAccounts("shop").CreateToken(t.Context(), "default", request(nil), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bound, err := core.ServiceAccounts("shop").CreateToken(t.Context(), "default", request(made), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	who := func(token string) (authenticationv1.UserInfo, error) {
		t.Helper()
		review, err := r.withToken(t, token).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return authenticationv1.UserInfo{}, err
		}
		return review.Status.UserInfo, nil
	}
	if info, err := who(whole.Status.Token); err != nil || info.Username != "system:serviceaccount:shop:default" || !slices.Contains(info.Groups, "system:serviceaccounts:shop") {
		t.Errorf("got %+v, %v", info, err)
	}
	if info, err := who(bound.Status.Token); err != nil || info.Extra["authentication.kubernetes.io/pod-name"][0] != "p" {
		t.Errorf("got %+v, %v", info, err)
	}
	review, err := admin.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: bound.Status.Token}}, metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated || review.Status.User.Username != "system:serviceaccount:shop:default" {
		t.Errorf("review: %+v, %v", review, err)
	}
	if err := core.Pods("shop").Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := who(bound.Status.Token); !apierrors.IsUnauthorized(err) || !strings.Contains(err.Error(), "ended with pods shop/p") {
		t.Errorf("a token outlives its pod: %v", err)
	}
	if _, err := who(whole.Status.Token); err != nil {
		t.Errorf("the account's own token: %v", err)
	}
	if err := core.ServiceAccounts("shop").Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := who(whole.Status.Token); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token outlives its account: %v", err)
	}
}

// A backup holds the authority's key, which is not for who may read all the rest.
func TestReadersGetNoBackup(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), nil)
	admin := r.admin(t)
	get := func(user string) error {
		return r.as(t, user).RESTClient().Get().AbsPath(api.BackupPath).Do(t.Context()).Error()
	}
	for user, verbs := range map[string][]string{"reader": {"get", "list", "watch"}, "keeper": {"create"}} {
		_, err := admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{"*"}, Resources: []string{"*"}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: user}, Subjects: []rbacv1.Subject{{Kind: "User", Name: user}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := get("reader"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `cannot create resource "backup"`) {
		t.Errorf("a reader: %v", err)
	}
	if err := get("keeper"); err != nil {
		t.Errorf("who may make backups: %v", err)
	}
}

// A role for one object by its name lets its user list and watch that object.
func TestNamedObjectIsListedAndWatched(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), nil)
	admin, bob := r.admin(t), r.as(t, "bob")
	_, err := admin.RbacV1().Roles("default").Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"a"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = admin.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "one"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "one"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "bob"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := admin.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for selector, may := range map[string]bool{
		"metadata.name=a": true, "metadata.name==a,metadata.namespace=default": true,
		"": false, "metadata.name=b": false, "metadata.name!=a": false,
	} {
		opts := metav1.ListOptions{FieldSelector: selector}
		found, err := bob.CoreV1().Secrets("default").List(t.Context(), opts)
		if may && (err != nil || len(found.Items) != 1 || found.Items[0].Name != "a") || !may && !apierrors.IsForbidden(err) {
			t.Errorf("list by %q: %v, %v", selector, found, err)
		}
		w, err := bob.CoreV1().Secrets("default").Watch(t.Context(), opts)
		if (err == nil) != may {
			t.Errorf("watch by %q: %v", selector, err)
		}
		if err == nil {
			w.Stop()
		}
	}
	if err := bob.CoreV1().Secrets("default").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=a"}); !apierrors.IsForbidden(err) {
		t.Errorf("a collection is deleted by a name: %v", err)
	}
}
