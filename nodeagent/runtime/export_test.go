package runtime

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// IsPodman is for tests that look for Podman's service.
var IsPodman = isPodman

// Demultiplex is for the fuzzing of what Podman frames.
var Demultiplex = demultiplex

// Written is for tests of logs that end.
var Written = written

// ReadLog reads data as if conmon had written it, using a file in dir.
func ReadLog(dir string, data []byte, o LogOptions) (string, error) {
	path := filepath.Join(dir, "log")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", err
	}
	var out strings.Builder
	l := newLogReader(path, o, &out)
	defer l.close()
	err := l.readNow(context.Background())
	return out.String(), err
}
