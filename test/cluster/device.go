package cluster

import (
	"encoding/binary"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// MakeNode makes a node of a character device, which only root may open: of one that
// every machine has and that harms nobody, such as /dev/zero (1, 5). It needs root.
func MakeNode(t testing.TB, path string, major, minor uint32) {
	t.Helper()
	err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(major, minor)))
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		t.Fatalf("cannot make a device's node %s (root is needed): %v", path, err)
	}
}

// GiveNode opens a node to a user by its list of rights, as setfacl -m u:UID:rw does.
func GiveNode(t testing.TB, path string, uid int) {
	t.Helper()
	const version, owner, user, group, mask, other, nobody = 2, 1, 2, 4, 16, 32, 1<<32 - 1
	list := binary.LittleEndian.AppendUint32(nil, version)
	for _, e := range [][3]uint32{{owner, 6, nobody}, {user, 6, uint32(uid)}, {group, 0, nobody}, {mask, 6, nobody}, {other, 0, nobody}} {
		list = binary.LittleEndian.AppendUint16(list, uint16(e[0]))
		list = binary.LittleEndian.AppendUint16(list, uint16(e[1]))
		list = binary.LittleEndian.AppendUint32(list, e[2])
	}
	if err := unix.Setxattr(path, "system.posix_acl_access", list, 0); err != nil {
		t.Fatalf("cannot give %s to user %d: %v", path, uid, err)
	}
}
