package main

import (
	"context"
	"fmt"
	"net/url"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// userBinding binds one role to one user; namespace "" is the whole cluster.
type userBinding struct {
	name, user, namespace string
	ref                   rbacv1.RoleRef
}

// newUserBinding finds the role: a Role of the namespace, if that is asked for and
// there is one, else a ClusterRole.
func newUserBinding(ctx context.Context, flags *genericclioptions.ConfigFlags, user, role, namespace string, orRole bool) (*userBinding, error) {
	b := &userBinding{name: user + ":role:" + role, user: user, namespace: namespace, ref: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role}}
	if orRole {
		err := call(ctx, flags, rbacPath(namespace, "roles", role), nil, &metav1.PartialObjectMetadata{})
		if err == nil || !apierrors.IsNotFound(err) {
			return b, err
		}
	}
	b.ref.Kind, b.name = "ClusterRole", user+":clusterrole:"+role
	err := call(ctx, flags, rbacPath("", "clusterroles", role), nil, &metav1.PartialObjectMetadata{})
	if orRole && apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is neither a Role %q in namespace %s nor such a ClusterRole: %w", role, namespace, err)
	}
	return b, err
}

// apply creates the binding. One that is there already is the same one: its name
// says what it binds.
func (b *userBinding) apply(ctx context.Context, flags *genericclioptions.ConfigFlags) error {
	meta := metav1.ObjectMeta{Name: b.name, Namespace: b.namespace}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: b.user}}
	var body any = &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: meta, RoleRef: b.ref, Subjects: subjects,
	}
	if b.namespace == "" {
		body = &rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
			ObjectMeta: meta, RoleRef: b.ref, Subjects: subjects,
		}
	}
	err := call(ctx, flags, rbacPath(b.namespace, b.resource(), ""), body, &metav1.PartialObjectMetadata{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot bind %s %s: %w", b.ref.Kind, b.ref.Name, err)
	}
	return nil
}

func (b *userBinding) resource() string {
	if b.namespace == "" {
		return "clusterrolebindings"
	}
	return "rolebindings"
}

// describe names the binding as edgectl delete wants it.
func (b *userBinding) describe() string {
	if b.namespace == "" {
		return "clusterrolebinding/" + b.name
	}
	return fmt.Sprintf("rolebinding/%s in namespace %s", b.name, b.namespace)
}

func rbacPath(namespace, resource, name string) string {
	path := "/apis/" + rbacv1.SchemeGroupVersion.String()
	if namespace != "" {
		path += "/namespaces/" + url.PathEscape(namespace)
	}
	path += "/" + resource
	if name != "" {
		path += "/" + url.PathEscape(name)
	}
	return path
}
