package pod_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/pod"
)

func TestPullSecretsMatch(t *testing.T) {
	for _, tt := range []struct {
		key, image string
		want       bool
	}{
		{"registry.example:5000", "registry.example:5000/a/b:1", true},
		{"registry.example", "registry.example:5000/a/b:1", false},
		{"https://registry.example/v2/", "registry.example/a", true},
		{"*.example", "registry.example/a", true},
		{"*.example", "a.b.example/a", false},
		{"registry.example/a", "registry.example/a/b", true},
		{"registry.example/c", "registry.example/a/b", false},
		{"https://index.docker.io/v1/", "busybox", true},
		{"docker.io", "me/app:1", true},
		{"docker.io", "localhost/app:1", false},
	} {
		if got := pod.Matches(tt.key, tt.image); got != tt.want {
			t.Errorf("%s for %s: %v", tt.key, tt.image, got)
		}
	}
}

func FuzzPullSecrets(f *testing.F) {
	f.Add([]byte(`{"auths":{"a":{"auth":"dTpw"}}}`))
	f.Add([]byte(`{"auths":{"a":{"auth":"?"},"b":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = pod.Auths(&corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: data}})
	})
}

func TestPullSecretsAreRead(t *testing.T) {
	for kind, data := range map[corev1.SecretType]map[string][]byte{
		corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey: []byte(`{"auths":{"r":{"auth":"dTpwOnE="}}}`)},
		corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey: []byte(`{"r":{"username":"u","password":"p:q"}}`)},
	} {
		got, err := pod.Auths(&corev1.Secret{Type: kind, Data: data})
		if err != nil || !cmp.Equal(got, map[string]container.Credential{"r": {Username: "u", Password: "p:q"}}) {
			t.Errorf("%s: %v, %v", kind, got, err)
		}
	}
}
