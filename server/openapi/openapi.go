// Package openapi holds the OpenAPI documents of all that the server serves,
// made at build time from the Go types and kept compressed, and what managed
// fields must know of the kinds (TypeConverter). Package rest serves the
// documents; gen, a module of its own, makes them.
package openapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

//go:generate sh gen/generate.sh

//go:embed docs/*.gz
var files embed.FS

//go:embed docs/merge.json.gz
var mergeDocument []byte

// Media types of the documents.
const (
	MediaJSON = "application/json"
	// MediaProtobuf is the form of /openapi/v2 that kubectl asks for.
	MediaProtobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	// mediaProtobufSent is what the answer calls it: a media type with "@" is
	// none, and client-go could not read it.
	mediaProtobufSent = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
)

// Document is one of the documents. Body is compressed by gzip and must not be
// changed. ETag is quoted, Hash is what ?hash= asks for.
type Document struct {
	Media string
	Body  []byte
	Hash  string
	ETag  string
}

// Set is all documents, ready to be served. It is read only.
type Set struct {
	index Document
	v3    map[string]Document // by the path after /openapi/v3/
	v2    map[string]Document // by media type asked for
}

// Load reads the documents that were embedded.
func Load() (*Set, error) {
	s := &Set{v3: make(map[string]Document), v2: make(map[string]Document)}
	entries, err := files.ReadDir("docs")
	if err != nil {
		return nil, fmt.Errorf("cannot read the OpenAPI documents: %w", err)
	}
	for _, entry := range entries {
		body, err := files.ReadFile(path.Join("docs", entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("cannot read the OpenAPI document %s: %w", entry.Name(), err)
		}
		switch name := strings.TrimSuffix(entry.Name(), ".gz"); name {
		case "merge.json":
		case "v2.json":
			s.v2[MediaJSON] = document(MediaJSON, body)
		case "v2.pb":
			s.v2[MediaProtobuf] = document(mediaProtobufSent, body)
			s.v2[mediaProtobufSent] = s.v2[MediaProtobuf]
		default:
			s.v3[pathOf(name)] = document(MediaJSON, body)
		}
	}
	s.index, err = indexOf(s.v3)
	return s, err
}

// pathOf turns "v3-coordination.k8s.io-v1.json" into "apis/coordination.k8s.io/v1".
func pathOf(name string) string {
	name = strings.TrimSuffix(strings.TrimPrefix(name, "v3-"), ".json")
	cut := strings.LastIndex(name, "-")
	group, version := name[:cut], name[cut+1:]
	if group == "core" {
		return "api/" + version
	}
	return "apis/" + group + "/" + version
}

func document(media string, body []byte) Document {
	sum := sha256.Sum256(body)
	hash := strings.ToUpper(hex.EncodeToString(sum[:]))
	return Document{Media: media, Body: body, Hash: hash, ETag: `"` + hash + `"`}
}

// indexOf is /openapi/v3: where each group's document is, with its hash, so
// that clients can keep it for ever.
func indexOf(docs map[string]Document) (Document, error) {
	type place struct {
		URL string `json:"serverRelativeURL"`
	}
	places := make(map[string]place)
	for p, doc := range docs {
		places[p] = place{"/openapi/v3/" + p + "?hash=" + doc.Hash}
	}
	body, err := json.Marshal(map[string]any{"paths": places})
	if err != nil {
		return Document{}, fmt.Errorf("cannot encode the index of OpenAPI documents: %w", err)
	}
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	if _, err := zw.Write(body); err != nil {
		return Document{}, err
	}
	if err := zw.Close(); err != nil {
		return Document{}, err
	}
	return document(MediaJSON, buf.Bytes()), nil
}

// Find returns the document at a path below /openapi in one of the media types,
// best first; none means any. ok is false where there is no such document, and
// its Body is nil where it has none of the forms asked for.
func (s *Set) Find(path string, medias []string) (doc Document, ok bool) {
	var forms map[string]Document
	switch p, isV3 := strings.CutPrefix(path, "/openapi/v3/"); {
	case path == "/openapi/v2":
		forms = s.v2
	case path == "/openapi/v3":
		forms = map[string]Document{MediaJSON: s.index}
	case isV3:
		doc, ok := s.v3[p]
		if !ok {
			return Document{}, false
		}
		forms = map[string]Document{MediaJSON: doc}
	default:
		return Document{}, false
	}
	if len(medias) == 0 {
		return forms[MediaJSON], true
	}
	for _, media := range medias {
		if media == "*/*" || media == "application/*" {
			media = MediaJSON
		}
		if doc, ok := forms[media]; ok {
			return doc, true
		}
	}
	return Document{}, true
}
