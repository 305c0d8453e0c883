#!/bin/sh
# Writes the OpenAPI documents of server/openapi from the Go types: into the
# folder named by the first argument, or else into server/openapi/docs.
set -eu
cd "$(dirname "$0")"
out=${1:-../docs}
mkdir -p definitions "$out"
: >definitions/header.txt
go run k8s.io/kube-openapi/cmd/openapi-gen \
	--go-header-file definitions/header.txt --report-filename definitions/report.txt \
	--output-dir definitions --output-pkg bramble.dev/bramble/server/openapi/gen/definitions --output-file zz_generated.go \
	k8s.io/api/core/v1 k8s.io/api/coordination/v1 k8s.io/api/rbac/v1 k8s.io/api/scheduling/v1 k8s.io/api/policy/v1 \
	k8s.io/api/authentication/v1 k8s.io/api/authorization/v1 \
	k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime \
	k8s.io/apimachinery/pkg/util/intstr k8s.io/apimachinery/pkg/api/resource \
	bramble.dev/bramble/server/api
go run . -out "$out"
