package rest_test

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const configmaps = "/api/v1/namespaces/default/configmaps"

func TestCreateGetUpdateDelete(t *testing.T) {
	f := serve(t, nil)
	created := f.must(http.StatusCreated, "POST", configmaps, `{"metadata":{"name":"a"},"data":{"k":"v"}}`)
	if created.at(t, "metadata", "namespace") != "default" || created.at(t, "kind") != "ConfigMap" || created.at(t, "metadata", "resourceVersion") == nil {
		t.Errorf("created %s", created.body)
	}
	if got := created.header.Get("Bramble-Epoch"); got != "test-epoch" {
		t.Errorf("epoch header is %q", got)
	}
	got := f.must(http.StatusOK, "GET", configmaps+"/a", "")
	if got.body != created.body {
		t.Errorf("got %s, created %s", got.body, created.body)
	}
	again := f.must(http.StatusConflict, "POST", configmaps, `{"metadata":{"name":"a"}}`)
	if again.message(t) != `configmaps "a" already exists` {
		t.Errorf("second create: %s", again.body)
	}
	changed := f.must(http.StatusOK, "PUT", configmaps+"/a", strings.Replace(got.body, `"k":"v"`, `"k":"w"`, 1))
	if changed.at(t, "data", "k") != "w" {
		t.Errorf("updated %s", changed.body)
	}
	stale := f.must(http.StatusConflict, "PUT", configmaps+"/a", got.body)
	if !strings.Contains(stale.message(t), "the object has been modified") {
		t.Errorf("stale update: %s", stale.body)
	}
	deleted := f.must(http.StatusOK, "DELETE", configmaps+"/a", `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`)
	if deleted.at(t, "status") != "Success" || deleted.at(t, "details", "kind") != "configmaps" || deleted.at(t, "details", "uid") == nil {
		t.Errorf("deleted: %s", deleted.body)
	}
	gone := f.must(http.StatusNotFound, "GET", configmaps+"/a", "")
	if gone.message(t) != `configmaps "a" not found` || gone.at(t, "kind") != "Status" {
		t.Errorf("get of what is gone: %s", gone.body)
	}
}

func TestList(t *testing.T) {
	f := serve(t, nil)
	for _, body := range []string{
		`{"metadata":{"name":"a","labels":{"app":"x"}}}`, `{"metadata":{"name":"b","labels":{"app":"y"}}}`,
	} {
		f.must(http.StatusCreated, "POST", configmaps, body)
	}
	f.must(http.StatusCreated, "POST", "/api/v1/namespaces/other/configmaps", `{"metadata":{"name":"c","labels":{"app":"x"}}}`)
	tests := map[string]string{
		configmaps:           "a b",
		"/api/v1/configmaps": "a b c",
		"/api/v1/configmaps?labelSelector=app%3Dx":              "a c",
		configmaps + "?fieldSelector=metadata.name%3Db":         "b",
		configmaps + "?limit=1":                                 "a",
		"/api/v1/configmaps?limit=2&labelSelector=app%3Dx":      "a c",
		"/api/v1/configmaps?resourceVersion=0":                  "a b c",
		"/api/v1/configmaps?labelSelector=app+in+(y),app!=nope": "b",
	}
	for path, want := range tests {
		a := f.must(http.StatusOK, "GET", path, "")
		var names []string
		items, _ := a.at(t, "items").([]any)
		for i := range items {
			names = append(names, a.at(t, "items", i, "metadata", "name").(string))
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
		if a.at(t, "kind") != "ConfigMapList" || a.at(t, "metadata", "resourceVersion") == "" {
			t.Errorf("%s: not a list: %s", path, a.body)
		}
	}
	bad := map[string]int{
		configmaps + "?labelSelector=a+b+c":                              http.StatusBadRequest,
		configmaps + "?fieldSelector=spec.nope%3D1":                      http.StatusBadRequest,
		configmaps + "?resourceVersion=abc":                              http.StatusBadRequest,
		configmaps + "?resourceVersionMatch=Sometimes":                   http.StatusBadRequest,
		configmaps + "?resourceVersionMatch=Exact":                       http.StatusBadRequest,
		configmaps + "?resourceVersion=18446744073709551615":             http.StatusGatewayTimeout,
		configmaps + "?continue=abc":                                     http.StatusBadRequest,
		configmaps + "?labelSelector=" + strings.Repeat("a,", 10_000):    http.StatusBadRequest,
		configmaps + "?fieldSelector=" + strings.Repeat("a%3Db,", 8_000): http.StatusBadRequest,
		configmaps + "?limit=-1":                                         http.StatusBadRequest,
		configmaps + "?limit=many":                                       http.StatusBadRequest,
		"/api/v1/nothings":                                               http.StatusNotFound,
		"/api/v2/configmaps":                                             http.StatusNotFound,
		"/apis/apps/v1/deployments":                                      http.StatusNotFound,
		"/nowhere":                                                       http.StatusNotFound,
	}
	for path, code := range bad {
		if a := f.do("GET", path, ""); a.code != code || a.at(t, "kind") != "Status" {
			t.Errorf("%s: got %d %s, want %d", path, a.code, a.body, code)
		}
	}
}

func TestMethodsThatAreNotServed(t *testing.T) {
	f := serve(t, nil)
	for _, test := range [][2]string{
		{"DELETE", "/api/v1/configmaps"}, {"POST", "/api/v1/configmaps"}, {"PUT", configmaps}, {"POST", configmaps + "/a"},
		{"GET", "/apis/edge.bramble.dev/v1alpha1/namespaces/default/placements"},
	} {
		if a := f.do(test[0], test[1], `{}`); a.code != http.StatusMethodNotAllowed || a.at(t, "reason") != "MethodNotAllowed" {
			t.Errorf("%s %s: got %d %s", test[0], test[1], a.code, a.body)
		}
	}
}

func TestComputedKind(t *testing.T) {
	f := serve(t, nil)
	a := f.must(http.StatusOK, "GET", "/apis/edge.bramble.dev/v1alpha1/namespaces/default/placements/p", "")
	if a.at(t, "status", "message") != "computed" || a.at(t, "kind") != "Placement" || a.at(t, "apiVersion") != "edge.bramble.dev/v1alpha1" {
		t.Errorf("got %s", a.body)
	}
}

func TestProtobufBodies(t *testing.T) {
	f := serve(t, nil)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "pb"}, Data: map[string]string{"k": "v"}}
	a := f.must(http.StatusCreated, "POST", configmaps, protobuf(t, "v1", "ConfigMap", cm), "Content-Type", "application/vnd.kubernetes.protobuf",
		"Accept", "application/vnd.kubernetes.protobuf,application/json")
	if a.at(t, "data", "k") != "v" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %s", a.body)
	}
	zero := int64(0)
	opts := &metav1.DeleteOptions{GracePeriodSeconds: &zero}
	f.must(http.StatusOK, "DELETE", configmaps+"/pb", protobuf(t, "v1", "DeleteOptions", opts), "Content-Type", "application/vnd.kubernetes.protobuf")
	f.must(http.StatusBadRequest, "POST", configmaps, "k8s\x00\xff\xff", "Content-Type", "application/vnd.kubernetes.protobuf")
	f.must(http.StatusBadRequest, "POST", configmaps, "{}", "Content-Type", "application/vnd.kubernetes.protobuf")
	f.must(http.StatusBadRequest, "POST", configmaps, protobuf(t, "v1", "Secret", &corev1.Secret{}), "Content-Type", "application/vnd.kubernetes.protobuf")
}

func protobuf(t *testing.T, apiVersion, kind string, obj interface{ Marshal() ([]byte, error) }) string {
	t.Helper()
	raw, err := obj.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	body, err := unknown.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return "k8s\x00" + string(body)
}

func TestDryRunStoresNothing(t *testing.T) {
	f := serve(t, nil)
	f.must(http.StatusCreated, "POST", configmaps+"?dryRun=All", `{"metadata":{"name":"a"}}`)
	f.must(http.StatusNotFound, "GET", configmaps+"/a", "")
	f.must(http.StatusUnprocessableEntity, "POST", configmaps+"?dryRun=Some", `{"metadata":{"name":"a"}}`)
}

func TestGracefulDelete(t *testing.T) {
	f := serve(t, nil)
	const pods = "/api/v1/namespaces/default/pods"
	f.must(http.StatusCreated, "POST", pods, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}],"nodeName":"n1"}}`)
	ending := f.must(http.StatusOK, "DELETE", pods+"/p?gracePeriodSeconds=7", "")
	if ending.at(t, "kind") != "Pod" || ending.at(t, "metadata", "deletionGracePeriodSeconds") != 7.0 {
		t.Errorf("a pod that is ending: %s", ending.body)
	}
	f.must(http.StatusOK, "GET", pods+"/p", "")
	f.must(http.StatusBadRequest, "DELETE", pods+"/p?gracePeriodSeconds=soon", "")
	f.must(http.StatusConflict, "DELETE", pods+"/p", `{"preconditions":{"uid":"other"}}`)
	f.must(http.StatusUnprocessableEntity, "DELETE", pods+"/p", `{"propagationPolicy":"Sideways"}`)
	over := f.must(http.StatusOK, "DELETE", pods+"/p", `{"gracePeriodSeconds":0}`)
	if over.at(t, "status") != "Success" {
		t.Errorf("deleted at once: %s", over.body)
	}
	f.must(http.StatusNotFound, "GET", pods+"/p", "")
}
