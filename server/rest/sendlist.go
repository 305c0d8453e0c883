package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/objects"
)

// listWriter sends a long answer in pieces, so that no more than a piece of it is
// ever made: a hundred clients that list at once share the stored bodies. An
// error after the first piece breaks the connection off.
type listWriter struct {
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	piece   bytes.Buffer
	started bool
}

func newListWriter(w http.ResponseWriter, r *http.Request) *listWriter {
	return &listWriter{w: w, r: r, control: http.NewResponseController(w)}
}

// add appends to the answer.
func (l *listWriter) add(b []byte) {
	l.piece.Write(b)
	if l.piece.Len() >= answerPiece {
		l.flush()
	}
}

// flush sends what there is, within writeTimeout.
func (l *listWriter) flush() {
	if !l.started {
		l.started = true
		header := l.w.Header()
		header.Set("Cache-Control", "no-cache, private")
		header.Set("Content-Type", mediaJSON)
		header.Set("X-Content-Type-Options", "nosniff")
		l.w.WriteHeader(http.StatusOK)
	}
	_ = l.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has one
	if _, err := l.w.Write(l.piece.Bytes()); err != nil || l.r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	l.piece.Reset()
}

// fail returns err while nothing was sent, and breaks off otherwise.
func (l *listWriter) fail(err error) error {
	if l.started {
		panic(http.ErrAbortHandler)
	}
	return err
}

// sendList sends a list around bodies that are encoded already, each as convert
// (nil: as it is) makes it.
func sendList(w http.ResponseWriter, r *http.Request, apiVersion, kind string, meta metav1.ListMeta, items []objects.Stored, convert func([]byte) ([]byte, error)) error {
	head, err := json.Marshal(meta)
	if err != nil {
		return fmt.Errorf("cannot encode a list's metadata: %w", err)
	}
	out := newListWriter(w, r)
	out.add(fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, kind, apiVersion, head))
	for i, item := range items {
		body := item.Body.Bytes()
		if convert != nil {
			if body, err = convert(body); err != nil {
				return out.fail(err)
			}
		}
		if i > 0 {
			out.add([]byte{','})
		}
		out.add(bytes.TrimRight(body, "\n"))
	}
	out.add([]byte("]}\n"))
	out.flush()
	return nil
}

// sendTable is sendList for tables: the rows are made as they are sent.
func (s *server) sendTable(w http.ResponseWriter, r *request, meta metav1.ListMeta, items []objects.Stored) error {
	frame, err := s.tableOf(r, meta, nil, true)
	if err != nil {
		return err
	}
	include, err := includeObject(r)
	if err != nil {
		return err
	}
	head, ok := bytes.CutSuffix(frame, []byte("]}\n")) // the rows stand last
	if !ok {
		return fmt.Errorf("cannot encode the table of %s: rows do not stand last", r.kind.Resource())
	}
	out := newListWriter(w, r.Request)
	out.add(head)
	now := s.cfg.Now()
	for i, item := range items {
		row, err := rowOf(r.kind, item, include, now)
		if err != nil {
			return out.fail(err)
		}
		text, err := json.Marshal(row)
		if err != nil {
			return out.fail(err)
		}
		if i > 0 {
			out.add([]byte{','})
		}
		out.add(text)
	}
	out.add([]byte("]}\n"))
	out.flush()
	return nil
}
