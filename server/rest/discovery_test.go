package rest_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"strings"
	"testing"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDiscovery(t *testing.T) {
	f := serve(t, nil)
	if a := f.must(200, "GET", "/api", ""); a.at(t, "versions", 0) != "v1" {
		t.Errorf("/api: %s", a.body)
	}
	groups := f.must(200, "GET", "/apis", "")
	if groups.at(t, "groups", 0, "name") != "edge.bramble.dev" || groups.at(t, "groups", 0, "preferredVersion", "groupVersion") != "edge.bramble.dev/v1alpha1" {
		t.Errorf("/apis: %s", groups.body)
	}
	f.must(200, "GET", "/apis/edge.bramble.dev", "")
	f.must(200, "GET", "/apis/edge.bramble.dev/", "")
	var list metav1.APIResourceList
	if err := json.Unmarshal([]byte(f.must(200, "GET", "/api/v1", "").body), &list); err != nil {
		t.Fatal(err)
	}
	found := map[string]metav1.APIResource{}
	for _, r := range list.APIResources {
		found[r.Name] = r
	}
	if r := found["pods"]; r.Kind != "Pod" || !r.Namespaced || r.ShortNames[0] != "po" || r.SingularName != "pod" || strings.Join(r.Verbs, " ") != "create delete deletecollection get list patch update watch" {
		t.Errorf("pods: %+v", r)
	}
	if r := found["pods/binding"]; r.Kind != "Binding" || strings.Join(r.Verbs, " ") != "create" {
		t.Errorf("pods/binding: %+v", r)
	}
	if r := found["namespaces"]; r.Namespaced {
		t.Errorf("namespaces: %+v", r)
	}
}

func TestAggregatedDiscovery(t *testing.T) {
	const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
	f := serve(t, nil)
	a := f.must(200, "GET", "/api", "", "Accept", accept)
	if a.header.Get("Content-Type") != "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" {
		t.Errorf("sent as %s", a.header.Get("Content-Type"))
	}
	var list apidiscovery.APIGroupDiscoveryList
	if err := json.Unmarshal([]byte(a.body), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != "" || len(list.Items[0].Versions[0].Resources) != 3 {
		t.Fatalf("got %s", a.body)
	}
	same := f.do("GET", "/api", "", "Accept", accept, "If-None-Match", a.header.Get("ETag"))
	if same.code != 304 || same.body != "" {
		t.Errorf("unchanged: got %d %s", same.code, same.body)
	}
	older := f.must(200, "GET", "/apis", "", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json")
	if older.at(t, "kind") != "APIGroupList" {
		t.Errorf("an older client got %s", older.body)
	}
}

func TestOpenAPI(t *testing.T) {
	f := serve(t, nil)
	index := f.must(200, "GET", "/openapi/v3", "")
	url, _ := index.at(t, "paths", "api/v1", "serverRelativeURL").(string)
	packed := f.must(200, "GET", url, "", "Accept-Encoding", "gzip")
	if packed.header.Get("Content-Encoding") != "gzip" || !strings.Contains(packed.header.Get("Cache-Control"), "immutable") {
		t.Errorf("headers %v", packed.header)
	}
	zr, err := gzip.NewReader(bytes.NewReader([]byte(packed.body)))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	plain := f.must(200, "GET", url, "")
	if plain.body != string(unpacked) || plain.at(t, "openapi") != "3.0.0" {
		t.Error("the plain and the compressed document differ")
	}
	if a := f.do("GET", url, "", "If-None-Match", plain.header.Get("ETag")); a.code != 304 {
		t.Errorf("unchanged: got %d", a.code)
	}
	f.must(200, "GET", "/openapi/v2", "", "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
	f.must(406, "GET", "/openapi/v2", "", "Accept", "text/html")
	f.must(404, "GET", "/openapi/v3/apis/none/v1", "")
}
