package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/auth"
	"bramble.dev/bramble/server/objects"
	"bramble.dev/bramble/server/rest"
	"bramble.dev/bramble/server/store"
)

// testKinds is a small table: enough to meet every branch of the generic code.
func testKinds() []*objects.Kind {
	return []*objects.Kind{
		{
			GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"},
			Plural:           "namespaces", Singular: "namespace", ShortNames: []string{"ns"},
			New:          func() objects.Object { return &corev1.Namespace{} },
			NewList:      func() runtime.Object { return &corev1.NamespaceList{} },
			Subresources: []objects.Subresource{{Name: "finalize", Verbs: []string{"update"}, Update: func(obj, old objects.Object) {}}},
		},
		{
			GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
			Plural:           "configmaps", Singular: "configmap", ShortNames: []string{"cm"}, Namespaced: true,
			New:     func() objects.Object { return &corev1.ConfigMap{} },
			NewList: func() runtime.Object { return &corev1.ConfigMapList{} },
			Columns: []metav1.TableColumnDefinition{{Name: "Data", Type: "integer"}, {Name: "Wide", Type: "string", Priority: 1}},
			Row: func(obj objects.Object, _ time.Time) []any {
				return []any{len(obj.(*corev1.ConfigMap).Data), "w"}
			},
			Strategy: objects.Strategy{
				Validate: func(obj objects.Object) field.ErrorList {
					if obj.(*corev1.ConfigMap).Data["bad"] != "" {
						return field.ErrorList{field.Invalid(field.NewPath("data").Key("bad"), "x", "is bad")}
					}
					return nil
				},
				Warnings: func(obj objects.Object) []string {
					if obj.(*corev1.ConfigMap).Data["odd"] != "" {
						return []string{"data[odd]: is odd"}
					}
					return nil
				},
			},
		},
		podKind(),
		{
			GroupVersionKind: schema.GroupVersionKind{Group: api.Group, Version: api.Version, Kind: "Placement"},
			Plural:           "placements", Singular: "placement", Namespaced: true,
			New:     func() objects.Object { return &api.Placement{} },
			NewList: func() runtime.Object { return &api.PlacementList{} },
			Read: func(_ context.Context, namespace, name string) (objects.Object, error) {
				p := &api.Placement{}
				p.Namespace, p.Name, p.Status.Message = namespace, name, "computed"
				return p, nil
			},
		},
	}
}

func podKind() *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Plural:           "pods", Singular: "pod", ShortNames: []string{"po"}, Categories: []string{"all"}, Namespaced: true,
		New:        func() objects.Object { return &corev1.Pod{} },
		NewList:    func() runtime.Object { return &corev1.PodList{} },
		Fields:     func(o objects.Object) fields.Set { return fields.Set{"spec.nodeName": o.(*corev1.Pod).Spec.NodeName} },
		FieldNames: []string{"spec.nodeName"},
		Strategy: objects.Strategy{
			PrepareUpdate: func(obj, old objects.Object) {
				obj.(*corev1.Pod).Status = old.(*corev1.Pod).Status
			},
			Grace: func(obj objects.Object, requested *int64) int64 {
				switch {
				case obj.(*corev1.Pod).Spec.NodeName == "":
					return 0
				case requested != nil:
					return *requested
				}
				return 30
			},
		},
		Subresources: []objects.Subresource{
			{Name: "status", Verbs: []string{"get", "update", "patch"}, Update: func(obj, old objects.Object) {
				old.(*corev1.Pod).Status = obj.(*corev1.Pod).Status
			}},
			{Name: "binding", Verbs: []string{"create"}, GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Binding"}, Update: func(obj, old objects.Object) {
				from, to := obj.(*corev1.Pod), old.(*corev1.Pod)
				to.Spec.NodeName, to.Status.Conditions, to.Annotations = from.Spec.NodeName, from.Status.Conditions, from.Annotations
			}},
			{Name: "log", Verbs: []string{"get"}},
			{Name: "exec", Verbs: []string{"get", "create"}},
			{Name: "portforward", Verbs: []string{"get", "create"}},
			{Name: "proxy", Verbs: []string{"get", "create", "update", "patch", "delete"}},
		},
	}
}

type attributes = auth.Attributes

// users is an Authenticator by header and an Authorizer that refuses "nobody".
type users struct{}

func (users) Authenticate(r *http.Request) (api.User, bool, error) {
	switch name := r.Header.Get("Test-User"); name {
	case "none":
		return api.User{}, false, nil
	case "forged":
		return api.User{}, false, errors.New("forged")
	case "":
		return api.User{Name: "admin", Groups: []string{api.GroupMasters}}, true, nil
	default:
		return api.User{Name: name}, true, nil
	}
}

func (users) Authorize(_ context.Context, a auth.Attributes) (bool, string, error) {
	return a.User.Name != "nobody" && a.User.Name != api.UserAnonymous, "", nil
}

// fixture is a real server: SQLite, registry and HTTP.
type fixture struct {
	*httptest.Server
	t        *testing.T
	registry *objects.Registry
	log      *bytes.Buffer
}

func serve(t *testing.T, change func(*rest.Config)) *fixture {
	t.Helper()
	return serveIn(t, t.Context(), change)
}

// eachWay runs a test with a server that is reached directly, and with one that is
// reached through a node's tunnel.
func eachWay(t *testing.T, test func(*testing.T, *fixture)) {
	t.Run("direct", func(t *testing.T) { test(t, serve(t, nil)) })
	t.Run("tunnel", func(t *testing.T) { test(t, serveIn(t, api.WithSession(t.Context()), nil)) })
}

// serveIn has requests come with the values of ctx.
func serveIn(t *testing.T, ctx context.Context, change func(*rest.Config)) *fixture {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	registry, err := objects.NewRegistry(db, testKinds(), objects.Config{
		NamespaceOptional: func(*objects.Kind, string) bool { return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, registry: registry, log: &bytes.Buffer{}}
	cfg := rest.Config{
		Registry: registry, Authenticator: users{}, Authorizer: users{}, Epoch: "test-epoch", Version: "0.1.0",
		Log: slog.New(slog.NewTextHandler(f.log, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	handler, err := rest.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f.Server = httptest.NewUnstartedServer(handler)
	f.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	f.Start()
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// answer is a response that was read.
type answer struct {
	code   int
	header http.Header
	body   string
}

// do sends a request. headers are pairs.
func (f *fixture) do(method, path, body string, headers ...string) answer {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, f.URL+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// must is do for a request that has to succeed with code.
func (f *fixture) must(code int, method, path, body string, headers ...string) answer {
	f.t.Helper()
	a := f.do(method, path, body, headers...)
	if a.code != code {
		f.t.Fatalf("%s %s: got %d, want %d: %s", method, path, a.code, code, a.body)
	}
	return a
}

// at finds a value in a JSON answer by keys and indices.
func (a answer) at(t *testing.T, keys ...any) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("not JSON: %v: %s", err, a.body)
	}
	for _, key := range keys {
		switch key := key.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[key]
		case int:
			l, _ := v.([]any)
			if key >= len(l) {
				return nil
			}
			v = l[key]
		}
	}
	return v
}

func (a answer) message(t *testing.T) string {
	s, _ := a.at(t, "message").(string)
	return s
}
