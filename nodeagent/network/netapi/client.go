package netapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// Errors that callers decide on; test with errors.Is.
var (
	ErrInvalid  = errors.New("invalid request to the network process")
	ErrConflict = errors.New("clash in the node's network")
	ErrHostPort = errors.New("a port of the host cannot be had")
	ErrNotReady = errors.New("the node's network is not set up")
)

// Error is an answer of the network process that is not a success.
type Error struct {
	Status  int
	Message string
}

func (e *Error) Error() string { return e.Message }

// Is matches ErrInvalid, ErrConflict, ErrHostPort and ErrNotReady.
func (e *Error) Is(target error) bool {
	return target == ErrInvalid && e.Status == http.StatusBadRequest ||
		target == ErrHostPort && e.Status == http.StatusLocked ||
		target == ErrConflict && e.Status == http.StatusConflict ||
		target == ErrNotReady && e.Status == http.StatusServiceUnavailable
}

// maxAnswer bounds what the client reads of one answer: a thousand pods are 200 kB.
const maxAnswer = 4 << 20

// Client speaks to one network process. It is safe for concurrent use and keeps
// no state but idle connections; Close drops those.
type Client struct {
	// Patience is for how long a request waits for a process that does not
	// answer, as while it is restarted. Every request is idempotent, so one
	// that was cut off is sent again.
	Patience time.Duration

	socket string
	http   *http.Client
}

// NewClient returns a client of the process behind this socket (SocketPath),
// with ten seconds of patience. No I/O is done.
func NewClient(socket string) *Client {
	c := &Client{Patience: 10 * time.Second, socket: socket}
	c.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.connect(ctx) },
	}}
	return c
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// PutNode makes sure of the node's namespace. It blocks until that stands; the
// way out may still be missing (NodeStatus.WayOutError).
func (c *Client) PutNode(ctx context.Context, n Node) (NodeStatus, error) {
	var status NodeStatus
	return status, c.do(ctx, http.MethodPut, "/v1/node", n, &status)
}

// PutPod makes sure of a pod's namespace and address. ErrConflict: another pod
// has the address. ErrHostPort: a port of the host cannot be had. ErrNotReady: PutNode first.
func (c *Client) PutPod(ctx context.Context, p Pod) (PodStatus, error) {
	var status PodStatus
	return status, c.do(ctx, http.MethodPut, "/v1/pods/"+url.PathEscape(p.UID), p, &status)
}

// DeletePod removes a pod's namespace; there being none is a success.
func (c *Client) DeletePod(ctx context.Context, uid string) error {
	return c.do(ctx, http.MethodDelete, "/v1/pods/"+url.PathEscape(uid), nil, nil)
}

// Pods lists the namespaces that exist, those half made included, by UID.
func (c *Client) Pods(ctx context.Context) ([]PodStatus, error) {
	var pods []PodStatus
	return pods, c.do(ctx, http.MethodGet, "/v1/pods", nil, &pods)
}

// Health asks the process whether it is there.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	return h, c.do(ctx, http.MethodGet, "/healthz", nil, &h)
}

// Attach makes sure of the pod's namespace with this address, to which these
// ports of the host lead, and returns its path.
func (c *Client) Attach(ctx context.Context, uid string, addr netip.Addr, ports []HostPort) (path string, err error) {
	status, err := c.PutPod(ctx, Pod{UID: uid, Address: addr, Ports: ports})
	return status.Path, err
}

// Detach is DeletePod.
func (c *Client) Detach(ctx context.Context, uid string) error { return c.DeletePod(ctx, uid) }

// do sends one request, again while the process does not answer and patience lasts.
func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	patience := time.NewTimer(c.Patience)
	defer patience.Stop()
	for {
		err := c.once(ctx, method, path, body, out)
		if !errors.As(err, new(*unansweredError)) {
			return err
		}
		again := time.NewTimer(100 * time.Millisecond)
		select {
		case <-ctx.Done():
			again.Stop()
			return err
		case <-patience.C:
			again.Stop()
			return fmt.Errorf("cannot reach the network process: %w", err)
		case <-again.C:
		}
	}
}

func (c *Client) once(ctx context.Context, method, path string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://network"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return &unansweredError{err}
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return &unansweredError{err}
	}
	if res.StatusCode >= 300 {
		return answerError(res.StatusCode, data)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

func (c *Client) connect(ctx context.Context) (*net.UnixConn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", c.socket)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// answerError makes an Error of an answer's body.
func answerError(status int, body []byte) error {
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Error == "" {
		answer.Error = fmt.Sprintf("the network process answered %d", status)
	}
	return &Error{Status: status, Message: answer.Error}
}

// unansweredError is of a process that is not there, or went away.
type unansweredError struct{ err error }

func (e *unansweredError) Error() string { return e.err.Error() }
func (e *unansweredError) Unwrap() error { return e.err }
