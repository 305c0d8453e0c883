package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// StateDir is the file system that the node's state, images and volumes are on.
type StateDir struct {
	Path               string // "" if it is not looked at
	Dir                string // itself, or the nearest folder above it that is there
	Size, Free         int64  // bytes, for other users than root
	Inodes, InodesFree int64  // 0 where the file system makes them as it needs them
	ReadOnly           bool
	Writable           bool // by this process, if that is the user's
	Err                error
}

func (p Place) lookStateDir() StateDir {
	s := StateDir{Path: p.StateDir}
	if s.Path == "" {
		return s
	}
	for s.Dir = p.path(s.Path); s.Dir != "/"; s.Dir = filepath.Dir(s.Dir) {
		if info, err := os.Stat(s.Dir); err == nil && info.IsDir() {
			break
		}
	}
	var disk unix.Statfs_t
	if s.Err = unix.Statfs(s.Dir, &disk); s.Err != nil {
		return s
	}
	s.Size, s.Free = int64(disk.Blocks)*int64(disk.Bsize), int64(disk.Bavail)*int64(disk.Bsize)
	s.Inodes, s.InodesFree = int64(disk.Files), int64(disk.Ffree)
	s.ReadOnly = disk.Flags&unix.ST_RDONLY != 0
	s.Writable = unix.Access(s.Dir, unix.W_OK|unix.X_OK) == nil
	return s
}

const checkReadOnly = "ReadOnlyFilesystem"

func checkStateDir(f Facts) (all []Finding) {
	const pressure = "DiskPressure"
	s := f.State
	switch {
	case s.Path == "":
		return nil
	case s.Err != nil:
		return []Finding{unknown(pressure, "how much room the state directory %s has: %v", s.Path, s.Err)}
	case s.ReadOnly:
		return []Finding{fatal(checkReadOnly, "%s is on a file system that can only be read, as the kernel makes it when it finds errors (dmesg says so): a boot checks it, and a card that does it again is to be replaced", s.Path).by("sudo reboot")}
	}
	all = append(all, fine(checkReadOnly, "%s is on a file system that can be written to", s.Path))
	const usable = "StateDirUnusable"
	if f.Self && !s.Writable {
		all = append(all, fatal(usable, "user %s may not write to %s", f.User.Username, s.Dir).by("sudo install -d -m 700 -o %s -g %s %s", f.User.Uid, f.User.Gid, s.Path))
	}
	room := fmt.Sprintf("%s of %s free for the state directory %s", gigabytes(s.Free), gigabytes(s.Size), s.Path)
	if s.Inodes > 0 {
		room += fmt.Sprintf(", and %d %% of the inodes", s.InodesFree*100/s.Inodes)
	}
	prune := "sudo apt clean"
	if f.User != nil {
		prune += " && sudo -iu " + f.User.Username + " podman image prune --all"
	}
	switch {
	case s.Free <= 0 || s.Inodes > 0 && s.InodesFree == 0:
		all = append(all, fatal(pressure, "the storage is full: %s", room).by("%s", prune))
	case s.Free < s.Size/10 || s.InodesFree < s.Inodes/20:
		all = append(all, warning(pressure, "little room: %s", room).by("%s", prune))
	default:
		all = append(all, fine(pressure, "%s", room))
	}
	return all
}

func gigabytes(bytes int64) string { return fmt.Sprintf("%.1f GB", float64(bytes)/1e9) }

// checkDisks looks for storage that fails.
func checkDisks(f Facts) (all []Finding) {
	const errors, worn = "FilesystemErrors", "StorageWorn"
	var bad, tired, near, good []string
	counted := false
	for _, m := range f.Board.Mounts {
		counted = counted || m.Errors.OK()
		if m.Errors.OK() && m.Errors.Value > 0 {
			bad = append(bad, fmt.Sprintf("%s (%s) %d", m.Path, m.Device, m.Errors.Value))
		}
	}
	switch {
	case bad != nil:
		all = append(all, warning(errors, "ext4 counted errors, which it does until its check is run: %s; a boot runs it, and storage that does it again is to be replaced", strings.Join(bad, ", ")).by("sudo reboot"))
	case counted:
		all = append(all, fine(errors, "ext4 counted no errors"))
	}
	for _, d := range f.Board.Disks {
		if !d.Wear.OK() {
			continue
		}
		wear := fmt.Sprintf("%s has used %d %% of the life that its maker promises", d.Name, d.Wear.Value.UsedPercent)
		switch w := d.Wear.Value; {
		case w.Out():
			tired = append(tired, wear)
		case w.PreEOL == "warning":
			near = append(near, wear+", and 80 % of its spare blocks")
		default:
			good = append(good, wear+" at most")
		}
	}
	switch {
	case tired != nil:
		all = append(all, warning(worn, "worn storage: %s; replace it", strings.Join(tired, ", ")))
	case near != nil:
		all = append(all, note(worn, "storage that wears out: %s", strings.Join(near, ", ")))
	case good != nil:
		all = append(all, fine(worn, "%s", strings.Join(good, ", ")))
	case len(f.Board.Disks) > 0:
		all = append(all, unknown(worn, "how worn the storage is: no disk here says so (SD cards and most others do not)"))
	}
	return all
}
