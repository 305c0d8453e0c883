package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bramble.dev/bramble/nodeagent/network/netapi"
)

// remains lists by uid the pods that have a network or a directory on this node,
// one more than once; the engine may know nothing of them.
func (a *Agent) remains(ctx context.Context) ([]string, error) {
	var uids []string
	networks, err := a.network.Pods(ctx)
	if err != nil {
		err = fmt.Errorf("cannot list the networks of pods: %w", err)
	}
	for _, n := range networks {
		uids = append(uids, n.UID)
	}
	for _, dir := range []string{a.cfg.own("pods"), a.cfg.own("volumes"), a.cfg.own("binds"), filepath.Join(a.cfg.StateDir, "volumes")} {
		entries, readErr := os.ReadDir(dir)
		if !errors.Is(readErr, fs.ErrNotExist) {
			err = errors.Join(err, readErr)
		}
		for _, e := range entries {
			if netapi.ValidUID(e.Name()) {
				uids = append(uids, e.Name())
			}
		}
	}
	return uids, err
}
