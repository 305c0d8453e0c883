package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"

	"github.com/containers/podman/v5/libpod/define"
	"github.com/containers/podman/v5/pkg/bindings"
	"github.com/containers/podman/v5/pkg/errorhandling"

	"bramble.dev/bramble/nodeagent/container"
)

// request is one call of Podman's API.
type request struct {
	method   string
	endpoint string   // with %s for each of path
	path     []string // escaped into endpoint
	query    url.Values
	headers  http.Header
	body     any // sent as JSON unless it is a []byte, which is sent as a tar
}

// call carries out a request and decodes the answer into out, unless out is nil.
// Podman's own refusals come back as *errorhandling.ErrorModel.
func (r *Runtime) call(ctx context.Context, q request, out any) error {
	r.calls.Add(1)
	defer r.calls.Add(-1)
	response, err := r.send(ctx, q)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return unavailable(ctx, response.Process(out))
}

// send carries out a request and returns the answer, whose body the caller
// reads and closes.
func (r *Runtime) send(ctx context.Context, q request) (*bindings.APIResponse, error) {
	conn, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	var reader io.Reader
	headers := http.Header{}
	switch b := q.body.(type) {
	case nil:
	case []byte:
		reader, headers = newBody(b), http.Header{"Content-Type": {"application/x-tar"}}
	default:
		data, err := json.Marshal(b)
		if err != nil {
			return nil, fmt.Errorf("cannot encode the request %s %s: %w", q.method, q.endpoint, err)
		}
		reader, headers = newBody(data), http.Header{"Content-Type": {"application/json"}}
	}
	maps.Copy(headers, q.headers)
	response, err := conn.DoRequest(ctx, reader, q.method, q.endpoint, q.query, headers, q.path...)
	if err != nil {
		return nil, unavailable(ctx, err)
	}
	return response, nil
}

// connect returns the connection; the first call asks Podman for its version.
func (r *Runtime) connect(ctx context.Context) (*bindings.Connection, error) {
	r.mu.Lock()
	conn := r.connection
	r.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	withConn, err := bindings.NewConnection(ctx, "unix://"+r.config.Socket)
	if err != nil {
		return nil, unavailable(ctx, err)
	}
	conn, err = bindings.GetClient(withConn)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connection = conn
	return conn, nil
}

// unavailable marks errors that Podman did not answer with: it is not there, or
// went away.
func unavailable(ctx context.Context, err error) error {
	var answered *errorhandling.ErrorModel
	switch {
	case err == nil || errors.As(err, &answered):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("%w: %v", container.ErrUnavailable, err)
}

// refusal returns Podman's own words and code, or nil for any other error.
func refusal(err error) *errorhandling.ErrorModel {
	var m *errorhandling.ErrorModel
	if !errors.As(err, &m) {
		return nil
	}
	return m
}

func notFound(err error) bool {
	m := refusal(err)
	return m != nil && (m.ResponseCode == http.StatusNotFound || // or 500, where it went away meanwhile
		m.Because == define.ErrNoSuchPod.Error() || m.Because == define.ErrNoSuchCtr.Error())
}

// body can be read again from its start after Close: the bindings repeat a
// request that found nobody.
type body struct{ *bytes.Reader }

func newBody(data []byte) io.ReadCloser { return body{bytes.NewReader(data)} }

func (b body) Close() error {
	_, err := b.Seek(0, io.SeekStart)
	return err
}

// filters encodes a filter as Podman's list endpoints take it.
func filters(name, value string) url.Values {
	data, _ := json.Marshal(map[string][]string{name: {value}}) // cannot fail for strings
	return url.Values{"filters": {string(data)}}
}
