// Gen makes the OpenAPI documents that the server embeds: /openapi/v2 (JSON and
// protobuf), /openapi/v3 for each group, and the schema by which server-side
// apply merges. It is a module of its own, so that what it needs stays out of
// the server's go.mod. Run it by generate.sh, which first makes the package
// definitions from the Go types.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"bramble.dev/bramble/server/openapi/merge"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", "", "folder to write to")
	flag.Parse()
	if err := generate(*out); err != nil {
		log.Fatalf("error: %v", err)
	}
}

func generate(out string) error {
	if err := writeV2(out); err != nil {
		return err
	}
	for _, gv := range groupVersions() {
		doc, err := documentV3(gv)
		if err != nil {
			return fmt.Errorf("cannot make the document of %s: %w", gv, err)
		}
		body, err := json.Marshal(doc)
		if err != nil {
			return fmt.Errorf("cannot encode the document of %s: %w", gv, err)
		}
		if err := write(out, "v3-"+fileName(gv), body); err != nil {
			return err
		}
	}
	return writeMerge(out)
}

func fileName(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "core-" + gv.Version + ".json"
	}
	return gv.Group + "-" + gv.Version + ".json"
}

func writeV2(out string) error {
	doc, err := documentV2()
	if err != nil {
		return fmt.Errorf("cannot make the document of v2: %w", err)
	}
	body, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("cannot encode the document of v2: %w", err)
	}
	if err := write(out, "v2.json", body); err != nil {
		return err
	}
	parsed, err := openapi_v2.ParseDocument(body)
	if err != nil {
		return fmt.Errorf("cannot read the document of v2 back: %w", err)
	}
	wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(parsed)
	if err != nil {
		return fmt.Errorf("cannot encode the document of v2 as protobuf: %w", err)
	}
	return write(out, "v2.pb", wire)
}

// writeMerge writes what structured-merge-diff must know of our kinds, and
// which of its types each kind is.
func writeMerge(out string) error {
	models := make(map[string]*spec.Schema)
	kinds := make(map[string]string)
	for _, gv := range groupVersions() {
		schemas, err := schemasV3(rootsOf(gv))
		if err != nil {
			return fmt.Errorf("cannot make the schemas of %s: %w", gv, err)
		}
		for name, s := range schemas {
			models[name] = s
		}
		for _, r := range resources {
			if r.GroupVersion() == gv {
				kinds[gv.String()+" "+r.Kind] = modelName(r.typeName)
			}
		}
	}
	found, err := schemaconv.ToSchemaFromOpenAPI(models, false)
	if err != nil {
		return fmt.Errorf("cannot make the schema for merging: %w", err)
	}
	slices.SortFunc(found.Types, func(a, b smd.TypeDef) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range found.Types {
		if t.Map != nil {
			slices.SortFunc(t.Fields, func(a, b smd.StructField) int { return strings.Compare(a.Name, b.Name) })
		}
	}
	body, err := json.Marshal(merge.Document{Kinds: kinds, Types: merge.Pack(found.Types)})
	if err != nil {
		return fmt.Errorf("cannot encode the schema for merging: %w", err)
	}
	return write(out, "merge.json", body)
}

// write compresses body. The bytes depend on nothing but body.
func write(out, name string, body []byte) error {
	var buf bytes.Buffer
	zw, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := zw.Write(body); err != nil {
		return err
	}
	if err := zw.Close(); err != nil {
		return err
	}
	fmt.Printf("%-36s %8d bytes, %7d compressed\n", name, len(body), buf.Len())
	return os.WriteFile(filepath.Join(out, name+".gz"), buf.Bytes(), 0o644)
}
