package main

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// documentV3 is /openapi/v3/apis/GROUP/VERSION.
func documentV3(gv schema.GroupVersion) (*spec3.OpenAPI, error) {
	schemas, err := schemasV3(rootsOf(gv))
	if err != nil {
		return nil, err
	}
	doc := &spec3.OpenAPI{
		Version: "3.0.0", Info: info(),
		Paths:      &spec3.Paths{Paths: make(map[string]*spec3.Path)},
		Components: &spec3.Components{Schemas: schemas},
	}
	for path, operations := range operationsOf(gv) {
		p := &spec3.Path{PathProps: spec3.PathProps{Parameters: parametersV3(pathParameters(path))}}
		for _, o := range operations {
			setV3(p, o.method, operationV3(path, o))
		}
		doc.Paths.Paths[path] = p
	}
	return doc, nil
}

func setV3(p *spec3.Path, method string, o *spec3.Operation) {
	switch method {
	case http.MethodGet:
		p.Get = o
	case http.MethodPost:
		p.Post = o
	case http.MethodPut:
		p.Put = o
	case http.MethodPatch:
		p.Patch = o
	case http.MethodDelete:
		p.Delete = o
	}
}

func operationV3(path string, o operation) *spec3.Operation {
	out := &spec3.Operation{
		VendorExtensible: extensionsOf(o),
		OperationProps: spec3.OperationProps{
			Tags: []string{tagOf(o)}, Description: o.about, OperationId: o.operationID(path),
			Parameters: parametersV3(o.query),
			Responses: &spec3.Responses{ResponsesProps: spec3.ResponsesProps{StatusCodeResponses: map[int]*spec3.Response{
				o.code: {ResponseProps: spec3.ResponseProps{Description: http.StatusText(o.code), Content: contentV3(o.answer, []string{"application/json"})}},
			}}},
		},
	}
	if o.body != "" {
		out.RequestBody = &spec3.RequestBody{RequestBodyProps: spec3.RequestBodyProps{
			Content: contentV3(o.body, o.consumes), Required: o.method != http.MethodDelete,
		}}
	}
	return out
}

func contentV3(typeName string, medias []string) map[string]*spec3.MediaType {
	content := make(map[string]*spec3.MediaType)
	for _, media := range medias {
		s := spec.StringProperty()
		if typeName == "" {
			media = "text/plain"
		} else {
			s = spec.RefSchema("#/components/schemas/" + modelName(typeName))
		}
		content[media] = &spec3.MediaType{MediaTypeProps: spec3.MediaTypeProps{Schema: s}}
	}
	return content
}

func parametersV3(all []parameter) []*spec3.Parameter {
	var out []*spec3.Parameter
	for _, p := range all {
		in := "query"
		if p.path {
			in = "path"
		}
		s := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{p.kind}, UniqueItems: true}}
		out = append(out, &spec3.Parameter{ParameterProps: spec3.ParameterProps{
			Name: p.name, In: in, Description: p.about, Required: p.path, Schema: s,
		}})
	}
	return out
}

func extensionsOf(o operation) spec.VendorExtensible {
	return spec.VendorExtensible{Extensions: spec.Extensions{
		"x-kubernetes-action":             o.action,
		"x-kubernetes-group-version-kind": kindValue(o.resource.GroupVersionKind),
	}}
}

func tagOf(o operation) string {
	group := o.resource.Group
	if group == "" {
		group = "core"
	}
	return group + "_" + o.resource.Version
}
