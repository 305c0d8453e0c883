package runtime_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bramble.dev/bramble/nodeagent/container"
)

// registry serves one image, arm64, under any name but those that begin with
// "absent" or "secret".
func registry(t *testing.T) *httptest.Server {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "hello", Mode: 0o644})
	_ = w.Close()
	blobs := map[string][]byte{}
	keep := func(data []byte) string {
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
		blobs[digest] = data
		return digest
	}
	layerDigest := keep(layer.Bytes())
	config, _ := json.Marshal(map[string]any{
		"architecture": "arm64", "os": "linux", "config": map[string]string{"User": "1000"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layerDigest}},
	})
	descriptor := func(kind, digest string) map[string]any {
		return map[string]any{"mediaType": "application/vnd.oci.image." + kind, "digest": digest, "size": len(blobs[digest])}
	}
	manifest, _ := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": descriptor("config.v1+json", keep(config)), "layers": []any{descriptor("layer.v1.tar", layerDigest)},
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		refuse := func(status int, code string) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"errors":[{"code":%q,"message":"%s"}]}`, code, strings.ToLower(strings.ReplaceAll(code, "_", " ")))
		}
		switch _, last, _ := strings.Cut(q.URL.Path[1:], "/"); {
		case last == "":
		case strings.HasPrefix(last, "absent"):
			refuse(http.StatusNotFound, "MANIFEST_UNKNOWN")
		case strings.HasPrefix(last, "secret"):
			refuse(http.StatusUnauthorized, "UNAUTHORIZED")
		case strings.Contains(last, "/manifests/"):
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			_, _ = w.Write(manifest)
		default:
			_, _ = w.Write(blobs[q.URL.Path[strings.LastIndexByte(q.URL.Path, '/')+1:]])
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestPullAndItsErrors(t *testing.T) {
	n := emptyNode(t)
	s := registry(t)
	host := s.Listener.Addr().String()
	conf := filepath.Join(n.Home, ".config/containers/registries.conf")
	if err := os.WriteFile(conf, []byte("[[registry]]\nlocation = \""+host+"\"\ninsecure = true\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	n.StartPodman(t)
	if _, found, err := n.Image(t.Context(), host+"/app:1"); found || err != nil {
		t.Errorf("before the pull: %v, %v", found, err)
	}
	pulled, err := n.Pull(t.Context(), host+"/app:1")
	if err != nil || pulled.Architecture != "arm64" || pulled.User != "1000" || len(pulled.ID) != 64 || !strings.HasPrefix(pulled.Digest, "sha256:") {
		t.Fatalf("pulled %+v, %v", pulled, err)
	}
	for _, ref := range []string{host + "/app:1", pulled.ID, "sha256:" + pulled.ID, host + "/app@" + pulled.Digest} {
		if image, found, err := n.Image(t.Context(), ref); err != nil || !found || image != pulled {
			t.Errorf("image %s: %+v, %v, %v", ref, image, found, err)
		}
	}
	for ref, want := range map[string]error{
		host + "/absent:1":          container.ErrImageNotFound,
		host + "/secret:1":          container.ErrUnauthorized,
		"127.0.0.1:1/app:1":         container.ErrRegistryUnavailable,
		"nowhere.invalid/app:1":     container.ErrRegistryUnavailable,
		"Not/A Name":                container.ErrInvalidImageName,
		"UPPER:1":                   container.ErrInvalidImageName,
		"registry.invalid/app@sha1": container.ErrInvalidImageName,
	} {
		if _, err := n.Pull(t.Context(), ref); !errors.Is(err, want) {
			t.Errorf("pull %s: %v, want %v", ref, err, want)
		}
	}
	if _, _, err := n.Image(t.Context(), "UPPER:1"); !errors.Is(err, container.ErrInvalidImageName) {
		t.Errorf("image of a bad name: %v", err)
	}
}
