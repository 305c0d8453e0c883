package store

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/mattn/go-sqlite3"
)

// TestDiskErrorsAreTheKernels: a command can say what to do about a full disk
// without knowing SQLite.
func TestDiskErrorsAreTheKernels(t *testing.T) {
	other := errors.New("other")
	for _, c := range []struct{ err, want error }{
		{sqlite3.Error{Code: sqlite3.ErrFull}, syscall.ENOSPC},
		{sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.ENOSPC}, syscall.ENOSPC},
		{sqlite3.Error{Code: sqlite3.ErrReadonly}, syscall.EROFS},
		{sqlite3.Error{Code: sqlite3.ErrBusy}, sqlite3.Error{Code: sqlite3.ErrBusy}},
		{other, other},
	} {
		wrapped := fmt.Errorf("cannot begin: %w", c.err)
		if got := ofDisk(wrapped); !errors.Is(got, c.want) || got.Error() != wrapped.Error() {
			t.Errorf("%#v: %v is no %v", c.err, got, c.want)
		}
	}
}
