package client

import (
	"net/http"
	"sync"

	"bramble.dev/bramble/server/api"
)

// epochKeeper reads the database's epoch from each response. It also says who
// asks, which client-go leaves to the transport.
type epochKeeper struct {
	next     http.RoundTripper
	agent    string
	onChange func(string)

	mu    sync.Mutex // protects epoch
	epoch string
}

// RoundTrip follows http.RoundTripper.
func (k *epochKeeper) RoundTrip(r *http.Request) (*http.Response, error) {
	if k.agent != "" {
		r = r.Clone(r.Context()) // the caller's must not be changed
		r.Header.Set("User-Agent", k.agent)
	}
	resp, err := k.next.RoundTrip(r)
	if err == nil {
		k.see(resp.Header.Get(api.HeaderEpoch))
	}
	return resp, err
}

func (k *epochKeeper) see(epoch string) {
	k.mu.Lock()
	changed := epoch != "" && epoch != k.epoch
	if changed {
		k.epoch = epoch
	}
	k.mu.Unlock()
	if changed && k.onChange != nil {
		k.onChange(epoch)
	}
}

func (k *epochKeeper) last() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.epoch
}
