package openapi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"bramble.dev/bramble/server/openapi/merge"
)

// TypeConverter returns what managed fields and server-side apply must know of
// the kinds served. The schema behind it is read at its first use, once. It is
// safe for concurrent use. Objects must carry their apiVersion and kind.
func TypeConverter() (managedfields.TypeConverter, error) {
	return &converter{read: sync.OnceValues(readMerge)}, nil
}

type converter struct {
	read func() (*mergeSchema, error)
}

type mergeSchema struct {
	kinds  map[string]string
	parser typed.Parser
}

func readMerge() (*mergeSchema, error) {
	zr, err := gzip.NewReader(bytes.NewReader(mergeDocument))
	if err != nil {
		return nil, fmt.Errorf("cannot unpack the schema for merging: %w", err)
	}
	var doc merge.Document
	if err := json.NewDecoder(zr).Decode(&doc); err != nil {
		return nil, fmt.Errorf("cannot read the schema for merging: %w", err)
	}
	return &mergeSchema{kinds: doc.Kinds, parser: typed.Parser{Schema: schema.Schema{Types: merge.Unpack(doc.Types)}}}, nil
}

// ObjectToTyped gives obj its type.
func (c *converter) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	s, err := c.read()
	if err != nil {
		return nil, err
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	name, ok := s.kinds[gvk.GroupVersion().String()+" "+gvk.Kind]
	if !ok {
		return nil, fmt.Errorf("cannot find the type of %v: server/openapi has no schema of it", gvk)
	}
	t := s.parser.Type(name)
	if o, ok := obj.(*unstructured.Unstructured); ok {
		return t.FromUnstructured(o.UnstructuredContent(), opts...)
	}
	return t.FromStructured(obj, opts...)
}

// TypedToObject is the way back; it returns an unstructured object.
func (c *converter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	content, ok := value.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("cannot make an object of a %T", value.AsValue().Unstructured())
	}
	return &unstructured.Unstructured{Object: content}, nil
}
