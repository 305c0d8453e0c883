package rest_test

import (
	"net/http"
	"strings"
	"testing"
)

// Bad bodies, in the words that Kubernetes has for them.
func TestBadBodies(t *testing.T) {
	const yaml = "application/yaml"
	tests := []struct {
		name, method, path, media, body string
		code                            int
		message                         string // a part of it
	}{
		{"malformed JSON", "POST", configmaps, "", "{\n\"metadata\": {\n\"name\": }", 400, "json: line 3: invalid character '}'"},
		{"cut JSON", "POST", configmaps, "", `{"metadata":`, 400, "unexpected end of JSON input"},
		{"empty", "POST", configmaps, "", "", 400, "it is empty, and must be a ConfigMap"},
		{"malformed YAML", "POST", configmaps, yaml, "metadata:\n  name: a\n data: x\n", 400, "yaml: line 2"},
		{"not an object", "POST", configmaps, "", `[1]`, 400, "cannot unmarshal array"},
		{"wrong type", "POST", configmaps, "", `{"metadata":{"name":"a"},"data":{"k":5}}`, 400, `ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string`},
		{"wrong kind", "POST", configmaps, "", `{"kind":"Secret","metadata":{"name":"a"}}`, 400, `Secret in version "v1" cannot be handled as a ConfigMap`},
		{"wrong version", "POST", configmaps, "", `{"apiVersion":"v2","metadata":{"name":"a"}}`, 400, "the API version in the data (v2) does not match the expected API version (v1)"},
		{"wrong namespace", "POST", configmaps, "", `{"metadata":{"name":"a","namespace":"b"}}`, 400, "the namespace of the provided object does not match the namespace sent on the request"},
		{"wrong name", "PUT", configmaps + "/a", "", `{"metadata":{"name":"b"}}`, 400, "the name of the object (b) does not match the name on the URL (a)"},
		{"no name", "PUT", configmaps + "/a", "", `{"metadata":{}}`, 400, "name must be provided"},
		{"unknown media type", "POST", configmaps, "text/html", `<p>`, 415, "accepted media types include: application/json, application/yaml"},
		{"no media type", "POST", configmaps, ";;", `{}`, 400, "Content-Type"},
		{"invalid object", "POST", configmaps, "", `{"metadata":{"name":"a"},"data":{"bad":"x"}}`, 422, `data[bad]: Invalid value: "x": is bad`},
		{"too large", "POST", configmaps, "", `{"metadata":{"name":"a"},"data":{"k":"` + strings.Repeat("x", 3<<20) + `"}}`, 413, "limit is 3145728"},
		{"unknown validation", "POST", configmaps + "?fieldValidation=Loose", "", `{"metadata":{"name":"a"}}`, 422, "fieldValidation: Unsupported value"},
		{"long manager", "POST", configmaps + "?fieldManager=" + strings.Repeat("m", 129), "", `{"metadata":{"name":"a"}}`, 422, "fieldManager: Too long"},
	}
	f := serve(t, nil)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var headers []string
			if test.media != "" {
				headers = []string{"Content-Type", test.media}
			}
			a := f.do(test.method, test.path, test.body, headers...)
			if a.code != test.code || !strings.Contains(a.message(t), test.message) {
				t.Errorf("got %d %.400s\nwant %d %s", a.code, a.body, test.code, test.message)
			}
			if a.at(t, "kind") != "Status" || a.at(t, "code") != float64(test.code) {
				t.Errorf("not a Status: %.400s", a.body)
			}
		})
	}
}

func TestFieldValidation(t *testing.T) {
	const unknown = `{"metadata":{"name":"a","lables":{}},"foo":1}`
	f := serve(t, nil)
	strict := f.must(http.StatusBadRequest, "POST", configmaps+"?fieldValidation=Strict", unknown)
	const want = `ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "metadata.lables", unknown field "foo"`
	if strict.message(t) != want {
		t.Errorf("strict: %s\nwant %s", strict.message(t), want)
	}
	warned := f.must(http.StatusCreated, "POST", configmaps, unknown)
	got := strings.Join(warned.header.Values("Warning"), "\n")
	if got != "299 - \"unknown field \\\"metadata.lables\\\"\"\n299 - \"unknown field \\\"foo\\\"\"" {
		t.Errorf("warnings: %s", got)
	}
	ignored := f.must(http.StatusOK, "PUT", configmaps+"/a?fieldValidation=Ignore", unknown)
	if w := ignored.header.Values("Warning"); w != nil {
		t.Errorf("ignored, but warned: %v", w)
	}
	double := f.must(http.StatusBadRequest, "POST", configmaps+"?fieldValidation=Strict", `{"metadata":{"name":"b"},"data":{"k":"1","k":"2"}}`)
	if !strings.Contains(double.message(t), `duplicate field "data.k"`) {
		t.Errorf("double: %s", double.body)
	}
	yaml := f.must(http.StatusBadRequest, "POST", configmaps+"?fieldValidation=Strict", "metadata:\n  name: b\ndata:\n  k: 1x\n  k: 2x\n", "Content-Type", "application/yaml")
	if !strings.Contains(yaml.message(t), `line 5: key "k" already set in map`) {
		t.Errorf("double in YAML: %s", yaml.body)
	}
	patched := f.must(http.StatusBadRequest, "PATCH", configmaps+"/a?fieldValidation=Strict", `{"bar":1}`, "Content-Type", mergePatch)
	if !strings.Contains(patched.message(t), `unknown field "bar"`) {
		t.Errorf("patch: %s", patched.body)
	}
}

func TestKindsOwnWarnings(t *testing.T) {
	f := serve(t, nil)
	a := f.must(http.StatusCreated, "POST", configmaps, `{"metadata":{"name":"a"},"data":{"odd":"1"}}`)
	if got := a.header.Get("Warning"); got != `299 - "data[odd]: is odd"` {
		t.Errorf("got %q", got)
	}
}
