package rest

import (
	"bufio"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts requests by verb, resource and code. Paths and names are no
// labels: their number has no bound.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	streams  prometheus.Gauge
	known    map[string]bool // resources of the table
	now      func() time.Time
}

func newMetrics(reg *prometheus.Registry, known map[string]bool, now func() time.Time) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bramble_server_requests_total", Help: "API requests by verb, resource and HTTP code.",
		}, []string{"verb", "resource", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "bramble_server_request_duration_seconds", Help: "Time to answer API requests, without watches and other streams.",
			Buckets: []float64{.002, .01, .05, .2, 1, 5, 30},
		}, []string{"verb", "resource"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "bramble_server_open_requests", Help: "API requests being served now, watches and streams among them.",
		}),
		known: known,
		now:   now,
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.streams} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) observe(next http.Handler, w http.ResponseWriter, r *http.Request) {
	rec := &recorder{ResponseWriter: w}
	start := m.now()
	m.streams.Inc()
	rec.atEnd(func() {
		m.streams.Dec()
		verb, resource := m.labels(r)
		m.requests.WithLabelValues(verb, resource, strconv.Itoa(rec.code())).Inc()
		if !rec.flushed {
			m.seconds.WithLabelValues(verb, resource).Observe(m.now().Sub(start).Seconds())
		}
	})
	defer func() {
		if !rec.outlives {
			rec.finish()
		}
	}()
	next.ServeHTTP(rec, r)
}

func (m *metrics) labels(r *http.Request) (verb, resource string) {
	in := parsePath(r.Method, r.URL.Path, truth(r.URL.Query(), "watch"))
	switch in.Verb {
	case "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection":
	default:
		return "other", ""
	}
	if !m.known[in.Resource] {
		return in.Verb, ""
	}
	if in.Subresource != "" {
		switch in.Subresource {
		case "status", "binding", "eviction", "log", "proxy", "exec", "attach", "portforward", "finalize":
			return in.Verb, in.Resource + "/" + in.Subresource
		}
		return in.Verb, ""
	}
	return in.Verb, in.Resource
}

// recorder remembers the code that was sent, whether the answer is a stream, and what
// is to be done when the request has ended.
type recorder struct {
	http.ResponseWriter
	sent     int
	flushed  bool
	outlives bool // its handler: who made it so calls finish
	ends     []func()
}

func (r *recorder) atEnd(f func()) { r.ends = append(r.ends, f) }

func (r *recorder) finish() {
	for _, end := range slices.Backward(r.ends) {
		end()
	}
}

func (r *recorder) code() int {
	if r.sent == 0 {
		return http.StatusOK
	}
	return r.sent
}

func (r *recorder) WriteHeader(code int) {
	if r.sent == 0 {
		r.sent = code
	}
	r.ResponseWriter.WriteHeader(code)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.sent == 0 {
		r.sent = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Flush implements http.Flusher, which httputil.ReverseProxy looks for.
func (r *recorder) Flush() {
	r.flushed = true
	_ = http.NewResponseController(r.ResponseWriter).Flush()
}

// Hijack implements http.Hijacker: who takes the connection over streams.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(r.ResponseWriter).Hijack()
	if err == nil {
		r.sent, r.flushed = http.StatusSwitchingProtocols, true
	}
	return conn, buffered, err
}

// Unwrap is for http.ResponseController: deadlines and hijacking.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
