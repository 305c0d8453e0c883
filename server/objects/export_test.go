package objects

import (
	"bytes"
	"io"
)

// ReadRing returns the objects of a ring's file.
func ReadRing(b []byte) (bodies [][]byte) {
	saved, _ := readRing(bytes.NewReader(b)) // what can be read comes with the error
	for _, s := range saved {
		bodies = append(bodies, s.Object)
	}
	return bodies
}

// WriteRing writes a ring's file with one object.
func WriteRing(w io.Writer, body string) error {
	return writeRing(w, []savedObject{{Object: []byte(body)}})
}

// Words takes list through words.
func Words(list []string) (out []string) {
	for rest := wordsOf(list); rest != ""; {
		var word string
		word, rest = rest.next()
		out = append(out, word)
	}
	return out
}
