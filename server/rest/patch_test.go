package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const (
	jsonPatch      = "application/json-patch+json"
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
	pods           = "/api/v1/namespaces/default/pods"
)

func TestPatchTypes(t *testing.T) {
	tests := []struct {
		name, media, patch string
		code               int
		keys               []any
		want               any
	}{
		{"json add", jsonPatch, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`, 200, []any{"metadata", "labels", "a"}, "b"},
		{"json test holds", jsonPatch, `[{"op":"test","path":"/spec/containers/0/name","value":"c"},{"op":"replace","path":"/spec/containers/0/image","value":"x"}]`, 200, []any{"spec", "containers", 0, "image"}, "x"},
		{"json copy", jsonPatch, `[{"op":"copy","from":"/spec/containers/0/image","path":"/spec/hostname"}]`, 200, []any{"spec", "hostname"}, "i"},
		{"json test fails", jsonPatch, `[{"op":"test","path":"/spec/hostname","value":"z"}]`, 422, []any{"reason"}, "Invalid"},
		{"json missing path", jsonPatch, `[{"op":"remove","path":"/spec/nope"}]`, 422, []any{"reason"}, "Invalid"},
		{"json bad operation", jsonPatch, `[{"op":"explode","path":"/spec"}]`, 400, []any{"reason"}, "BadRequest"},
		{"json no list", jsonPatch, `{"op":"add"}`, 400, []any{"reason"}, "BadRequest"},
		{"json wrong type", jsonPatch, `[{"op":"replace","path":"/spec/containers","value":"text"}]`, 422, []any{"reason"}, "Invalid"},
		{"merge", mergePatch, `{"spec":{"hostname":"h"}}`, 200, []any{"spec", "hostname"}, "h"},
		{"merge replaces lists", mergePatch, `{"spec":{"containers":[{"name":"d"}]}}`, 200, []any{"spec", "containers", 0, "name"}, "d"},
		{"merge null", mergePatch, `null`, 400, []any{"reason"}, "BadRequest"},
		{"merge malformed", mergePatch, "{\n\"a\": }", 400, []any{"reason"}, "BadRequest"},
		{"strategic merges lists by name", strategicPatch, `{"spec":{"containers":[{"name":"d","image":"j"}]}}`, 200, []any{"spec", "containers", 1, "name"}, "c"},
		{"strategic bad directive", strategicPatch, `{"spec":{"$patch":"sideways"}}`, 422, []any{"reason"}, "Invalid"},
		{"renames", mergePatch, `{"metadata":{"name":"other"}}`, 400, []any{"message"}, "the name of the object (other) does not match the name on the URL (p)"},
		{"moves", mergePatch, `{"metadata":{"namespace":"other"}}`, 400, []any{"message"}, "the namespace of the provided object does not match the namespace sent on the request"},
		{"stale", mergePatch, `{"metadata":{"resourceVersion":"1"}}`, 409, []any{"reason"}, "Conflict"},
		{"unknown type", "application/xml-patch", `<a/>`, 415, []any{"reason"}, "UnsupportedMediaType"},
		{"apply", applyPatch, "apiVersion: v1\nkind: Pod\nmetadata: {labels: {from: apply}}\n", 200, []any{"metadata", "labels", "from"}, "apply"},
		{"apply of another kind", applyPatch, "apiVersion: v1\nkind: Secret\n", 400, []any{"reason"}, "BadRequest"},
		{"apply malformed", applyPatch, "a: b: c", 400, []any{"reason"}, "BadRequest"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := serve(t, nil)
			f.must(201, "POST", pods, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
			a := f.do("PATCH", pods+"/p?fieldManager=test", test.patch, "Content-Type", test.media)
			if a.code != test.code || a.at(t, test.keys...) != test.want {
				t.Errorf("got %d %s\nwant %d with %v = %v", a.code, a.body, test.code, test.keys, test.want)
			}
		})
	}
}

func TestPatchOfStatusChangesNothingElse(t *testing.T) {
	f := serve(t, nil)
	f.must(201, "POST", pods, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	a := f.must(200, "PATCH", pods+"/p/status", `{"spec":{"hostname":"x"},"status":{"phase":"Running"}}`, "Content-Type", strategicPatch)
	if a.at(t, "status", "phase") != "Running" || a.at(t, "spec", "hostname") != nil {
		t.Errorf("got %s", a.body)
	}
	b := f.must(200, "PATCH", pods+"/p", `{"status":{"phase":"Failed"}}`, "Content-Type", mergePatch)
	if b.at(t, "status", "phase") != "Running" {
		t.Errorf("status was changed through the object: %s", b.body)
	}
}

func TestApplyCreates(t *testing.T) {
	f := serve(t, nil)
	const body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\ndata: {k: v}\n"
	f.must(http.StatusBadRequest, "PATCH", configmaps+"/made", body, "Content-Type", applyPatch)
	a := f.must(http.StatusCreated, "PATCH", configmaps+"/made?fieldManager=one", body, "Content-Type", applyPatch)
	if a.at(t, "data", "k") != "v" {
		t.Errorf("got %s", a.body)
	}
	other := strings.Replace(body, "k: v", "k: w", 1)
	conflict := f.must(http.StatusConflict, "PATCH", configmaps+"/made?fieldManager=two", other, "Content-Type", applyPatch)
	if conflict.at(t, "details", "causes", 0, "field") != ".data.k" {
		t.Errorf("conflict: %s", conflict.body)
	}
	f.must(http.StatusOK, "PATCH", configmaps+"/made?fieldManager=two&force=true", other, "Content-Type", applyPatch)
	f.must(http.StatusBadRequest, "PATCH", configmaps+"/made?fieldManager=one&fieldValidation=Strict", body+"foo: 1\n", "Content-Type", applyPatch)
}

// A copy doubles what it copies: the document must not grow without bound.
func TestPatchBombIsRefused(t *testing.T) {
	f := serve(t, nil)
	f.must(201, "POST", configmaps, `{"metadata":{"name":"a"},"data":{"k":"`+strings.Repeat("x", 1000)+`"}}`)
	ops := []string{`{"op":"add","path":"/x","value":{"k":"` + strings.Repeat("x", 1000) + `"}}`}
	for i := range 40 {
		ops = append(ops, fmt.Sprintf(`{"op":"copy","from":"/x","path":"/x/%d"}`, i))
	}
	a := f.do("PATCH", configmaps+"/a", "["+strings.Join(ops, ",")+"]", "Content-Type", jsonPatch)
	if a.code != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d %.300s", a.code, a.body)
	}
	many := "[" + strings.Repeat(`{"op":"test","path":"/data/k","value":"x"},`, 10000) + `{"op":"remove","path":"/data"}]`
	if a := f.do("PATCH", configmaps+"/a", many, "Content-Type", jsonPatch); a.code != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d %.300s", a.code, a.body)
	}
}
