package rest

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bramble.dev/bramble/server/objects"
)

// What no client can make the parser do: find a name without a resource, or a
// tail without a subresource; and every path has a verb.
func FuzzParsePath(f *testing.F) {
	for _, path := range []string{
		"/", "/api/v1/pods", "/api/v1/namespaces/a/pods/b/log", "/apis/g/v1/namespaces/a/things/b/proxy/x/y/",
		"/api/v1/namespaces/a/status", "//api//v1", "/apis/g/v1", "/api/v1/namespaces/a/pods/b/proxy/",
	} {
		f.Add("GET", path, true)
	}
	f.Fuzz(func(t *testing.T, method, path string, watch bool) {
		in := parsePath(method, path, watch)
		if in.IsResource && in.Resource == "" && in.Name != "" && !strings.Contains(path, "//") {
			t.Errorf("%q: %+v", path, in)
		}
		if in.Tail != "" && (in.Subresource == "" && !strings.Contains(path, "//") || in.Tail[0] != '/') {
			t.Errorf("%q: %+v", path, in)
		}
		if !in.IsResource && (in.Resource != "" || in.Namespace != "" || in.Name != "") {
			t.Errorf("%q: %+v", path, in)
		}
		if in.Verb != strings.ToLower(in.Verb) {
			t.Errorf("%q: %+v", path, in)
		}
	})
}

// Whatever the bytes, decoding ends in an object or in an error that a client
// can be shown.
func FuzzDecode(f *testing.F) {
	f.Add(mediaJSON, []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]}}`))
	f.Add(mediaYAML, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"))
	f.Add(mediaYAML, []byte("a: &a [1]\nb: *a\n"))
	f.Add(mediaProtobuf, []byte("k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x02\x0a\x00"))
	f.Fuzz(func(t *testing.T, media string, data []byte) {
		want := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
		_, err := decode(data, media, &corev1.Pod{}, want)
		if err == nil {
			return
		}
		if status, known := statusOf(err); !known || status.Code < 400 || status.Code >= 500 {
			t.Errorf("%s %q: %v", media, data, err)
		}
	})
}

// Whatever the patch, it ends in an object or in an error for the client.
func FuzzPatch(f *testing.F) {
	f.Add(string(types.JSONPatchType), []byte(`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}},{"op":"copy","from":"/spec","path":"/x"}]`))
	f.Add(string(types.JSONPatchType), []byte(`[{"op":"move","from":"/spec/containers/0","path":"/spec/containers/-"},{"op":"test","path":"","value":null}]`))
	f.Add(string(types.MergePatchType), []byte(`{"spec":{"containers":null}}`))
	f.Add(string(types.StrategicMergePatchType), []byte(`{"spec":{"containers":[{"name":"c","$patch":"delete"}],"$setElementOrder/containers":[{"name":"c"}]}}`))
	f.Fuzz(func(t *testing.T, media string, data []byte) {
		k := &objects.Kind{
			GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
			New:              func() objects.Object { return &corev1.Pod{} },
		}
		p, err := readPatch(types.PatchType(media), data, k.New)
		if err == nil {
			_, _, err = patched(k, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "p"},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}, {Name: "d"}}},
			}, p)
		}
		if err == nil {
			return
		}
		if status, known := statusOf(err); !known || status.Code < 400 || status.Code >= 500 {
			t.Errorf("%s %q: %v", media, data, err)
		}
	})
}

func FuzzParseAccept(f *testing.F) {
	f.Add("application/json;as=Table;v=v1;g=meta.k8s.io,*/*;q=0.1")
	f.Add("application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
	f.Fuzz(func(t *testing.T, header string) {
		last := 1e300
		for _, c := range parseAccept([]string{header}) {
			if c.q <= 0 || c.q > last {
				t.Errorf("%q: quality %v after %v", header, c.q, last)
			}
			last = c.q
		}
		r := &http.Request{Header: http.Header{"Accept": {header}}}
		if _, err := accepts(r, true); err != nil {
			if status, _ := statusOf(err); status.Code != http.StatusNotAcceptable {
				t.Errorf("%q: %v", header, err)
			}
		}
	})
}
