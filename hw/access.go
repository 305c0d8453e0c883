package hw

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// access says whether a container of this user may open a node to read and write;
// ErrAbsent of what is no node, as the files of a recorded board are none. It opens
// nothing.
//
// In a rootless container root is the node's user, with that user's own group, and is
// in none of the groups that the user was added to: a device that those alone may
// open is open to the agent, and to no container.
func (r *reader) access(node string) Reading[bool] {
	path := filepath.Join(r.root, node)
	st, ok := r.node(node)
	if !ok {
		return Reading[bool]{Err: ErrAbsent}
	}
	err := unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.W_OK, unix.AT_EACCESS)
	may := err == nil && rights{uid: st.Uid, gid: st.Gid, mode: st.Mode, acl: acl(path)}.allow(os.Geteuid(), os.Getegid())
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		err = nil
	case absent(err):
		err = ErrAbsent
	}
	return read(r, node, may, err)
}

// node is what the kernel says of a node; ok says that it is one.
func (r *reader) node(path string) (st unix.Stat_t, ok bool) {
	err := unix.Stat(filepath.Join(r.root, path), &st)
	kind := st.Mode & unix.S_IFMT
	return st, err == nil && (kind == unix.S_IFCHR || kind == unix.S_IFBLK)
}

func (r *reader) nodeNumber(path string) string {
	st, ok := r.node(path)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
}

// acl is a node's list of rights (acl(5)) as the kernel gives it; nil if it has none.
func acl(path string) []byte {
	var list [1024]byte
	n, err := unix.Getxattr(path, "system.posix_acl_access", list[:])
	if err != nil {
		return nil
	}
	return list[:n]
}

// rights are who may open a node.
type rights struct {
	uid, gid, mode uint32
	acl            []byte
}

// Tags of linux/posix_acl_xattr.h: after a version of 4 bytes, each entry is a tag and
// its permissions of 2 bytes each, and an id of 4.
const (
	aclVersion = 2
	aclUser    = 0x02
	aclOwning  = 0x04
	aclGroup   = 0x08
	aclMask    = 0x10

	readWrite = 6
)

// allow follows posix_acl_permission of the kernel for a user in one group.
func (r rights) allow(user, group int) bool {
	uid, gid := uint32(user), uint32(group)
	if uid == 0 || uid == r.uid {
		return uid == 0 || r.mode>>6&readWrite == readWrite
	}
	owning, mask, listed := r.mode>>3&7, uint32(7), false
	var named, groups uint32
	inGroup := false
	entries := r.acl
	if len(entries) < 4 || binary.LittleEndian.Uint32(entries) != aclVersion {
		entries = nil
	} else {
		entries = entries[4:]
	}
	for ; len(entries) >= 8; entries = entries[8:] {
		tag, id := binary.LittleEndian.Uint16(entries), binary.LittleEndian.Uint32(entries[4:])
		may := uint32(binary.LittleEndian.Uint16(entries[2:])) & 7
		switch {
		case tag == aclUser && id == uid:
			listed, named = true, may
		case tag == aclOwning:
			owning = may // the mode has the mask in its place
		case tag == aclGroup && id == gid:
			inGroup, groups = true, groups|may
		case tag == aclMask:
			mask = may
		}
	}
	if gid == r.gid {
		inGroup, groups = true, groups|owning
	}
	switch {
	case listed:
		return named&mask&readWrite == readWrite
	case inGroup:
		return groups&mask&readWrite == readWrite
	}
	return r.mode&readWrite == readWrite
}
