package store

import (
	"errors"
	"syscall"

	"github.com/mattn/go-sqlite3"
)

// diskError is what SQLite says of the disk, with the kernel's own error, which
// errors.Is finds.
type diskError struct {
	error
	errno syscall.Errno
}

func (e diskError) Unwrap() []error { return []error{e.error, e.errno} }

// ofDisk lets errors.Is find syscall.ENOSPC in an error of SQLite's that means a
// full disk, and syscall.EROFS in one that means a disk that is read only. Others
// it returns as they are.
func ofDisk(err error) error {
	var e sqlite3.Error
	switch {
	case !errors.As(err, &e):
		return err
	case e.Code == sqlite3.ErrFull:
		return diskError{err, syscall.ENOSPC}
	case e.Code == sqlite3.ErrReadonly:
		return diskError{err, syscall.EROFS}
	case e.SystemErrno != 0:
		return diskError{err, e.SystemErrno}
	}
	return err
}
