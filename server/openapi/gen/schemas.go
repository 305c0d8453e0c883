package main

import (
	"strings"

	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"bramble.dev/bramble/server/openapi/gen/definitions"
)

// modelName is a type's name in the documents: Kubernetes' own for its types,
// and dev.bramble.edge.v1alpha1.X for ours.
func modelName(typeName string) string {
	if name, ok := strings.CutPrefix(typeName, ours); ok {
		return "dev.bramble.edge.v1alpha1." + name
	}
	if path, ok := strings.CutPrefix(typeName, "k8s.io/"); ok {
		return "io.k8s." + strings.ReplaceAll(path, "/", ".")
	}
	return typeName
}

// definitionName finds the documents' name of a definition, and its kinds.
func definitionName(name string) (string, spec.Extensions) {
	name = modelName(name)
	for _, gv := range groupVersions() {
		for _, typeName := range rootsOf(gv) {
			if modelName(typeName) == name {
				return name, kindExtension(typeName)
			}
		}
	}
	return name, nil
}

func kindExtension(typeName string) spec.Extensions {
	var list []any
	for _, gvk := range kindsOf(typeName) {
		list = append(list, kindValue(gvk))
	}
	if list == nil {
		return nil
	}
	return spec.Extensions{"x-kubernetes-group-version-kind": list}
}

// allDefinitions has our types under the documents' names as well.
func allDefinitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := definitions.GetOpenAPIDefinitions(ref)
	for name, d := range all {
		for i, dependency := range d.Dependencies {
			d.Dependencies[i] = modelName(dependency)
		}
		delete(all, name)
		all[modelName(name)] = d
	}
	return all
}

func modelNames(typeNames []string) []string {
	names := make([]string, len(typeNames))
	for i, t := range typeNames {
		names[i] = modelName(t)
	}
	return names
}

func info() *spec.Info {
	return &spec.Info{InfoProps: spec.InfoProps{Title: "Bramble", Version: "v1.37.2"}}
}

// schemasV3 is roots and all that they refer to, by their names.
func schemasV3(roots []string) (map[string]*spec.Schema, error) {
	return builder3.BuildOpenAPIDefinitionsForResources(&common.OpenAPIV3Config{
		Info: info(), GetDefinitions: allDefinitions, GetDefinitionName: definitionName,
	}, modelNames(roots)...)
}

func swaggerOf(roots []string) (*spec.Swagger, error) {
	return builder.BuildOpenAPIDefinitionsForResources(&common.Config{
		Info: info(), GetDefinitions: allDefinitions, GetDefinitionName: definitionName,
	}, modelNames(roots)...)
}
