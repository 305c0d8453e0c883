package store

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"sync"
	"unsafe"
	"weak"

	"github.com/klauspost/compress/s2"
)

// Body is an encoded object. In the store it is compressed, and plain only as long
// as somebody holds what Bytes has returned: of thousands of objects few are read at
// a time. It is safe for concurrent use; a nil one is empty.
type Body struct {
	size int    // of the object; 0: kept is the object itself
	kept []byte // the object, or pack's result: never changed once others have the Body

	mu    sync.Mutex // protects plain
	plain weak.Pointer[byte]
}

// worthPacking is how large a body must be to be compressed: a smaller one gains
// less than the handling costs.
const worthPacking = 256

// typical is what objects look like: what they have in common with it is stored as a
// reference. It may be changed at will, for what is compressed stays in memory.
//
//go:embed typical.json
var typical []byte

var dictionary = sync.OnceValue(func() *s2.Dict { return s2.MakeDict(typical, nil) })

// NewBody returns a Body that keeps plain as it is.
func NewBody(plain []byte) *Body { return &Body{kept: plain} }

// pack compresses b, which nobody else has yet, if that is worth it.
func (b *Body) pack() {
	plain := b.kept
	if len(plain) < worthPacking {
		return
	}
	packed := dictionary().Encode(nil, plain)
	if len(packed) > len(plain)/2 {
		return
	}
	b.size, b.kept = len(plain), bytes.Clone(packed) // without what Encode left room for
	b.plain = weak.Make(unsafe.SliceData(plain))
}

// Len is how many bytes the object has.
func (b *Body) Len() int {
	if b == nil {
		return 0
	}
	return cmp.Or(b.size, len(b.kept))
}

// Bytes returns the object. They are shared and must not be changed.
func (b *Body) Bytes() []byte {
	switch {
	case b == nil:
		return nil
	case b.size == 0:
		return b.kept
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if first := b.plain.Value(); first != nil {
		return unsafe.Slice(first, b.size) // what Bytes returned before, and is still in use
	}
	plain := b.unpack()
	b.plain = weak.Make(unsafe.SliceData(plain))
	return plain
}

func (b *Body) unpack() []byte {
	plain, err := dictionary().Decode(make([]byte, b.size), b.kept)
	if err != nil {
		panic(fmt.Sprintf("cannot decompress an object: %v", err))
	}
	return plain
}
