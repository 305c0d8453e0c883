package openapi_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/openapi"
)

func load(t *testing.T) *openapi.Set {
	t.Helper()
	s, err := openapi.Load()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func unpack(t *testing.T, doc openapi.Document) []byte {
	t.Helper()
	zr, err := gzip.NewReader(bytes.NewReader(doc.Body))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func TestFind(t *testing.T) {
	s := load(t)
	tests := map[string]struct {
		path   string
		medias []string
		found  bool
		media  string
	}{
		"index":           {"/openapi/v3", nil, true, openapi.MediaJSON},
		"group":           {"/openapi/v3/apis/coordination.k8s.io/v1", []string{"application/json"}, true, openapi.MediaJSON},
		"core":            {"/openapi/v3/api/v1", []string{"*/*"}, true, openapi.MediaJSON},
		"second choice":   {"/openapi/v3/api/v1", []string{"application/com.github.proto-openapi.spec.v3@v1.0+protobuf", "application/json"}, true, openapi.MediaJSON},
		"no such form":    {"/openapi/v3/api/v1", []string{"application/com.github.proto-openapi.spec.v3@v1.0+protobuf"}, true, ""},
		"v2":              {"/openapi/v2", nil, true, openapi.MediaJSON},
		"v2 protobuf":     {"/openapi/v2", []string{openapi.MediaProtobuf}, true, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"},
		"no such group":   {"/openapi/v3/apis/apps/v1", nil, false, ""},
		"no such version": {"/openapi/v4", nil, false, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			doc, ok := s.Find(test.path, test.medias)
			if ok != test.found || doc.Media != test.media {
				t.Errorf("got %v %q, want %v %q", ok, doc.Media, test.found, test.media)
			}
		})
	}
}

// What stock kubectl asks of the documents before it creates or applies.
func TestDocumentsServeKubectl(t *testing.T) {
	s := load(t)
	index, _ := s.Find("/openapi/v3", nil)
	var paths struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(unpack(t, index), &paths); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"api/v1", "apis/coordination.k8s.io/v1", "apis/edge.bramble.dev/v1alpha1"} {
		doc, ok := s.Find("/openapi/v3/"+p, nil)
		if want := "/openapi/v3/" + p + "?hash=" + doc.Hash; !ok || paths.Paths[p].URL != want {
			t.Errorf("index has %q for %s, want %q", paths.Paths[p].URL, p, want)
		}
	}
	core, _ := s.Find("/openapi/v3/api/v1", nil)
	var doc struct {
		Paths map[string]struct {
			Patch struct {
				Parameters []struct {
					Name string `json:"name"`
				} `json:"parameters"`
				Kind map[string]string `json:"x-kubernetes-group-version-kind"`
			} `json:"patch"`
			Post struct {
				Kind map[string]string `json:"x-kubernetes-group-version-kind"`
			} `json:"post"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]struct {
				Description string                     `json:"description"`
				Properties  map[string]json.RawMessage `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(unpack(t, core), &doc); err != nil {
		t.Fatal(err)
	}
	patch := doc.Paths["/api/v1/namespaces/{namespace}/pods/{name}"].Patch
	if patch.Kind["kind"] != "Pod" || patch.Kind["version"] != "v1" {
		t.Errorf("PATCH of pods is for %v", patch.Kind)
	}
	for sub, want := range map[string][2]string{"eviction": {"policy", "Eviction"}, "binding": {"", "Binding"}} {
		if kind := doc.Paths["/api/v1/namespaces/{namespace}/pods/{name}/"+sub].Post.Kind; kind["group"] != want[0] || kind["kind"] != want[1] {
			t.Errorf("POST to pods/%s is for %v", sub, kind)
		}
	}
	named := ""
	for _, p := range patch.Parameters {
		named += p.Name + " "
	}
	if !strings.Contains(named, "fieldValidation") {
		t.Errorf("PATCH of pods has the parameters %s", named)
	}
	spec := doc.Components.Schemas["io.k8s.api.core.v1.PodSpec"]
	if spec.Description == "" || !strings.Contains(string(spec.Properties["containers"]), "x-kubernetes-patch-merge-key") {
		t.Errorf("PodSpec lacks a description or its merge keys: %+v", spec)
	}
}

// A list with keys is merged by them: without the schema it would be one value.
func TestTypeConverterKnowsListKeys(t *testing.T) {
	tc, err := openapi.TypeConverter()
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	pod.Spec.Containers = []corev1.Container{{Name: "web", Image: "nginx", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}
	typed, err := tc.ObjectToTyped(pod)
	if err != nil {
		t.Fatal(err)
	}
	set, err := typed.ToFieldSet()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`.spec.containers[name="web"].image`, `.spec.containers[name="web"].ports[containerPort=80,protocol="TCP"].containerPort`} {
		if !strings.Contains(set.String(), want) {
			t.Errorf("no %s in\n%s", want, set)
		}
	}
	back, err := tc.TypedToObject(typed)
	if err != nil {
		t.Fatal(err)
	}
	if kind := back.GetObjectKind().GroupVersionKind().Kind; kind != "Pod" {
		t.Errorf("came back as %q", kind)
	}
}

func TestTypeConverterKnowsOurKinds(t *testing.T) {
	tc, err := openapi.TypeConverter()
	if err != nil {
		t.Fatal(err)
	}
	obj := &api.NodeHardware{TypeMeta: metav1.TypeMeta{APIVersion: api.Group + "/" + api.Version, Kind: "NodeHardware"}}
	obj.Status.Model = "Raspberry Pi 5"
	if _, err := tc.ObjectToTyped(obj); err != nil {
		t.Error(err)
	}
	obj.Kind = "Unheard"
	if _, err := tc.ObjectToTyped(obj); err == nil {
		t.Error("an unknown kind got a type")
	}
}

func BenchmarkTypeConverterFirstUse(b *testing.B) {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	b.ReportAllocs()
	for b.Loop() {
		tc, err := openapi.TypeConverter()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := tc.ObjectToTyped(pod); err != nil {
			b.Fatal(err)
		}
	}
}
