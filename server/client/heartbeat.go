package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"bramble.dev/bramble/server/api"
)

// heartbeat is the stream of heartbeats, while there is one.
type heartbeat struct {
	mu     sync.Mutex // protects stream, and makes it one beat at a time
	stream io.ReadWriteCloser
}

// Beat renews this node's Lease, which has to be there, by a byte each way. After
// an error, which needs not say why, renew it by UpdateLease: the next Beat tries
// again.
func (c *Client) Beat(ctx context.Context) error {
	c.beats.mu.Lock()
	defer c.beats.mu.Unlock()
	if c.beats.stream == nil {
		stream, err := c.openHeartbeats(ctx)
		if err != nil {
			return err
		}
		c.beats.stream = stream
	}
	stream := c.beats.stream
	stop := context.AfterFunc(ctx, func() { stream.Close() })
	beat := []byte{'.'}
	_, err := stream.Write(beat)
	if err == nil {
		_, err = io.ReadFull(stream, beat)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		stream.Close()
		c.beats.stream = nil
		return fmt.Errorf("cannot renew the lease by a heartbeat: %w", err)
	}
	return nil
}

// openHeartbeats asks the server for the stream; ctx bounds that alone.
func (c *Client) openHeartbeats(ctx context.Context) (io.ReadWriteCloser, error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	r, err := http.NewRequestWithContext(lasting, http.MethodPost, "http://"+api.ServerName+api.HeartbeatsPath, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", api.HeartbeatsProtocol)
	resp, err := c.epoch.RoundTrip(r)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("cannot open the heartbeats: %w", err)
	}
	stream, ok := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
		defer cancel()
		return nil, errors.Join(fmt.Errorf("cannot open the heartbeats: %s", resp.Status), resp.Body.Close())
	}
	return &endedStream{stream, cancel}, nil
}

// endedStream ends its request's context too.
type endedStream struct {
	io.ReadWriteCloser
	cancel context.CancelFunc
}

func (s *endedStream) Close() error {
	s.cancel()
	return s.ReadWriteCloser.Close()
}

// close ends the stream.
func (h *heartbeat) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stream != nil {
		h.stream.Close()
		h.stream = nil
	}
}
