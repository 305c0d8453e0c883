package stream

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// logs streams a container's log, each piece as it comes.
func (h *Handler) logs(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	options, limit, err := parseLogOptions(q, h.Now())
	if err != nil {
		h.refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	id, err := h.Pods.Container(r.Context(), r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"), q.Get("previous") == "true")
	if err != nil {
		h.refuse(w, err)
		return
	}
	out := &flusher{w: w, left: limit, begin: func() {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusOK)
	}}
	if options.Follow {
		out.start() // the client learns at once that it is being served
	}
	err = h.Logs.Logs(r.Context(), id, options, out)
	switch {
	case err == nil || r.Context().Err() != nil || errors.Is(err, errLimit):
		out.start()
	case out.started:
		h.Log.Info("a log broke off", "container", id, "err", err)
		panic(http.ErrAbortHandler) // the client must not take it for the whole
	default:
		h.refuse(w, err)
	}
}

// parseLogOptions reads the query of a log request; limit is -1 for none.
func parseLogOptions(q url.Values, now time.Time) (o LogOptions, limit int64, err error) {
	o = LogOptions{Follow: q.Get("follow") == "true", Timestamps: q.Get("timestamps") == "true", Tail: -1}
	limit = -1
	number := func(name string, least int64, into *int64) {
		text := q.Get(name)
		if text == "" || err != nil {
			return
		}
		n, parseErr := strconv.ParseInt(text, 10, 64)
		if parseErr != nil || n < least {
			err = fmt.Errorf("%s: must be a whole number of at least %d, not %q", name, least, text)
			return
		}
		*into = n
	}
	var seconds int64
	number("tailLines", 0, &o.Tail)
	number("limitBytes", 1, &limit)
	number("sinceSeconds", 1, &seconds)
	if seconds > 0 {
		o.Since = now.Add(-time.Duration(min(seconds, 1<<32)) * time.Second)
	}
	if text := q.Get("sinceTime"); text != "" && err == nil {
		if o.Since, err = time.Parse(time.RFC3339, text); err != nil {
			err = fmt.Errorf("sinceTime: must be a time as of RFC 3339, not %q", text)
		}
	}
	return o, limit, err
}

// errLimit ends a log at limitBytes.
var errLimit = errors.New("limitBytes is reached")

// flusher sends each write to the client at once, and at most left bytes.
type flusher struct {
	w       http.ResponseWriter
	begin   func()
	started bool
	left    int64 // -1: no limit
}

func (f *flusher) start() {
	if !f.started {
		f.started = true
		f.begin()
		f.flush()
	}
}

func (f *flusher) flush() { _ = http.NewResponseController(f.w).Flush() }

func (f *flusher) Write(p []byte) (int, error) {
	f.start()
	over := f.left >= 0 && int64(len(p)) >= f.left
	if over {
		p = p[:f.left]
	}
	n, err := f.w.Write(p)
	f.flush()
	if f.left >= 0 {
		f.left -= int64(n)
	}
	if err == nil && over {
		err = errLimit
	}
	return n, err
}

var _ io.Writer = (*flusher)(nil)
