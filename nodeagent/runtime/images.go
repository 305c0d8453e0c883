package runtime

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"

	"bramble.dev/bramble/nodeagent/container"
)

// Image returns what the reference resolves to on this node, and false when it
// is not here. A reference without a registry means Docker Hub, as in
// Kubernetes. A reference that cannot be parsed is container.ErrInvalidImageName.
func (r *Runtime) Image(ctx context.Context, ref string) (container.Image, bool, error) {
	name, err := normal(ref)
	if err != nil {
		return container.Image{}, false, err
	}
	image, err := r.image(ctx, name)
	if notFound(err) {
		return container.Image{}, false, nil
	}
	if err != nil {
		return container.Image{}, false, fmt.Errorf("cannot look up image %q: %w", ref, err)
	}
	return image, true, nil
}

// Pull fetches the image, also when it is here already, and returns it. It
// blocks until all of it is here, its registry is silent for long, or ctx ends. The
// errors say what can be done about them; they are ErrInvalidImageName, ErrImageNotFound, ErrUnauthorized, ErrImageCorrupt, ErrNoRoom and
// ErrRegistryUnavailable of package container.
//
// The credentials are tried in order, without them where there are none. They
// are handed to Podman in a header that it keeps in memory.
func (r *Runtime) Pull(ctx context.Context, ref string, credentials []container.Credential) (container.Image, error) {
	name, err := normal(ref)
	if err != nil {
		return container.Image{}, err
	}
	r.calls.Add(1)
	defer r.calls.Add(-1)
	id, err := r.pullWith(ctx, name, credentials)
	if err != nil {
		if isFull(r.config.StateDir) && !errors.Is(err, container.ErrUnavailable) { // whatever Podman says of it
			err = fmt.Errorf("%w: %w", container.ErrNoRoom, err)
		}
		host, _, _ := strings.Cut(name, "/")
		return container.Image{}, advised(fmt.Errorf("cannot pull image %q: %w", ref, err), host, len(credentials))
	}
	image, err := r.image(ctx, id)
	if err != nil {
		return container.Image{}, fmt.Errorf("cannot look up pulled image %q: %w", ref, err)
	}
	return image, nil
}

func (r *Runtime) image(ctx context.Context, name string) (container.Image, error) {
	var data struct {
		ID           string `json:"Id"`
		Digest       string
		Architecture string
		Config       struct{ User string }
		GraphDriver  struct{ Data map[string]string }
	}
	err := r.call(ctx, request{method: http.MethodGet, endpoint: "/images/%s/json", path: []string{name}}, &data)
	err = damaged(err, data.GraphDriver.Data)
	if errors.Is(err, container.ErrImageDamaged) && isFull(r.config.StateDir) { // Podman reads no image then
		err = fmt.Errorf("%w, and podman cannot read its images: make room on it (%v)", container.ErrNoRoom, err)
	}
	if err != nil {
		return container.Image{}, err
	}
	return container.Image{ID: data.ID, Digest: data.Digest, Architecture: data.Architecture, User: data.Config.User}, nil
}

// Images returns all images that have a name.
func (r *Runtime) Images(ctx context.Context) ([]container.StoredImage, error) {
	var data []struct {
		RepoTags, RepoDigests []string
		Size                  int64
	}
	if err := r.call(ctx, request{method: http.MethodGet, endpoint: "/images/json"}, &data); err != nil {
		return nil, fmt.Errorf("cannot list the images: %w", err)
	}
	var images []container.StoredImage
	for _, d := range data {
		if len(d.RepoTags)+len(d.RepoDigests) > 0 {
			images = append(images, container.StoredImage{Tags: d.RepoTags, Digests: d.RepoDigests, SizeBytes: d.Size})
		}
	}
	return images, nil
}

// progress is one line of a pull's answer.
type progress struct {
	Stream string
	Error  string
	ID     string `json:"id"`
}

// pullWith tries the credentials until one is good enough.
func (r *Runtime) pullWith(ctx context.Context, name string, credentials []container.Credential) (id string, err error) {
	if len(credentials) == 0 {
		return r.pull(ctx, name, nil)
	}
	for i := range credentials {
		id, err = r.pull(ctx, name, &credentials[i])
		if !errors.Is(err, container.ErrUnauthorized) {
			break
		}
	}
	return id, err
}

// errSilent ends a pull of which nothing is heard: of a registry that says nothing, or
// that says to wait, which Podman does without a word.
var errSilent = errors.New("it took the connection and did not answer, or answered that there are too many requests (429)")

func (r *Runtime) pull(ctx context.Context, name string, credential *container.Credential) (id string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	folder, err := r.beginFetch(ctx)
	if err != nil {
		return "", err
	}
	timer := time.AfterFunc(r.config.RegistryAnswer, func() { cancel(errSilent) })
	defer timer.Stop()
	var watch sync.WaitGroup
	watch.Go(func() { r.watchFetching(ctx, folder(), cancel) })
	id, err = r.pullUntil(ctx, name, credential, func() { timer.Stop() })
	cancel(nil)
	watch.Wait()
	switch cause := context.Cause(ctx); {
	case err == nil:
	case errors.Is(cause, errSilent):
		return "", fmt.Errorf("%w: no manifest in %v: %w", container.ErrRegistryUnavailable, r.config.RegistryAnswer, errSilent)
	case errors.Is(cause, errStalled):
		return "", fmt.Errorf("%w: nothing came for %v: %w", container.ErrRegistryUnavailable, r.config.FetchStall, errStalled)
	case errors.Is(cause, errTooLarge):
		return "", fmt.Errorf("%w: %w", container.ErrNoRoom, errTooLarge)
	}
	return id, err
}

// pullUntil calls answered once the registry has answered: Podman says first what it
// tries, without having asked, and next that it has the manifest.
func (r *Runtime) pullUntil(ctx context.Context, name string, credential *container.Credential, answered func()) (id string, err error) {
	response, err := r.send(ctx, request{method: http.MethodPost, endpoint: "/images/pull", headers: authorization(credential),
		query: url.Values{"reference": {name}, "policy": {"always"}}})
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", pullError(unavailable(ctx, response.Process(nil)))
	}
	lines := json.NewDecoder(bufio.NewReader(response.Body))
	for line := 0; ; line++ {
		var p progress
		err := lines.Decode(&p)
		if line > 0 {
			answered()
		}
		switch {
		case errors.Is(err, io.EOF) && id != "":
			return id, nil
		case err != nil:
			return "", unavailable(ctx, fmt.Errorf("the pull broke off: %w", err))
		case p.Error != "":
			return "", pullError(errors.New(p.Error))
		case p.ID != "":
			id = p.ID
		}
	}
}

// authorization is a credential as Podman takes it. With a map of credentials it
// would write a file; one alone it does not.
func authorization(c *container.Credential) http.Header {
	if c == nil {
		return nil
	}
	data, _ := json.Marshal(map[string]string{"username": c.Username, "password": c.Password, "identitytoken": c.IdentityToken}) // strings
	return http.Header{"X-Registry-Auth": {base64.URLEncoding.EncodeToString(data)}}
}

// pullError classifies by the words of Podman's image library and of registries.
func pullError(err error) error {
	if err == nil || errors.Is(err, container.ErrUnavailable) {
		return err
	}
	if text := err.Error(); temporary.MatchString(text) {
		err = errors.New(temporary.ReplaceAllString(text, "storage"))
	}
	text := strings.ToLower(err.Error())
	for _, class := range pullClasses {
		for _, words := range class.words {
			if strings.Contains(text, words) {
				return fmt.Errorf("%w: %w", class.err, err)
			}
		}
	}
	return err
}

// temporary is a file to which Podman fetches a layer: its name, another with each
// try, would make of each an event of its own.
var temporary = regexp.MustCompile(`storage[0-9]+/[0-9]+`)

// pullClasses are tried in order: a registry that hides what it does not have
// says both "denied" and "does not exist".
var pullClasses = []struct {
	err   error
	words []string
}{
	{container.ErrNoRoom, []string{"no space left on device", "disk quota exceeded"}},
	{container.ErrImageCorrupt, []string{"digest did not match", "does not match digest", "digest mismatch", "does not match the manifest"}},
	{container.ErrUnauthorized, []string{"unauthorized", "authentication required", "denied", "invalid username/password", "status 403", "forbidden"}},
	{container.ErrImageNotFound, []string{"manifest unknown", "name unknown", "not found", "no image found", "does not exist"}},
	{container.ErrInvalidImageName, []string{"invalid reference", "invalid image name"}},
	{container.ErrRegistryUnavailable, []string{"connection refused", "no such host", "i/o timeout", "timeout exceeded", "unreachable",
		"connection reset", "temporary failure", "tls:", "x509:", "toomanyrequests", "too many requests", "unexpected eof",
		"server gave http response", "pinging container registry", "received unexpected http status"}},
}

// normal is the reference in full, tag latest added. Ids of images pass as they
// are.
func normal(ref string) (string, error) {
	if id := strings.TrimPrefix(ref, "sha256:"); len(id) == 64 && strings.Trim(id, "0123456789abcdef") == "" {
		return id, nil
	}
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return "", advised(fmt.Errorf("%w %q: %v", container.ErrInvalidImageName, ref, err), "", 0)
	}
	return named.String(), nil
}
