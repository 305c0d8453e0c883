package hw

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAccessOfThisMachine(t *testing.T) {
	b := Open(Config{})
	defer b.Close()
	r := &reader{tree: b.tree}
	if may, err := r.access("dev/null").Get(); err != nil || !may {
		t.Errorf("/dev/null: %v, %v", may, err)
	}
	if _, err := r.access("dev/no-such-device").Get(); !errors.Is(err, ErrAbsent) {
		t.Errorf("no such device: %v", err)
	}
}

const tester = 4_000_000 // a user and a group that nobody is

// aclEntry is one of a list of rights.
type aclEntry struct {
	tag, may uint16
	id       uint32
}

func aclOf(entries ...aclEntry) []byte {
	list := binary.LittleEndian.AppendUint32(nil, aclVersion)
	for _, e := range entries {
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, e.may)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	return list
}

// inGroups runs f as a user in groups, without root's rights. It needs root.
func inGroups(t *testing.T, groups []uint32, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends as that user
		list := append([]uint32{0}, groups...)[1:]
		var at *uint32
		if len(list) > 0 {
			at = &list[0]
		}
		done <- asThread(at, len(list), f)
	}()
	if err := <-done; err != nil {
		t.Fatalf("cannot become another user (root is needed): %v", err)
	}
}

// TestAccessIsWhatTheKernelLets makes nodes of /dev/null with all kinds of rights, and
// has the kernel say which may be opened.
func TestAccessIsWhatTheKernelLets(t *testing.T) {
	const nobody = ^uint32(0)
	root := t.TempDir()
	for dir := root; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	base := func(entries ...aclEntry) []byte {
		all := []aclEntry{{1, 6, nobody}}
		return aclOf(append(all, entries...)...)
	}
	nodes := map[string]struct {
		mode     uint32
		uid, gid int
		acl      []byte
		want     bool
	}{
		"a-world":       {mode: 0o666, want: true},
		"b-root":        {mode: 0o600},
		"c-owner":       {mode: 0o600, uid: tester, want: true},
		"d-owner-none":  {mode: 0o066, uid: tester},
		"e-own-group":   {mode: 0o660, gid: tester, want: true},
		"f-other-group": {mode: 0o660, gid: tester + 1}, // that the agent is in, and no container
		"g-read":        {mode: 0o644},
		"h-acl-user":    {mode: 0o600, acl: base(aclEntry{2, 6, tester}, aclEntry{4, 0, nobody}, aclEntry{16, 6, nobody}, aclEntry{32, 0, nobody}), want: true},
		"i-acl-masked":  {mode: 0o600, acl: base(aclEntry{2, 6, tester}, aclEntry{4, 0, nobody}, aclEntry{16, 4, nobody}, aclEntry{32, 0, nobody})},
		"j-acl-none":    {mode: 0o600, acl: base(aclEntry{2, 0, tester}, aclEntry{4, 0, nobody}, aclEntry{16, 6, nobody}, aclEntry{32, 6, nobody})},
		"k-acl-other":   {mode: 0o600, acl: base(aclEntry{2, 6, tester + 2}, aclEntry{4, 0, nobody}, aclEntry{16, 6, nobody}, aclEntry{32, 0, nobody})},
		"l-acl-group":   {mode: 0o600, acl: base(aclEntry{4, 0, nobody}, aclEntry{8, 6, tester}, aclEntry{16, 6, nobody}, aclEntry{32, 0, nobody}), want: true},
		"m-acl-groups":  {mode: 0o600, acl: base(aclEntry{4, 0, nobody}, aclEntry{8, 6, tester + 1}, aclEntry{16, 6, nobody}, aclEntry{32, 0, nobody})},
	}
	for name, n := range nodes {
		path := filepath.Join(root, "dev", name)
		err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
		if err == nil {
			err = errors.Join(os.Chmod(path, os.FileMode(n.mode)), os.Chown(path, n.uid, n.gid))
		}
		if err == nil && n.acl != nil {
			err = unix.Setxattr(path, "system.posix_acl_access", n.acl, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	board := Open(Config{Root: root})
	defer board.Close()
	r := &reader{tree: board.tree}
	said, opened := map[string]Reading[bool]{}, map[string]bool{}
	inGroups(t, []uint32{tester + 1}, func() {
		for name := range nodes {
			said[name] = r.access("dev/" + name)
		}
	})
	inGroups(t, nil, func() {
		for name := range nodes {
			fd, err := unix.Open(filepath.Join(root, "dev", name), unix.O_RDWR|unix.O_CLOEXEC, 0)
			if opened[name] = err == nil; err == nil {
				_ = unix.Close(fd)
			}
		}
	})
	for name, n := range nodes {
		may, err := said[name].Get()
		if err != nil || may != n.want || may != opened[name] {
			t.Errorf("%s: %v, %v; the kernel lets a container: %v; want %v", name, may, err, opened[name], n.want)
		}
	}
	if got := r.nodeNumber("dev/a-world"); got != "1:3" {
		t.Errorf("its number is %q", got)
	}
}

// FuzzRights reads lists of rights of any bytes.
func FuzzRights(f *testing.F) {
	f.Add(aclOf(aclEntry{2, 6, 1}, aclEntry{16, 6, 0}), uint32(0o660))
	f.Fuzz(func(t *testing.T, list []byte, mode uint32) {
		r := rights{uid: 2, gid: 2, mode: mode, acl: list}
		if len(list) < 12 && r.allow(1, 1) != (mode&readWrite == readWrite) {
			t.Error("a list without entries changes what may be")
		}
	})
}
