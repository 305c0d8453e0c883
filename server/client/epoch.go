package client

import (
	"net/http"
	"strings"
	"sync"

	"bramble.dev/bramble/server/api"
)

// epochKeeper reads the database's epoch from each response. It also says who
// asks, which client-go leaves to the transport.
type epochKeeper struct {
	next     http.RoundTripper
	agent    string
	onChange func(epoch string, follows []string)

	mu      sync.Mutex // protects what follows
	epoch   string
	follows string // as the header has it
}

// RoundTrip follows http.RoundTripper.
func (k *epochKeeper) RoundTrip(r *http.Request) (*http.Response, error) {
	if k.agent != "" {
		r = r.Clone(r.Context()) // the caller's must not be changed
		r.Header.Set("User-Agent", k.agent)
	}
	resp, err := k.next.RoundTrip(r)
	if err == nil {
		k.see(resp.Header.Get(api.HeaderEpoch), resp.Header.Get(api.HeaderFollows))
	}
	return resp, err
}

func (k *epochKeeper) see(epoch, follows string) {
	k.mu.Lock()
	changed := epoch != "" && (epoch != k.epoch || follows != k.follows)
	if changed {
		k.epoch, k.follows = epoch, follows
	}
	k.mu.Unlock()
	if changed && k.onChange != nil {
		k.onChange(epoch, strings.FieldsFunc(follows, func(r rune) bool { return r == ',' }))
	}
}

func (k *epochKeeper) last() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.epoch
}
