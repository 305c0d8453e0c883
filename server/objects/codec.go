package objects

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"bramble.dev/bramble/server/store"
)

// The revision of a write is known only when it is committed, so an object is
// encoded with a placeholder in its place. A quote inside a JSON string is
// always escaped: these bytes are a field of that name and nothing else, and
// the first one is that of metadata, which stands before spec in every kind.
const (
	revisionField = `"resourceVersion":"`
	placeholder   = "?"
)

// encoded is an object around the place of its revision.
type encoded struct{ before, after []byte }

// encode returns obj, which gets the kind's own apiVersion and kind. obj's
// resourceVersion is left alone.
func encode(k *Kind, obj Object) (encoded, error) {
	obj.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	rev := obj.GetResourceVersion()
	obj.SetResourceVersion(placeholder)
	body, err := json.Marshal(obj)
	obj.SetResourceVersion(rev)
	if err != nil {
		return encoded{}, apierrors.NewBadRequest(fmt.Sprintf("cannot encode %s %q: %v", k.Kind, obj.GetName(), err))
	}
	if len(body) > MaxObjectBytes {
		return encoded{}, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d bytes, %s %q has %d",
			MaxObjectBytes, k.Kind, obj.GetName(), len(body)))
	}
	before, after, ok := cutRevision(body)
	if !ok {
		return encoded{}, apierrors.NewInternalError(errors.New("an object was encoded without metadata"))
	}
	return encoded{before, after}, nil
}

// at returns the body with rev in it.
func (e encoded) at(rev uint64) []byte {
	digits := strconv.AppendUint(make([]byte, 0, 20), rev, 10)
	body := make([]byte, 0, len(e.before)+len(digits)+len(e.after))
	body = append(body, e.before...)
	body = append(body, digits...)
	return append(body, e.after...)
}

// into returns what gives the body its revision (store.Change.Body), and fills stored.
func (e encoded) into(stored *Stored) func(rev uint64) []byte {
	return func(rev uint64) []byte {
		body := e.at(rev)
		*stored = Stored{rev, store.NewBody(body)}
		return body
	}
}

// withoutRevision returns the body of an object that was not stored.
func (e encoded) withoutRevision() []byte {
	before := bytes.TrimSuffix(e.before, []byte(revisionField))
	after := e.after[1:] // the closing quote
	if bytes.HasSuffix(before, []byte(",")) {
		before = before[:len(before)-1]
	} else {
		after = bytes.TrimPrefix(after, []byte(","))
	}
	return append(bytes.Clone(before), after...)
}

// Restamp returns a copy of a stored body with another revision; what is no
// object is returned as it is.
func Restamp(body []byte, rev uint64) []byte {
	before, after, ok := cutRevision(body)
	if !ok {
		return body
	}
	return encoded{before, after}.at(rev)
}

func cutRevision(body []byte) (before, after []byte, ok bool) {
	start := bytes.Index(body, []byte(revisionField))
	if start < 0 {
		return nil, nil, false
	}
	start += len(revisionField)
	end := bytes.IndexByte(body[start:], '"')
	if end < 0 {
		return nil, nil, false
	}
	return body[:start], body[start+end:], true
}

// Decode returns a typed copy of a stored body.
func (k *Kind) Decode(body []byte) (Object, error) {
	obj := k.New()
	if err := kjson.Unmarshal(body, obj); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("cannot decode a stored %s: %w", k.Kind, err))
	}
	return obj, nil
}

// clone returns a deep copy of obj.
func clone(obj Object) Object { return obj.DeepCopyObject().(Object) }

// checkEncoding makes sure that the kind's objects have their revision where it is
// looked for. Of the type alone: to encode one of each kind would fill
// encoding/json's caches, a megabyte of them for types that may never be used.
func checkEncoding(k *Kind) error {
	if !k.IsStored() {
		return nil
	}
	for f := range reflect.TypeOf(k.New()).Elem().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "metadata" {
			return nil
		}
		if f.Type != reflect.TypeFor[metav1.TypeMeta]() {
			break // what it has would be encoded before metadata
		}
	}
	return errors.New("its metadata does not stand first")
}
