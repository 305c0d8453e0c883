package api_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/server/api"
)

// A copy must be equal and must share no memory, whatever fields the types
// grow: fill is by reflection, so a field that a copy forgets is found.
func TestDeepCopySharesNothing(t *testing.T) {
	for _, obj := range []runtime.Object{
		&api.NodeHardware{}, &api.NodeHardwareList{}, &api.Placement{}, &api.PlacementList{},
	} {
		fill(reflect.ValueOf(obj).Elem(), rand.New(rand.NewPCG(1, 2)))
		before, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		c := obj.DeepCopyObject()
		if diff := cmp.Diff(obj, c); diff != "" {
			t.Errorf("%T: the copy differs (-want +got):\n%s", obj, diff)
		}
		if at := shared(reflect.ValueOf(obj), reflect.ValueOf(c), "obj"); at != "" {
			t.Errorf("%T: the copy shares %s", obj, at)
		}
		fill(reflect.ValueOf(c).Elem(), rand.New(rand.NewPCG(3, 4)))
		after, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		if string(before) != string(after) {
			t.Errorf("%T: a write to the copy changed the original", obj)
		}
	}
}

func TestDeepCopyOfNil(t *testing.T) {
	var h *api.NodeHardware
	var p *api.Placement
	if h.DeepCopy() != nil || p.DeepCopy() != nil {
		t.Error("the copy of nil is not nil")
	}
}

func TestSchemeKnowsWhatIsServed(t *testing.T) {
	s := api.NewScheme()
	for _, gvk := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Pod"),
		{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
		{Version: "v1", Kind: "Status"},
		{Group: "meta.k8s.io", Version: "v1", Kind: "Table"},
		api.GroupVersion().WithKind("NodeHardware"),
		api.GroupVersion().WithKind("NodeHardwareList"),
		api.GroupVersion().WithKind("Placement"),
		api.GroupVersion().WithKind("DeleteOptions"),
	} {
		if !s.Recognizes(gvk) {
			t.Errorf("the scheme does not know %v", gvk)
		}
	}
	if s.IsGroupRegistered("apps") {
		t.Error("the scheme knows the group apps, which is not served")
	}
}

// fill sets every settable field to something that is not zero.
func fill(v reflect.Value, r *rand.Rand) {
	if v.Type() == reflect.TypeFor[metav1.Time]() {
		v.Set(reflect.ValueOf(metav1.Unix(1_700_000_000+r.Int64N(1_000_000), 0)))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), r)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "FieldsV1" {
				fill(v.Field(i), r)
			}
		}
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		}
		for i := range v.Len() {
			fill(v.Index(i), r)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, val := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, r)
		fill(val, r)
		v.SetMapIndex(key, val)
	case reflect.String:
		v.SetString(string(rune('a'+r.IntN(26))) + "x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(r.Int64N(1000) + 1)
	}
}

// shared returns the path of memory that a and b both point to, or "".
func shared(a, b reflect.Value, path string) string {
	if a.Type() == reflect.TypeFor[metav1.Time]() {
		return "" // its location is shared, and never written
	}
	switch a.Kind() {
	case reflect.Interface:
		return shared(a.Elem(), b.Elem(), path)
	case reflect.Pointer:
		if a.IsNil() {
			return ""
		}
		if a.Pointer() == b.Pointer() {
			return path
		}
		return shared(a.Elem(), b.Elem(), path)
	case reflect.Struct:
		for i := range a.NumField() {
			if at := shared(a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name); at != "" {
				return at
			}
		}
	case reflect.Slice:
		if a.Len() > 0 && a.Pointer() == b.Pointer() {
			return path
		}
		for i := range a.Len() {
			if at := shared(a.Index(i), b.Index(i), path+"[]"); at != "" {
				return at
			}
		}
	case reflect.Map:
		if !a.IsNil() && a.Pointer() == b.Pointer() {
			return path
		}
	}
	return ""
}
