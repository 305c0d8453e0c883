//go:build tools

// Package tools holds the generator that generate.sh runs in go.mod.
package tools

import _ "k8s.io/kube-openapi/cmd/openapi-gen"
