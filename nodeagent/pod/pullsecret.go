package pod

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// credentials returns what the pod's imagePullSecrets have for an image, those of
// the longest match first, as the kubelet tries them. A secret that is missing or
// cannot be read is named in the second result: the pull may succeed without it.
func credentials(ctx context.Context, pod *corev1.Pod, image string, source Source) (found []container.Credential, unusable []string) {
	type entry struct {
		key string
		container.Credential
	}
	var entries []entry
	for _, ref := range pod.Spec.ImagePullSecrets {
		secret, err := source.Secret(ctx, pod.Namespace, ref.Name)
		var auths map[string]container.Credential
		if err == nil {
			auths, err = Auths(secret)
		}
		if err != nil {
			unusable = append(unusable, ref.Name)
			continue
		}
		for key, c := range auths {
			if Matches(key, image) {
				entries = append(entries, entry{normalKey(key), c})
			}
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(len(b.key), len(a.key)), cmp.Compare(b.key, a.key))
	})
	for _, e := range entries {
		if !slices.Contains(found, e.Credential) {
			found = append(found, e.Credential)
		}
	}
	return found, unusable
}

// auth is an entry of Docker's configuration files.
type auth struct {
	Username, Password, Auth, IdentityToken string
}

// Auths reads a pull secret of either type: credentials by registry, or by a part
// of one.
func Auths(secret *corev1.Secret) (map[string]container.Credential, error) {
	var entries map[string]auth
	var err error
	switch secret.Type {
	case corev1.SecretTypeDockerConfigJson:
		var config struct{ Auths map[string]auth }
		err = json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &config)
		entries = config.Auths
	case corev1.SecretTypeDockercfg:
		err = json.Unmarshal(secret.Data[corev1.DockerConfigKey], &entries)
	default:
		err = errors.New("it is of another type")
	}
	if err != nil {
		return nil, errors.New("cannot read the pull secret") // whose text may be in err
	}
	all := map[string]container.Credential{}
	for key, a := range entries {
		c := container.Credential{Username: a.Username, Password: a.Password, IdentityToken: a.IdentityToken}
		if a.Auth != "" {
			text, err := base64.StdEncoding.DecodeString(strings.TrimRight(a.Auth, "\x00"))
			user, password, ok := strings.Cut(string(text), ":")
			if err != nil || !ok {
				return nil, errors.New("cannot read the pull secret: an entry's auth is not base64 of user:password")
			}
			c.Username, c.Password = user, password
		}
		all[key] = c
	}
	return all, nil
}

// normalKey is a registry, perhaps with a path, without what Docker puts around it.
func normalKey(key string) string {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	key = strings.TrimSuffix(key, "/")
	for _, version := range []string{"/v1", "/v2"} {
		key = strings.TrimSuffix(key, version)
	}
	if key == "index.docker.io" || strings.HasPrefix(key, "index.docker.io/") {
		key = "docker.io" + strings.TrimPrefix(key, "index.docker.io")
	}
	return key
}

// Matches reports whether a pull secret's key is for an image: the same host, each
// of its parts as a pattern, the same port, and a path that the image's begins
// with (Kubernetes' rules of config.json).
func Matches(key, image string) bool {
	host, prefix, _ := strings.Cut(normalKey(key), "/")
	ofHost, ofPath, _ := strings.Cut(image, "/")
	if ofPath == "" || !strings.ContainsAny(ofHost, ".:") && ofHost != "localhost" {
		ofHost, ofPath = "docker.io", image
	}
	if ofHost == "index.docker.io" {
		ofHost = "docker.io"
	}
	name, port, _ := strings.Cut(host, ":")
	ofName, ofPort, _ := strings.Cut(ofHost, ":")
	parts, ofParts := strings.Split(name, "."), strings.Split(ofName, ".")
	if port != ofPort || len(parts) != len(ofParts) || !strings.HasPrefix(ofPath, prefix) {
		return false
	}
	for i := range parts {
		if ok, err := path.Match(parts[i], ofParts[i]); err != nil || !ok {
			return false
		}
	}
	return true
}
