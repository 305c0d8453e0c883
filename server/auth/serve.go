package auth

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxBody is far above a certificate request with an RSA key.
const maxBody = 64 << 10

// serve decodes a POST's body, has it handled, and sends the answer or a Status.
func serve[In any](w http.ResponseWriter, r *http.Request, log *slog.Logger, handle func(In) (answer any, code int, err error)) {
	var in In
	err := decodeBody(w, r, &in)
	var answer any
	var code int
	if err == nil {
		answer, code, err = handle(in)
	}
	if err != nil {
		writeError(w, r, log, err)
		return
	}
	writeJSON(w, code, answer)
}

func decodeBody(w http.ResponseWriter, r *http.Request, into any) error {
	if r.Method != http.MethodPost {
		return apierrors.NewMethodNotSupported(schema.GroupResource{Resource: r.URL.Path}, r.Method)
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			return nil
		}
		err = errors.New("something follows the JSON object")
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return apierrors.NewRequestEntityTooLargeError("the body is over " + strconv.Itoa(maxBody) + " bytes")
	}
	return apierrors.NewBadRequest("cannot decode the body: " + err.Error())
}

func writeError(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		log.Error("request failed", "path", r.URL.Path, "err", err)
		known = apierrors.NewInternalError(errors.New("internal error"))
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	writeJSON(w, int(status.Code), &status)
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // our own types only
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}
