package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Unmount removes all volumes of a pod with what is in them. No container may
// use them any more. It succeeds when there are none.
func (v *Volumes) Unmount(ctx context.Context, uid string) error {
	if err := local(uid); err != nil {
		return err
	}
	if err := v.unbind(ctx, uid); err != nil {
		return fmt.Errorf("cannot unmount the volumes of pod %s: %w", uid, err)
	}
	for _, root := range []string{v.config.RuntimeDir, v.config.Dir} {
		if err := v.remove(ctx, filepath.Join(root, uid)); err != nil {
			return fmt.Errorf("cannot remove the volumes of pod %s: %w", uid, err)
		}
	}
	return nil
}

// remove removes a tree. Directories that other users of containers made are
// those of subordinate ids: only inside Podman's user namespace may they be
// emptied, so that is tried when the plain way is refused.
func (v *Volumes) remove(ctx context.Context, dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	out, err := v.config.Podman(ctx, "unshare", "rm", "-rf", "--one-file-system", "--", dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot remove %s inside the user namespace: %w\n%s", dir, err, out)
	}
	return nil
}

// unbind undoes what is mounted for a pod. The places are removed from outside
// Podman's mount namespace, where nothing is mounted at them: whatever happens,
// what was mounted is not touched.
func (v *Volumes) unbind(ctx context.Context, uid string) error {
	if v.config.BindDir == "" {
		return nil
	}
	dir := filepath.Join(v.config.BindDir, uid)
	if _, err := os.Lstat(dir); err != nil {
		return nil
	}
	if err := v.inside(ctx, job{Clear: &clearJob{Dir: dir}}); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return os.Remove(dir)
}
