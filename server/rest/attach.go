package rest

import "net/http"

// attach serves pods/NAME/attach: the streams of one of the pod's containers.
func (s *server) attach(w http.ResponseWriter, r *request) error {
	query, err := streamQuery(r.URL.Query())
	if err != nil {
		return err
	}
	return s.toContainer(w, r, "attach", query)
}
