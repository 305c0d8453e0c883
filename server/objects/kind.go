package objects

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Object is a typed Kubernetes object.
type Object interface {
	runtime.Object
	metav1.Object
}

// Kind is one row of the table of resources: all that the generic code must
// know of a kind. It is read only after NewRegistry.
type Kind struct {
	schema.GroupVersionKind
	Plural, Singular       string
	ShortNames, Categories []string
	Namespaced             bool
	Verbs                  []string // nil: all of the generic ones
	New                    func() Object
	NewList                func() runtime.Object

	// Volatile says whether objects of a namespace live in memory only; nil: none do.
	Volatile func(namespace string) bool
	// Fields returns what field selectors may name beside metadata.name and
	// metadata.namespace; nil: nothing more. FieldNames lists them.
	Fields     func(Object) fields.Set
	FieldNames []string

	// ValidateName is the rule for names; nil: DNS subdomains. With prefix the
	// name is a generateName, to which more will be appended.
	ValidateName func(name string, prefix bool) []string

	Strategy
	Subresources []Subresource

	Columns []metav1.TableColumnDefinition // without Age, which every kind has last unless NoAge
	NoAge   bool
	Row     func(obj Object, now time.Time) []any

	// Read serves a kind that is not stored but computed (verb get only).
	Read func(ctx context.Context, namespace, name string) (Object, error)
	// Answer serves a kind that is not stored but answered (verb create only):
	// it gets what was sent and returns what is sent back. Its errors are
	// StatusErrors.
	Answer func(ctx context.Context, namespace string, obj Object) (Object, error)
	// AlsoVersions are older versions by which an answered kind of the same
	// shape is asked for too; discovery does not name them.
	AlsoVersions []string
}

// IsStored reports whether objects of the kind are kept at all.
func (k *Kind) IsStored() bool { return k.Read == nil && k.Answer == nil }

// Strategy is what a kind does on its way into the store. Any function may be
// nil. All are pure: they touch only their arguments, and Default may be called
// more than once. Metadata that is the same for all kinds is the Registry's.
type Strategy struct {
	Default       func(obj Object)
	PrepareCreate func(obj Object) // clear what a client may not set (status); set generation to 1 where the kind counts it
	// PrepareUpdate keeps what a client may not change (status). Where it leaves
	// a generation above 0 as it is, a change of Spec counts.
	PrepareUpdate  func(obj, old Object)
	Validate       func(obj Object) field.ErrorList
	ValidateUpdate func(obj, old Object) field.ErrorList // beside Validate
	Warnings       func(obj Object) []string             // sent as Warning: 299
	// Grace decides a graceful deletion: it gets the request's grace period
	// (nil: none given) and returns the seconds to wait; 0 deletes at once.
	Grace func(obj Object, requested *int64) int64
}

// Subresource is a part of an object with an address of its own.
type Subresource struct {
	Name  string // "status", "binding", "log", ...
	Verbs []string
	// Kind of the body, when it is another than the parent's (Binding).
	schema.GroupVersionKind
	// Update, for those that generic get, update and patch serve ("status"):
	// takes over from obj into old, which is a copy of the stored object, only
	// what the subresource owns. nil: obj is taken as it is (bindings).
	Update   func(obj, old Object)
	Validate func(obj, old Object) field.ErrorList
	// New and Answer serve a create that stores nothing (tokens): Answer gets
	// what was sent, which New made, and returns what is sent back.
	New    func() Object
	Answer func(ctx context.Context, namespace, name string, obj Object) (Object, error)
}

// Resource is the group and plural, as in "pods" or "leases.coordination.k8s.io".
func (k *Kind) Resource() string {
	if k.Group == "" {
		return k.Plural
	}
	return k.Plural + "." + k.Group
}
