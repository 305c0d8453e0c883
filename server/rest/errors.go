package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// statusOf turns any error into the Status that the client gets. known is false
// for an error that nobody meant for a client: its text stays in the log.
func statusOf(err error) (status metav1.Status, known bool) {
	var withStatus apierrors.APIStatus
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &withStatus):
		status = withStatus.Status()
	case errors.As(err, &tooLarge):
		status = apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", tooLarge.Limit)).Status()
	case errors.Is(err, context.DeadlineExceeded):
		status = apierrors.NewTimeoutError("the request took longer than it may; try again", 1).Status()
	case errors.Is(err, context.Canceled):
		status = apierrors.NewTimeoutError("the request was cancelled, or the server is stopping; try again", 1).Status()
	default:
		status = apierrors.NewInternalError(errors.New("the server's log has more")).Status()
		status.Message = "internal error: the server's log has more"
		return withType(status), false
	}
	return withType(status), true
}

func withType(s metav1.Status) metav1.Status {
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if s.Code == 0 {
		s.Code = http.StatusInternalServerError
	}
	return s
}

// writeError answers with err's Status. An unknown error is logged, here and
// nowhere else.
func (s *server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	status, known := statusOf(err)
	if !known {
		s.cfg.Log.Error("cannot serve request", "method", r.Method, "path", r.URL.Path, "request", requestID(r.Context()), "err", err)
	}
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	writeStatus(w, status)
}

func writeStatus(w http.ResponseWriter, status metav1.Status) {
	body, err := json.Marshal(withType(status))
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	writeJSON(w, int(status.Code), append(body, '\n'))
}

func writeJSON(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Cache-Control", "no-cache, private")
	writeBytes(w, code, mediaJSON, body)
}

func writeBytes(w http.ResponseWriter, code int, media string, body []byte) {
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	writeAll(w, body)
}

// notFound is the answer for a path that nothing serves, in the words that
// kubectl shows.
func notFound(in info) error {
	err := apierrors.NewGenericServerResponse(http.StatusNotFound, in.Verb, schema.GroupResource{Group: in.Group, Resource: in.Resource}, in.Name, "", 0, false)
	err.ErrStatus.Message = "the server could not find the requested resource"
	if in.IsResource && in.Resource != "" {
		what := in.Resource
		if in.Group != "" {
			what += "." + in.Group
		}
		if in.Subresource != "" {
			what += "/" + in.Subresource
		}
		err.ErrStatus.Message += ": Bramble does not serve " + what + " (what it serves: kubectl api-resources)"
	}
	return err
}

func notAcceptable() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: application/json",
	}}
}

func unsupportedMediaType(what string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: what,
	}}
}

// unavailable is a 503 that says what to do.
func unavailable(format string, args ...any) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf(format, args...))
}

func badRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}
