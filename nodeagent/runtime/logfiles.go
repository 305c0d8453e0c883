package runtime

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A log is the file that conmon writes and, beside it, those that were full:
// ctr.log.1 is the oldest ever, and each gets the next number when it is rotated.
// A number is never given twice, so that a reader can tell where it is.

// logFiles opens all that there is of a log, oldest first, with the file that is
// being written last. Each entry is in exactly one of them: the current file is
// opened first, and one that is rotated meanwhile is not listed twice.
func logFiles(path string) ([]*os.File, error) {
	current, err := os.Open(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var files []*os.File
	for _, name := range rotatedLogs(path) {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was the oldest, and is removed
		}
		if err != nil {
			closeAll(append(files, current))
			return nil, err
		}
		if current != nil && sameFile(f, current) {
			_ = f.Close()
			break
		}
		files = append(files, f)
	}
	if current != nil {
		files = append(files, current)
	}
	return files, nil
}

// rotatedLogs are the paths of a log's full files, oldest first.
func rotatedLogs(path string) []string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if number(path, e.Name()) > 0 {
			names = append(names, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Compare(number(path, filepath.Base(a)), number(path, filepath.Base(b)))
	})
	return names
}

// number is that of a full file of the log at path, 0 for any other name.
func number(path, name string) int {
	text, ok := strings.CutPrefix(name, filepath.Base(path)+".")
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n < 1 || strconv.Itoa(n) != text {
		return 0
	}
	return n
}

// after returns what came after f in the log at path, oldest first, and nothing
// while f is the file that is being written. What f was before, if it is not
// there any more, does not matter: all that is left is newer.
func after(path string, f *os.File) ([]*os.File, error) {
	files, err := logFiles(path)
	if err != nil {
		return nil, err
	}
	for i, other := range files {
		if sameFile(f, other) {
			closeAll(files[:i+1])
			return files[i+1:], nil
		}
	}
	return files, nil
}

func sameFile(a, b *os.File) bool {
	x, err1 := a.Stat()
	y, err2 := b.Stat()
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
