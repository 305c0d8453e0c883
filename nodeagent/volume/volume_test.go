package volume_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/volume"
)

// objects is a Source.
type objects struct {
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
	err        error
}

func (o objects) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	if c, ok := o.configMaps[name]; ok {
		return c, nil
	}
	return nil, o.missing("configmaps", name)
}

func (o objects) Secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	if s, ok := o.secrets[name]; ok {
		return s, nil
	}
	return nil, o.missing("secrets", name)
}

func (o objects) missing(resource, name string) error {
	if o.err != nil {
		return o.err
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}

func newVolumes(t testing.TB) (*volume.Volumes, string) {
	t.Helper()
	dir := t.TempDir()
	return volume.New(volume.Config{
		Dir: filepath.Join(dir, "disk"), RuntimeDir: filepath.Join(dir, "run"), Log: slog.Default(),
	}), dir
}

// podWith makes a pod whose one container mounts one volume at /v.
func podWith(source corev1.VolumeSource) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1"},
		Spec: corev1.PodSpec{
			Volumes:    []corev1.Volume{{Name: "v", VolumeSource: source}},
			Containers: []corev1.Container{{Name: "main", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}}},
		},
	}
}

func configMapVolume(name string, items ...corev1.KeyToPath) corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items,
	}}
}

// tree returns the files of a directory by path, links followed, those that
// begin with ".." left out.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name()[:min(2, len(e.Name()))] == ".." {
			continue
		}
		top, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, _ := filepath.Rel(top, path)
			data, _ := os.ReadFile(path)
			files[filepath.Join(e.Name(), rel)] = string(data)
			return nil
		})
	}
	return files
}

func TestConfigMapFollowsItsObject(t *testing.T) {
	v, _ := newVolumes(t)
	object := &corev1.ConfigMap{Data: map[string]string{"a": "1", "b": "2"}, BinaryData: map[string][]byte{"c": {0xff}}}
	source := objects{configMaps: map[string]*corev1.ConfigMap{"conf": object}}
	pod := podWith(configMapVolume("conf"))

	mounts, err := v.Mount(t.Context(), pod, source)
	if err != nil {
		t.Fatal(err)
	}
	m := mounts["main"][0]
	if m.Target != "/v" || !m.ReadOnly {
		t.Errorf("mount: %+v", m)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2", "c": "\xff"}, tree(t, m.Source)); diff != "" {
		t.Error(diff)
	}
	before, _ := os.Readlink(filepath.Join(m.Source, "..data"))
	if _, err := v.Mount(t.Context(), pod, source); err != nil {
		t.Fatal(err)
	}
	if same, _ := os.Readlink(filepath.Join(m.Source, "..data")); same != before {
		t.Errorf("written again without a change: %s, then %s", before, same)
	}

	object.Data = map[string]string{"a": "new", "d": "4"}
	if _, err := v.Mount(t.Context(), pod, source); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "new", "d": "4", "c": "\xff"}, tree(t, m.Source)); diff != "" {
		t.Error(diff)
	}
	entries, _ := os.ReadDir(m.Source)
	if len(entries) != 5 { // a, c, d, ..data and what it points to
		t.Errorf("left behind: %v", entries)
	}
}

func TestItemsAndModes(t *testing.T) {
	v, _ := newVolumes(t)
	source := objects{secrets: map[string]*corev1.Secret{"s": {Data: map[string][]byte{"user": []byte("u"), "pass": []byte("p")}}}}
	pod := podWith(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: "s", DefaultMode: new(int32(0o440)),
		Items: []corev1.KeyToPath{{Key: "user", Path: "etc/user"}, {Key: "pass", Path: "etc/deep/pass", Mode: new(int32(0o400))}},
	}})
	mounts, err := v.Mount(t.Context(), pod, source)
	if err != nil {
		t.Fatal(err)
	}
	dir := mounts["main"][0].Source
	if diff := cmp.Diff(map[string]string{"etc/user": "u", "etc/deep/pass": "p"}, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]fs.FileMode{"etc/user": 0o440, "etc/deep/pass": 0o400} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	if info, _ := os.Stat(filepath.Dir(dir)); info.Mode().Perm() != 0o700 {
		t.Errorf("the pod's directory is open to others: %v", info.Mode())
	}
}

func TestMissingObjects(t *testing.T) {
	v, _ := newVolumes(t)
	source := objects{configMaps: map[string]*corev1.ConfigMap{"conf": {Data: map[string]string{"a": "1"}}}}
	optional := configMapVolume("nope")
	optional.ConfigMap.Optional = new(true)
	optionalKey := configMapVolume("conf", corev1.KeyToPath{Key: "zz", Path: "zz"}, corev1.KeyToPath{Key: "a", Path: "a"})
	optionalKey.ConfigMap.Optional = new(true)
	for _, c := range []struct {
		name   string
		volume corev1.VolumeSource
		want   *container.MissingError
	}{
		{"object", configMapVolume("nope"), &container.MissingError{Kind: "ConfigMap", Namespace: "default", Name: "nope"}},
		{"key", configMapVolume("conf", corev1.KeyToPath{Key: "zz", Path: "zz"}), &container.MissingError{Kind: "ConfigMap", Namespace: "default", Name: "conf", Key: "zz"}},
		{"secret", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}, &container.MissingError{Kind: "Secret", Namespace: "default", Name: "s"}},
		{"optional object", optional, nil},
		{"optional key", optionalKey, nil},
	} {
		_, err := v.Mount(t.Context(), podWith(c.volume), source)
		var missing *container.MissingError
		errors.As(err, &missing)
		if diff := cmp.Diff(c.want, missing); diff != "" || (c.want == nil) != (err == nil) {
			t.Errorf("%s: %v\n%s", c.name, err, diff)
		}
	}
	source.err = errors.New("server away")
	_, err := v.Mount(t.Context(), podWith(optional), source)
	if !errors.Is(err, source.err) {
		t.Errorf("a source that fails must not look like a missing object: %v", err)
	}
}

func TestEmptyDirsOnDiskAndInMemory(t *testing.T) {
	v, dir := newVolumes(t)
	for medium, root := range map[corev1.StorageMedium]string{"": "disk", corev1.StorageMediumMemory: "run"} {
		pod := podWith(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}})
		mounts, err := v.Mount(t.Context(), pod, objects{})
		if err != nil {
			t.Fatal(err)
		}
		m := mounts["main"][0]
		if m.Source != filepath.Join(dir, root, "u1", "v") || m.ReadOnly {
			t.Errorf("medium %q: %+v", medium, m)
		}
		if info, _ := os.Stat(m.Source); info.Mode().Perm() != 0o777 {
			t.Errorf("medium %q: mode %v", medium, info.Mode())
		}
		kept := filepath.Join(m.Source, "kept")
		if err := os.WriteFile(kept, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Mount(t.Context(), pod, objects{}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(kept); err != nil {
			t.Errorf("mounting again lost a file: %v", err)
		}
		for range 2 {
			if err := v.Unmount(t.Context(), "u1"); err != nil {
				t.Error(err)
			}
		}
		if _, err := os.Stat(filepath.Dir(m.Source)); !os.IsNotExist(err) {
			t.Errorf("medium %q: left after unmount: %v", medium, err)
		}
	}
}

func TestMountRefusesWhatItCannotDo(t *testing.T) {
	v, dir := newVolumes(t)
	ofSize := podWith(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(1, resource.BinarySI)}})
	outside := podWith(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	outside.UID = "../../x"
	unknown := podWith(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	unknown.Spec.Containers[0].VolumeMounts[0].Name = "other"
	for name, pod := range map[string]*corev1.Pod{
		"type": podWith(corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Path: "/"}}),
		"size": ofSize, "uid": outside, "unknown": unknown,
	} {
		if _, err := v.Mount(t.Context(), pod, objects{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := v.Unmount(t.Context(), ".."); err == nil {
		t.Error("unmounted ..")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

func FuzzPathsStayInside(f *testing.F) {
	for _, path := range []string{"a", "a/b", "../x", "/etc/x", "..data", "a/../../x", "..", ".", "", "a//b", "a/", "x\x00y"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		v, dir := newVolumes(t)
		source := objects{configMaps: map[string]*corev1.ConfigMap{"conf": {Data: map[string]string{"key": "1", path: "2"}}}}
		for _, from := range []corev1.VolumeSource{configMapVolume("conf"), configMapVolume("conf", corev1.KeyToPath{Key: "key", Path: path})} {
			_, _ = v.Mount(t.Context(), podWith(from), source)
		}
		home := filepath.Join(dir, "run", "u1", "v")
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if rel, err := filepath.Rel(home, path); err != nil || !filepath.IsLocal(rel) {
					t.Errorf("%s lies outside of the volume", path)
				}
			}
			return err
		})
	})
}
