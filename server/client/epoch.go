package client

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"bramble.dev/bramble/server/api"
)

// epochKeeper reads the database's epoch and the server's time from each response.
// It also says who asks, which client-go leaves to the transport.
type epochKeeper struct {
	next     http.RoundTripper
	agent    string
	onChange func(epoch string, follows []string)

	mu      sync.Mutex // protects what follows
	epoch   string
	follows string    // as the header has it
	said    time.Time // the server's time in the last response that had one
	at      time.Time // when that was here
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
		if said, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			k.hear(said)
		}
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

func (k *epochKeeper) hear(said time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.said, k.at = said, time.Now()
}

// now is the server's time, carried on by the monotonic clock.
func (k *epochKeeper) now() (time.Time, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.at.IsZero() {
		return time.Time{}, false
	}
	return k.said.Add(time.Since(k.at)), true
}
