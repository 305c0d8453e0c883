package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"bramble.dev/bramble/nodeagent/network/netapi"
)

const maxBody = 64 << 10

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/node", s.putNode)
	mux.HandleFunc("PUT /v1/pods/{uid}", s.putPod)
	mux.HandleFunc("DELETE /v1/pods/{uid}", s.deletePod)
	mux.HandleFunc("GET /v1/pods", s.getPods)
	mux.HandleFunc("GET /v1/dial", s.getDial)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, netapi.Health{Version: s.config.Version, PID: os.Getpid()})
	})
	return mux
}

func (s *Server) putNode(w http.ResponseWriter, r *http.Request) {
	var n netapi.Node
	if err := decode(w, r, &n); err != nil {
		s.refuse(w, err)
		return
	}
	n = n.WithDefaults()
	if err := n.Validate(); err != nil {
		s.refuse(w, invalid(err))
		return
	}
	status, err := s.setNode(r.Context(), n)
	s.conclude(w, status, err)
}

func (s *Server) putPod(w http.ResponseWriter, r *http.Request) {
	var p netapi.Pod
	if err := decode(w, r, &p); err != nil {
		s.refuse(w, err)
		return
	}
	if uid := r.PathValue("uid"); p.UID != uid {
		s.refuse(w, invalid(fmt.Errorf("the body's uid %q is not the path's %q", p.UID, uid)))
		return
	}
	status, err := s.attach(r.Context(), p)
	s.conclude(w, status, err)
}

func (s *Server) deletePod(w http.ResponseWriter, r *http.Request) {
	uid := r.PathValue("uid")
	if !netapi.ValidUID(uid) {
		s.refuse(w, invalid(fmt.Errorf("%q is no pod's uid", uid)))
		return
	}
	s.conclude(w, struct{}{}, s.detach(r.Context(), uid))
}

func (s *Server) getPods(w http.ResponseWriter, r *http.Request) {
	pods, err := s.pods()
	s.conclude(w, pods, err)
}

// decode reads a bounded JSON body into v. Fields that it does not know are
// passed over: the agent may be newer than this process.
func decode(w http.ResponseWriter, r *http.Request, v any) error {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(v)
	if err != nil {
		return invalid(fmt.Errorf("cannot read the request's body: %w", err))
	}
	return nil
}

func (s *Server) conclude(w http.ResponseWriter, result any, err error) {
	if err != nil {
		s.refuse(w, err)
		return
	}
	answer(w, result)
}

func answer(w http.ResponseWriter, result any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(result) // the client is gone: nobody to tell
}

// refuse answers with an error. It is the caller's to log; what is our own
// fault is logged here as well.
func (s *Server) refuse(w http.ResponseWriter, err error) {
	e := &netapi.Error{Status: http.StatusInternalServerError, Message: err.Error()}
	if !errors.As(err, &e) {
		s.config.Log.Error("a request could not be served", "err", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}

func invalid(err error) error {
	return &netapi.Error{Status: http.StatusBadRequest, Message: err.Error()}
}

func conflict(format string, args ...any) error {
	return &netapi.Error{Status: http.StatusConflict, Message: fmt.Sprintf(format, args...)}
}

func notReady() error {
	return &netapi.Error{Status: http.StatusServiceUnavailable, Message: netapi.ErrNotReady.Error() + ": PUT /v1/node first"}
}
