package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"k8s.io/apimachinery/pkg/version"

	"bramble.dev/bramble/server/api"
)

// kubernetesVersion is the release whose wire format is served: that of the
// k8s.io modules in go.mod.
const kubernetesVersion = "1.37.2"

// checkTimeout is how long the checks of one request may take together.
const checkTimeout = 10 * time.Second

func (s *server) serveVersion(w http.ResponseWriter) error {
	body, err := json.Marshal(version.Info{
		Major: "1", Minor: "37", GitVersion: "v" + kubernetesVersion + "+bramble-" + s.cfg.Version,
		BuildDate: api.BuildDate, GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	})
	if err != nil {
		return fmt.Errorf("cannot encode the version: %w", err)
	}
	writeJSON(w, http.StatusOK, append(body, '\n'))
	return nil
}

// serveHealth answers /livez, /readyz and /healthz: "ok", or what fails. The
// causes go to the log, not to a client that may be anybody.
func (s *server) serveHealth(w http.ResponseWriter, r *http.Request, path string) error {
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	var out bytes.Buffer
	out.WriteString("[+]ping ok\n")
	failed := false
	for _, check := range s.cfg.Checks {
		if path == "/livez" && !check.Live {
			continue
		}
		if err := check.Run(ctx); err != nil {
			failed = true
			s.cfg.Log.Warn("health check failed", "check", check.Name, "err", err)
			fmt.Fprintf(&out, "[-]%s failed: the server's log has more\n", check.Name)
			continue
		}
		fmt.Fprintf(&out, "[+]%s ok\n", check.Name)
	}
	code := http.StatusOK
	switch _, verbose := r.URL.Query()["verbose"]; {
	case failed:
		code = http.StatusInternalServerError
		fmt.Fprintf(&out, "%s check failed\n", path[1:])
	case verbose:
		fmt.Fprintf(&out, "%s check passed\n", path[1:])
	default:
		out.Reset()
		out.WriteString("ok")
	}
	writeBytes(w, code, "text/plain; charset=utf-8", out.Bytes())
	return nil
}
