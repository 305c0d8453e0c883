package runtime_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
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

// pullingNode is a node that pulls from the registry of that address.
func pullingNode(t *testing.T) (n *node, host string) {
	t.Helper()
	n, host = emptyNode(t), registry(t).Listener.Addr().String()
	conf := filepath.Join(n.Home, ".config/containers/registries.conf")
	if err := os.WriteFile(conf, []byte("[[registry]]\nlocation = \""+host+"\"\ninsecure = true\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	n.StartPodman(t)
	return n, host
}

// The node's images are told of when they change, whoever changes them.
func TestImagesChange(t *testing.T) {
	t.Parallel()
	n, host := pullingNode(t)
	has := func(name string) bool {
		t.Helper()
		images, err := n.Images(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(images, func(i container.StoredImage) bool {
			return slices.Contains(i.Tags, name) && len(i.Digests) > 0 && i.SizeBytes > 0
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	events, err := n.Events(ctx)
	if err != nil {
		t.Fatal(err)
	}
	await(t, events, container.Event{What: "connected"})
	if has(host + "/app:1") {
		t.Error("the image is there already")
	}
	if _, err := n.Pull(ctx, host+"/app:1", nil); err != nil {
		t.Fatal(err)
	}
	await(t, events, container.Event{What: container.ImagesChanged})
	if !has(host + "/app:1") {
		t.Error("the pulled image is not listed")
	}
	if out, err := n.Command(ctx, "podman", "rmi", host+"/app:1").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for has(host + "/app:1") {
		await(t, events, container.Event{What: container.ImagesChanged})
	}
	cancel()
	for range events { // until it is closed
	}
}

func TestPullAndItsErrors(t *testing.T) {
	t.Parallel()
	n, host := pullingNode(t)
	if _, found, err := n.Image(t.Context(), host+"/app:1"); found || err != nil {
		t.Errorf("before the pull: %v, %v", found, err)
	}
	pulled, err := n.Pull(t.Context(), host+"/app:1", nil)
	if err != nil || pulled.Architecture != "arm64" || pulled.User != "1000" || len(pulled.ID) != 64 || !strings.HasPrefix(pulled.Digest, "sha256:") {
		t.Fatalf("pulled %+v, %v", pulled, err)
	}
	for _, ref := range []string{host + "/app:1", pulled.ID, "sha256:" + pulled.ID, host + "/app@" + pulled.Digest} {
		if image, found, err := n.Image(t.Context(), ref); err != nil || !found || image != pulled {
			t.Errorf("image %s: %+v, %v, %v", ref, image, found, err)
		}
	}
	plain := httptest.NewServer(http.NotFoundHandler()) // Podman does not know that it speaks no TLS
	t.Cleanup(plain.Close)
	for ref, want := range map[string]struct {
		err    error
		advice string
	}{
		host + "/absent:1":                        {container.ErrImageNotFound, "check the image's name and tag"},
		host + "/secret:1":                        {container.ErrUnauthorized, "imagePullSecrets"},
		plain.Listener.Addr().String() + "/app:1": {container.ErrRegistryUnavailable, "insecure = true"},
		"127.0.0.1:1/app:1":                       {container.ErrRegistryUnavailable, "check the address 127.0.0.1:1"},
		"nowhere.invalid/app:1":                   {container.ErrRegistryUnavailable, "check the address nowhere.invalid"},
		"Not/A Name":                              {container.ErrInvalidImageName, "HOST/NAME:TAG"},
		"UPPER:1":                                 {container.ErrInvalidImageName, "HOST/NAME:TAG"},
		"registry.invalid/app@sha1":               {container.ErrInvalidImageName, "HOST/NAME:TAG"},
	} {
		if _, err := n.Pull(t.Context(), ref, nil); !errors.Is(err, want.err) || !strings.Contains(err.Error(), want.advice) {
			t.Errorf("pull %s: %v, want %v; %s", ref, err, want.err, want.advice)
		}
	}
	if _, _, err := n.Image(t.Context(), "UPPER:1"); !errors.Is(err, container.ErrInvalidImageName) {
		t.Errorf("image of a bad name: %v", err)
	}
}
