package hw

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// asThread runs f as the user tester on this thread alone: Go's own calls would change
// all threads.
func asThread(groups *uint32, n int, f func()) error {
	for _, call := range [][4]uintptr{
		{unix.SYS_SETGROUPS, uintptr(n), uintptr(unsafe.Pointer(groups)), 0},
		{unix.SYS_SETRESGID, tester, tester, ^uintptr(0)},
		{unix.SYS_SETRESUID, ^uintptr(0), tester, ^uintptr(0)},
	} {
		if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
			return errno
		}
	}
	f()
	return nil
}
