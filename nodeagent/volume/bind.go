package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// bindJob makes a part of a volume, or a path of the node, a mount of its own:
// what is looked up is held open, and that very inode is mounted, so that nothing
// a container does to the names in between leads elsewhere.
type bindJob struct {
	Root   string // of the volume; empty: Path is a path of the node
	Path   string
	Make   bool // the directory that is missing below Root
	Target string

	// Of a path of the node:
	Type      corev1.HostPathType
	Protected []string // paths that must be neither in it nor above it
}

func (j *bindJob) do() error {
	fd, err := j.open()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	held := fmt.Sprintf("/proc/self/fd/%d", fd)
	info, err := os.Stat(held)
	if err != nil {
		return err
	}
	if j.Root == "" {
		if err := j.check(held, info); err != nil {
			return err
		}
	}
	if err := (&clearJob{j.Target}).do(); err != nil {
		return err
	}
	if err := makeTarget(j.Target, info.IsDir()); err != nil {
		return fmt.Errorf("cannot make a place to mount at: %w", err)
	}
	if err := unix.Mount(held, j.Target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("cannot mount %q: %w", j.Path, err)
	}
	return nil
}

func makeTarget(path string, dir bool) error {
	if info, err := os.Lstat(path); err == nil && info.IsDir() != dir {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func (j *bindJob) open() (fd int, err error) {
	if j.Root == "" {
		return j.openHost()
	}
	root, err := unix.Open(j.Root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("cannot open a volume: %w", err)
	}
	defer unix.Close(root)
	if fd, err = beneath(root, j.Path); !errors.Is(err, fs.ErrNotExist) || !j.Make {
		return fd, outside(err, j.Path)
	}
	made := "."
	for part := range strings.SplitSeq(j.Path, "/") {
		parent, err := beneath(root, made)
		if err != nil {
			return -1, outside(err, j.Path)
		}
		err = unix.Mkdirat(parent, part, 0o777)
		if err == nil {
			err = share(root, parent, part)
		}
		_ = unix.Close(parent)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return -1, fmt.Errorf("cannot make subPath %q: %w", j.Path, err)
		}
		made = filepath.Join(made, part)
	}
	fd, err = beneath(root, j.Path)
	return fd, outside(err, j.Path)
}

// share gives a directory that was made the volume's mode, whatever the umask.
func share(root, parent int, name string) error {
	var st unix.Stat_t
	if err := unix.Fstat(root, &st); err != nil {
		return err
	}
	fd, err := unix.Openat(parent, name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchmod(fd, st.Mode&0o7777)
}

// beneath opens a path that stays in root, links included (openat2(2)).
func beneath(root int, path string) (int, error) {
	return unix.Openat2(root, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// outside says what a person must know when a subPath cannot be opened.
func outside(err error, path string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ELOOP):
		return fmt.Errorf("subPath %q leads out of its volume by a symbolic link", path)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("subPath %q is not in the volume", path)
	}
	return fmt.Errorf("cannot open subPath %q: %w", path, err)
}

// openHost opens a path of the node; what is missing is made if its type asks for it.
func (j *bindJob) openHost() (int, error) {
	open := func() (int, error) { return unix.Open(j.Path, unix.O_PATH|unix.O_CLOEXEC, 0) }
	fd, err := open()
	if errors.Is(err, fs.ErrNotExist) {
		if err := j.checkMissing(); err != nil {
			return -1, err
		}
		switch j.Type {
		case corev1.HostPathDirectoryOrCreate, corev1.HostPathUnset:
			err = os.MkdirAll(j.Path, 0o755)
		case corev1.HostPathFileOrCreate:
			err = makeTarget(j.Path, false)
		default:
			return -1, fmt.Errorf("hostPath type check failed: %s is not %s", j.Path, kindWords[j.Type])
		}
		if err == nil {
			fd, err = open()
		}
	}
	if err != nil {
		return -1, fmt.Errorf("cannot open hostPath %s as the node's user (give that user access to it): %w", j.Path, err)
	}
	return fd, nil
}

// checkMissing looks at where a path that is to be made would really be.
func (j *bindJob) checkMissing() error {
	parent := j.Path
	for {
		parent = filepath.Dir(parent)
		real, err := filepath.EvalSymlinks(parent)
		if err == nil {
			rest, _ := filepath.Rel(parent, j.Path)
			return j.protect(filepath.Join(real, rest))
		}
		if parent == "/" || !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot open hostPath %s: %w", j.Path, err)
		}
	}
}

// kindWords are the kubelet's.
var kindWords = map[corev1.HostPathType]string{
	corev1.HostPathDirectory: "a directory", corev1.HostPathDirectoryOrCreate: "a directory",
	corev1.HostPathFile: "a file", corev1.HostPathFileOrCreate: "a file", corev1.HostPathSocket: "a socket file",
	corev1.HostPathCharDev: "a character device", corev1.HostPathBlockDev: "a block device",
}

// check holds the type of a path of the node, and what it may not give away.
func (j *bindJob) check(held string, info fs.FileInfo) error {
	is := map[corev1.HostPathType]bool{
		corev1.HostPathUnset:     true,
		corev1.HostPathDirectory: info.IsDir(), corev1.HostPathDirectoryOrCreate: info.IsDir(),
		corev1.HostPathFile: info.Mode().IsRegular(), corev1.HostPathFileOrCreate: info.Mode().IsRegular(),
		corev1.HostPathSocket:   info.Mode().Type() == fs.ModeSocket,
		corev1.HostPathCharDev:  info.Mode().Type() == fs.ModeDevice|fs.ModeCharDevice,
		corev1.HostPathBlockDev: info.Mode().Type() == fs.ModeDevice,
	}
	if !is[j.Type] {
		return fmt.Errorf("hostPath type check failed: %s is not %s", j.Path, kindWords[j.Type])
	}
	real, err := os.Readlink(held)
	if err != nil {
		return err
	}
	for _, p := range j.Protected { // by another name, as a bind mount
		if other, err := os.Stat(p); err == nil && os.SameFile(other, info) {
			return j.refuse(p)
		}
	}
	return j.protect(real)
}

// protect refuses a real path that has what is protected in it or above it.
func (j *bindJob) protect(real string) error {
	for _, p := range j.Protected {
		for _, name := range []string{p, resolved(p)} {
			if overlap(real, name) {
				return j.refuse(p)
			}
		}
	}
	return nil
}

func (j *bindJob) refuse(protected string) error {
	return fmt.Errorf("hostPath %s is not allowed: it would give the container %s, and with it this node; choose another directory", j.Path, protected)
}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// overlap says that one of two clean paths is the other or inside it.
func overlap(a, b string) bool {
	in := func(x, y string) bool { return x == y || y == "/" || strings.HasPrefix(x, y+"/") }
	return in(a, b) || in(b, a)
}
