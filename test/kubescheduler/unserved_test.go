package kubescheduler

import (
	"context"
	"io"
	"net/http"
	"strings"
)

// unserved are the kinds that Kubernetes' scheduler watches and Bramble does not
// serve: of none of them there are any.
var unserved = []string{
	"/api/v1/persistentvolume", "/api/v1/services", "/api/v1/replicationcontrollers",
	"/apis/apps/", "/apis/policy/", "/apis/storage.k8s.io/", "/apis/resource.k8s.io/", "/apis/scheduling.k8s.io/v1alpha", "/apis/scheduling.k8s.io/v1beta",
}

// answerUnserved answers for them with an empty list and a watch that says nothing,
// within the process.
func answerUnserved(next http.RoundTripper) http.RoundTripper { return emptiness{next} }

type emptiness struct{ http.RoundTripper }

func (e emptiness) RoundTrip(r *http.Request) (*http.Response, error) {
	for _, prefix := range unserved {
		if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, prefix) {
			return answer(r), nil
		}
	}
	return e.RoundTripper.RoundTrip(r)
}

func answer(r *http.Request) *http.Response {
	response := &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
	}
	watch, streams := r.URL.Query()["watch"], r.URL.Query().Has("sendInitialEvents")
	switch {
	case streams: // a client then lists
		response.StatusCode = http.StatusUnprocessableEntity
		response.Body = body(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case len(watch) == 0:
		response.Body = body(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	default:
		reader, writer := io.Pipe()
		context.AfterFunc(r.Context(), func() { _ = writer.CloseWithError(r.Context().Err()) })
		response.Body = reader
	}
	return response
}

func body(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }
