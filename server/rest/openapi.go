package rest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// serveOpenAPI serves the documents made at build time. They are kept
// compressed and unpacked only for the rare client that cannot.
func (s *server) serveOpenAPI(w http.ResponseWriter, r *http.Request, path string) error {
	var medias []string
	for _, c := range parseAccept(r.Header.Values("Accept")) {
		medias = append(medias, c.media)
	}
	documents, err := s.openapi()
	if err != nil {
		return err
	}
	doc, ok := documents.Find(path, medias)
	if !ok {
		return notFound(infoFrom(r.Context()))
	}
	if doc.Body == nil {
		return notAcceptable()
	}
	h := w.Header()
	h.Set("ETag", doc.ETag)
	h.Set("Vary", "Accept, Accept-Encoding")
	h.Set("Cache-Control", "no-cache, private")
	if hash := r.URL.Query().Get("hash"); hash != "" && hash == doc.Hash {
		h.Set("Cache-Control", "public, immutable, max-age=31536000")
	}
	if r.Header.Get("If-None-Match") == doc.ETag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		writeBytes(w, http.StatusOK, doc.Media, doc.Body)
		return nil
	}
	plain, err := gunzip(doc.Body)
	if err != nil {
		return fmt.Errorf("cannot unpack %s: %w", path, err)
	}
	writeBytes(w, http.StatusOK, doc.Media, plain)
	return nil
}

func acceptsGzip(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Accept-Encoding"), func(v string) bool {
		return slices.ContainsFunc(strings.Split(v, ","), func(one string) bool {
			name, params, _ := strings.Cut(strings.TrimSpace(one), ";")
			return name == "gzip" && strings.TrimSpace(params) != "q=0"
		})
	})
}

func gunzip(body []byte) ([]byte, error) {
	zr, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(zr)
}
