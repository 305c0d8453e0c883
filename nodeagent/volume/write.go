package volume

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// dataLink is the link that is swapped; its name, and the layout, are the
// kubelet's, which programs that watch for changes know:
//
//	KEY       → ..data/KEY
//	..data    → ..RANDOM
//	..RANDOM/KEY
const dataLink = "..data"

// write makes files the contents of dir. A reader sees all of the old files or
// all of the new ones, whenever it opens them by ..data or in one directory
// handle. When nothing has changed, nothing is written. A write that was broken
// off is mended by the next. own gives the new files to whom they are for.
func write(dir string, files map[string]file, own func(fresh string) error) error {
	for name := range files {
		if err := within(name); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if !holds(root, files) {
		if err := swap(root, files, own); err != nil {
			return err
		}
	}
	return tidy(root, files)
}

// swap writes files to a new directory and points ..data to it.
func swap(root *os.Root, files map[string]file, own func(fresh string) error) error {
	fresh := ".." + rand.Text()
	if err := mkdir(root, fresh); err != nil {
		return err
	}
	for name, f := range files {
		if err := mkdir(root, path.Join(fresh, path.Dir(name))); err != nil {
			return err
		}
		if err := writeFile(root, path.Join(fresh, name), f); err != nil {
			return err
		}
	}
	if err := own(filepath.Join(root.Name(), fresh)); err != nil {
		return err
	}
	temporary := fresh + "_link"
	if err := root.Symlink(fresh, temporary); err != nil {
		return err
	}
	return root.Rename(temporary, dataLink)
}

// mkdir makes a directory and its parents, all readable whatever the umask.
func mkdir(root *os.Root, dir string) error {
	made := ""
	for part := range strings.SplitSeq(dir, "/") {
		made = path.Join(made, part)
		err := root.Mkdir(made, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := root.Chmod(made, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(root *os.Root, name string, f file) error {
	w, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := w.Write(f.data); err != nil {
		_ = w.Close()
		return err
	}
	if err := w.Chmod(f.mode); err != nil {
		_ = w.Close()
		return err
	}
	return w.Close()
}

// holds says that ..data has these files and no others.
func holds(root *os.Root, files map[string]file) bool {
	current, err := root.OpenRoot(dataLink)
	if err != nil {
		return false
	}
	defer current.Close()
	count := 0
	err = fs.WalkDir(current.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		count++
		want, ok := files[name]
		info, err := entry.Info()
		if err != nil || !ok || info.Mode().Perm() != want.mode {
			return fmt.Errorf("%s differs", name)
		}
		data, err := current.ReadFile(name)
		if err != nil || !bytes.Equal(data, want.data) {
			return fmt.Errorf("%s differs", name)
		}
		return nil
	})
	return err == nil && count == len(files)
}

// tidy makes the links of files, and removes those and the directories that are
// not needed any more.
func tidy(root *os.Root, files map[string]file) error {
	keep := map[string]bool{dataLink: true}
	if current, err := root.Readlink(dataLink); err == nil {
		keep[current] = true
	}
	for name := range files {
		first := top(name)
		keep[first] = true
		err := root.Symlink(path.Join(dataLink, first), first)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if keep[entry.Name()] {
			continue
		}
		if err := root.RemoveAll(entry.Name()); err != nil {
			return err
		}
	}
	return nil
}
