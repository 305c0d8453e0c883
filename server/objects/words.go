package objects

import (
	"encoding/binary"
	"maps"
	"slices"
)

// words is a list of strings in one piece of memory, each behind its length: of what
// is kept for thousands of objects, maps and slices would be the larger part.
type words string

func wordsOf(list []string) words {
	var b []byte
	for _, s := range list {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return words(b)
}

// wordsOfMap is m's keys and values in turn, sorted.
func wordsOfMap(m map[string]string) words {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, key, m[key])
	}
	return wordsOf(list)
}

// next returns the first word of w, which has one, and those behind it.
func (w words) next() (word string, rest words) {
	size, at := 0, 0
	for shift := 0; ; shift += 7 {
		b := w[at]
		at++
		size |= int(b&0x7f) << shift
		if b < 0x80 {
			return string(w[at : at+size]), w[at+size:]
		}
	}
}
