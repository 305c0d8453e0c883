package runtime

import (
	"bytes"
	"errors"
	"io"
)

// prefixLength is enough of an entry's line to parse all but its text.
const prefixLength = 64

// tailStart returns the offset in the first size bytes of a log file from which
// on it has n lines, and how many those are: fewer, from 0 on, where it has not so
// many. Entries that belong together count as one line; so does, in the newest of
// a log's files, one whose end is still to come. In the others its end is in the
// next file and counts there.
func tailStart(f io.ReaderAt, size, n int64, newest bool) (offset, lines int64, err error) {
	b := &backwards{file: f}
	end, err := b.after(size) // a line that is still being written does not count
	if err != nil {
		return 0, 0, err
	}
	for last := newest; end > 0; last = false {
		start, err := b.after(end - 1)
		if err != nil {
			return 0, 0, err
		}
		prefix := make([]byte, min(end-start, prefixLength))
		if _, err := f.ReadAt(prefix, start); err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, err
		}
		if e, ok := parseEntry(prefix); ok && (!e.partial || last) {
			if lines == n {
				return end, lines, nil
			}
			lines++
		}
		end = start
	}
	return 0, lines, nil
}

// backwards finds line ends from the end of a file to its start.
type backwards struct {
	file  io.ReaderAt
	block []byte
	from  int64 // the block's offset
}

const blockLength = 32 << 10

// after returns the offset after the last line end before offset, 0 when there
// is none.
func (b *backwards) after(offset int64) (int64, error) {
	for offset > 0 {
		if offset <= b.from || offset > b.from+int64(len(b.block)) {
			if err := b.read(offset); err != nil {
				return 0, err
			}
		}
		if i := bytes.LastIndexByte(b.block[:offset-b.from], '\n'); i >= 0 {
			return b.from + int64(i) + 1, nil
		}
		offset = b.from
	}
	return 0, nil
}

// read reads the block that ends at offset.
func (b *backwards) read(offset int64) error {
	b.from = max(offset-blockLength, 0)
	b.block = make([]byte, offset-b.from)
	if n, err := b.file.ReadAt(b.block, b.from); err != nil && n < len(b.block) {
		return err
	}
	return nil
}
