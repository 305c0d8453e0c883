package objects

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"

	"bramble.dev/bramble/server/store"
)

// MaxObjectBytes is how large an object may be, encoded. A larger one is
// refused with 413.
const MaxObjectBytes = 3 << 20

// Stored is an object as it is kept: Body is its JSON, with apiVersion, kind
// and resourceVersion (Rev) in it. Rev is 0 for what a dry run would create.
type Stored struct {
	Rev  uint64
	Body *store.Body
}

// Result is the outcome of a write.
type Result struct {
	Stored
	Warnings []string
}

// WriteOptions go with a write. FieldManager is who writes ("": "unknown").
// With DryRun everything happens but the writing.
type WriteOptions struct {
	FieldManager string
	DryRun       bool
}

// Request is a write as admission sees it, with the user in ctx (api.UserFrom).
type Request struct {
	Verb            string // create, update or delete
	Kind            *Kind
	Subresource     string // "" for the object itself
	Namespace, Name string
	Obj             Object // may be changed by an Admitter; nil for delete
	Old             Object // must not be changed; nil for create
	DryRun          bool
}

// Admitter is one link of the admission chain. It comes after defaulting and
// before validation, may complete Request.Obj and may refuse the request: with
// a StatusError, or with any other error, which becomes a 403. It is called
// again when a write has to be repeated.
type Admitter interface {
	Admit(context.Context, Request) error
}

// Config is what a Registry can be given; all of it may be left out.
type Config struct {
	Admit []Admitter // in order
	// Types gives field managers the structure of kinds; nil: deduced, which
	// takes each list as one value.
	Types managedfields.TypeConverter
	// NamespaceOptional says where an object may be created though its
	// namespace does not exist; nil: nowhere.
	NamespaceOptional func(k *Kind, namespace string) bool
	BookmarkEvery     time.Duration // 0: a minute
	Log               *slog.Logger

	Now    func() time.Time
	NewUID func() types.UID
	Suffix func() string // ends a name made of generateName
}

func (c *Config) setDefaults() {
	if c.Types == nil {
		c.Types = managedfields.NewDeducedTypeConverter()
	}
	if c.NamespaceOptional == nil {
		c.NamespaceOptional = func(*Kind, string) bool { return false }
	}
	if c.BookmarkEvery == 0 {
		c.BookmarkEvery = time.Minute
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewUID == nil {
		c.NewUID = uuid.NewUUID
	}
	if c.Suffix == nil {
		c.Suffix = func() string { return utilrand.String(5) }
	}
}

// Registry serves all kinds. Its methods are safe for concurrent use; their
// errors are StatusErrors (apimachinery's api/errors) or the context's.
type Registry struct {
	store    *store.Store
	config   Config
	kinds    []*Kind
	index    map[schema.GroupResource]*Kind
	managers map[managerKey]*managedfields.FieldManager
	spaces   *Kind // namespaces; nil: a table without them, nothing is checked
}

// NewRegistry returns a registry of kinds on s. It fails if two kinds have one
// name, or if one of them cannot be encoded.
func NewRegistry(s *store.Store, kinds []*Kind, config Config) (*Registry, error) {
	config.setDefaults()
	r := &Registry{
		store:    s,
		config:   config,
		kinds:    kinds,
		index:    map[schema.GroupResource]*Kind{},
		managers: map[managerKey]*managedfields.FieldManager{},
	}
	for _, k := range kinds {
		gr := k.GroupResource()
		if r.index[gr] != nil {
			return nil, fmt.Errorf("cannot register kind %s: %s is taken", k.Kind, gr)
		}
		r.index[gr] = k
		if err := checkEncoding(k); err != nil {
			return nil, fmt.Errorf("cannot register kind %s: %w", k.Kind, err)
		}
		if err := r.addManagers(k); err != nil {
			return nil, fmt.Errorf("cannot register kind %s: %w", k.Kind, err)
		}
	}
	r.spaces = r.index[schema.GroupResource{Resource: "namespaces"}]
	return r, nil
}

// Kinds returns the table, which is not to be changed.
func (r *Registry) Kinds() []*Kind { return r.kinds }

// Kind returns the kind that is called plural in group.
func (r *Registry) Kind(group, plural string) (*Kind, bool) {
	k, ok := r.index[schema.GroupResource{Group: group, Resource: plural}]
	return k, ok
}

func (k *Kind) key(namespace, name string) store.Key {
	return store.Key{Resource: k.Resource(), Namespace: namespace, Name: name}
}

func (k *Kind) isVolatile(namespace string) bool {
	return k.Volatile != nil && k.Volatile(namespace)
}
