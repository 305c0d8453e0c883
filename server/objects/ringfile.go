package objects

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// savedObject is one line of a ring's file.
type savedObject struct {
	AgeSeconds int64           `json:"ageSeconds"`
	Object     json.RawMessage `json:"object"`
}

// maxSaved bounds what is read back, whatever the file says.
const maxSaved = 64 << 20

// loadRing reads a ring's file. With an error it returns what could be read;
// a file that does not exist is an empty one.
func loadRing(path string) ([]savedObject, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readRing(f)
}

func readRing(r io.Reader) ([]savedObject, error) {
	z, err := gzip.NewReader(bufio.NewReader(r))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	var saved []savedObject
	lines := json.NewDecoder(io.LimitReader(z, maxSaved))
	for {
		var s savedObject
		err := lines.Decode(&s)
		if errors.Is(err, io.EOF) {
			return saved, nil
		}
		if err != nil {
			return saved, err
		}
		if s.AgeSeconds < 0 || len(s.Object) > MaxObjectBytes {
			return saved, fmt.Errorf("object %d makes no sense", len(saved)+1)
		}
		saved = append(saved, s)
	}
}

// saveRing replaces a ring's file at once: after a power cut it is the old one
// or the new one.
func saveRing(path string, saved []savedObject) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	err = errors.Join(writeRing(f, saved), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func writeRing(w io.Writer, saved []savedObject) error {
	z := gzip.NewWriter(w)
	lines := json.NewEncoder(z)
	lines.SetEscapeHTML(false)
	for _, s := range saved {
		if err := lines.Encode(s); err != nil {
			return err
		}
	}
	return z.Close()
}
