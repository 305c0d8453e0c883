package rest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bramble.dev/bramble/server/rest"
)

const tableMedia = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

func TestTable(t *testing.T) {
	now := time.Now()
	f := serve(t, func(c *rest.Config) { c.Now = func() time.Time { return now.Add(3*time.Hour + 30*time.Second) } })
	f.must(201, "POST", configmaps, `{"metadata":{"name":"a"},"data":{"k":"v"}}`)
	a := f.must(200, "GET", configmaps, "", "Accept", tableMedia)
	var columns []string
	for i := range 5 {
		if c, ok := a.at(t, "columnDefinitions", i, "name").(string); ok {
			columns = append(columns, fmt.Sprintf("%s/%v", c, a.at(t, "columnDefinitions", i, "priority")))
		}
	}
	if got := strings.Join(columns, " "); got != "Name/0 Data/0 Age/0 Wide/1" {
		t.Errorf("columns %s", got)
	}
	if got := fmt.Sprint(a.at(t, "rows", 0, "cells")); got != "[a 1 3h w]" {
		t.Errorf("cells %s", got)
	}
	if a.at(t, "rows", 0, "object", "kind") != "PartialObjectMetadata" || a.at(t, "rows", 0, "object", "data") != nil {
		t.Errorf("object %v", a.at(t, "rows", 0, "object"))
	}
	whole := f.must(200, "GET", configmaps+"/a?includeObject=Object", "", "Accept", tableMedia)
	if whole.at(t, "rows", 0, "object", "data", "k") != "v" {
		t.Errorf("with object: %s", whole.body)
	}
	none := f.must(200, "GET", configmaps+"?includeObject=None", "", "Accept", tableMedia)
	if none.at(t, "rows", 0, "object") != nil {
		t.Errorf("without object: %s", none.body)
	}
	f.must(400, "GET", configmaps+"?includeObject=Some", "", "Accept", tableMedia)
	empty := f.must(200, "GET", pods, "", "Accept", tableMedia)
	if rows, ok := empty.at(t, "rows").([]any); !ok || len(rows) != 0 {
		t.Errorf("empty: %s", empty.body)
	}
}

func TestMetadataOnly(t *testing.T) {
	f := serve(t, nil)
	f.must(201, "POST", configmaps, `{"metadata":{"name":"a"},"data":{"k":"v"}}`)
	a := f.must(200, "GET", configmaps, "", "Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	if a.at(t, "kind") != "PartialObjectMetadataList" || a.at(t, "items", 0, "metadata", "name") != "a" || a.at(t, "items", 0, "data") != nil {
		t.Errorf("got %s", a.body)
	}
	one := f.must(200, "GET", configmaps+"/a", "", "Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	if one.at(t, "kind") != "PartialObjectMetadata" || one.at(t, "data") != nil {
		t.Errorf("got %s", one.body)
	}
}

func TestNegotiation(t *testing.T) {
	f := serve(t, nil)
	f.must(201, "POST", configmaps, `{"metadata":{"name":"a"}}`)
	for accept, code := range map[string]int{
		"application/json": 200, "*/*": 200, "application/*;q=0.5": 200, "text/html, */*;q=0.1": 200,
		"application/vnd.kubernetes.protobuf, application/json;q=0.9":        200,
		"application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json": 200,
		"application/vnd.kubernetes.protobuf":                                406,
		"application/json;q=0":                                               406,
		"application/json;as=Table;v=v9;g=meta.k8s.io":                       406,
		"text/html": 406,
	} {
		a := f.do("GET", configmaps+"/a", "", "Accept", accept)
		if a.code != code || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: got %d %s", accept, a.code, a.body)
		}
	}
}
