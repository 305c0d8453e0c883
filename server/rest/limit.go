package rest

import (
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bramble.dev/bramble/server/api"
)

// Limits of a request's body, beside maxBody. Merging and comparing cost the
// square of a list's length and of the depth: 3 MB of brackets would keep a core
// busy for minutes. No real object comes near.
const (
	maxNodeBody = 256 << 10 // of a request by a node: its own status and small things
	maxDepth    = 128
	maxItems    = 4096        // of one list
	maxFields   = 16 << 10    // of one object
	maxYAML     = 128 << 10   // signs of YAML that may each begin a value
	bodyTimeout = time.Minute // for all of a body to come
	answerPiece = 256 << 10   // of an answer, to be taken within writeTimeout
)

// bodyLimit is how large a body the user of r may send.
func bodyLimit(r *http.Request) int64 {
	if user, ok := api.UserFrom(r.Context()); ok {
		if _, isNode := user.Node(); isNode {
			return maxNodeBody
		}
	}
	return maxBody
}

// checkShape counts what JSON nests, and fails with a 413 where it is too much.
// What is no JSON is for the decoder to say.
func checkShape(data []byte) error {
	type level struct {
		list  bool
		count int
	}
	var levels [maxDepth + 1]level
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[', c == '{':
			if depth++; depth > maxDepth {
				return tooMuch("the body nests deeper than %d levels", maxDepth)
			}
			levels[depth] = level{list: c == '['}
		case c == ']', c == '}':
			depth = max(depth-1, 0)
		case c == ',':
			l := &levels[depth]
			l.count++
			if l.list && l.count >= maxItems {
				return tooMuch("a list in the body has more than %d items", maxItems)
			}
			if l.count >= maxFields {
				return tooMuch("an object in the body has more than %d fields", maxFields)
			}
		}
	}
	return nil
}

// checkYAML fails with a 413 where a YAML body could have too many values: its
// parser takes microseconds and a hundred bytes for each, before their shape is known.
func checkYAML(data []byte) error {
	signs := 0
	for _, c := range data {
		switch c {
		case ',', '[', '{', ':', '-', '?':
			signs++
		}
	}
	if signs > maxYAML {
		return tooMuch("the body, as YAML, has more than %d of the signs , [ { : - ? that may begin a value: send it as JSON, or in parts", maxYAML)
	}
	return nil
}

func tooMuch(format string, args ...any) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(format, args...))
}

// hurry ends a request whose body does not come: a connection is not held by a
// byte now and then. Streams to a pod may take as long as they like.
func hurry(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 && !mayLast(infoFrom(r.Context()).Subresource) {
			control := http.NewResponseController(w)
			_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every reader has one
			r.Body = &hurriedBody{r.Body, control}
		}
		next.ServeHTTP(w, r)
	})
}

// mayLast reports whether a subresource's body is a stream.
func mayLast(subresource string) bool {
	switch subresource {
	case "proxy", "exec", "attach", "portforward":
		return true
	}
	return false
}

// hurriedBody takes the deadline back at the body's end: what comes after it on
// the connection has deadlines of its own.
type hurriedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *hurriedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// writeAll sends an answer piece by piece, each within writeTimeout: a client
// that takes nothing does not keep it in memory for ever.
func writeAll(w http.ResponseWriter, body []byte) {
	control := http.NewResponseController(w)
	for len(body) > 0 {
		n := min(len(body), answerPiece)
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has one
		if _, err := w.Write(body[:n]); err != nil {
			return // the client is gone: nothing to do about it
		}
		body = body[n:]
	}
}
