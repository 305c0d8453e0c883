package main

import (
	"net/http"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// documentV2 is /openapi/v2: all groups in one document.
func documentV2() (*spec.Swagger, error) {
	var roots []string
	for _, gv := range groupVersions() {
		roots = append(roots, rootsOf(gv)...)
	}
	doc, err := swaggerOf(roots)
	if err != nil {
		return nil, err
	}
	for _, gv := range groupVersions() {
		for path, operations := range operationsOf(gv) {
			item := spec.PathItem{PathItemProps: spec.PathItemProps{Parameters: parametersV2(pathParameters(path))}}
			for _, o := range operations {
				setV2(&item, o.method, operationV2(path, o))
			}
			doc.Paths.Paths[path] = item
		}
	}
	return doc, nil
}

func setV2(p *spec.PathItem, method string, o *spec.Operation) {
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

func operationV2(path string, o operation) *spec.Operation {
	answer := spec.StringProperty()
	produces := []string{"text/plain"}
	if o.answer != "" {
		answer, produces = refV2(o.answer), []string{"application/json"}
	}
	out := &spec.Operation{
		VendorExtensible: extensionsOf(o),
		OperationProps: spec.OperationProps{
			Tags: []string{tagOf(o)}, Description: o.about, ID: o.operationID(path),
			Schemes: []string{"https"}, Consumes: o.consumes, Produces: produces,
			Parameters: parametersV2(o.query),
			Responses: &spec.Responses{ResponsesProps: spec.ResponsesProps{StatusCodeResponses: map[int]spec.Response{
				o.code: {ResponseProps: spec.ResponseProps{Description: http.StatusText(o.code), Schema: answer}},
			}}},
		},
	}
	if o.body != "" {
		out.Parameters = append(out.Parameters, spec.Parameter{ParamProps: spec.ParamProps{
			Name: "body", In: "body", Required: o.method != http.MethodDelete, Schema: refV2(o.body),
		}})
	}
	return out
}

func refV2(typeName string) *spec.Schema {
	return spec.RefSchema("#/definitions/" + modelName(typeName))
}

func parametersV2(all []parameter) []spec.Parameter {
	var out []spec.Parameter
	for _, p := range all {
		in := "query"
		if p.path {
			in = "path"
		}
		out = append(out, spec.Parameter{
			ParamProps:   spec.ParamProps{Name: p.name, In: in, Description: p.about, Required: p.path},
			SimpleSchema: spec.SimpleSchema{Type: p.kind},
		})
	}
	return out
}
