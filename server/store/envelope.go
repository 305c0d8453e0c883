package store

import (
	"encoding/binary"
	"fmt"
)

// An envelope stands before each stored body: the encoding (one byte), the id
// of the key that it is encrypted with and the version of the body's schema
// (both unsigned varints). A later version can so add encryption or a denser
// encoding and still read what lies there.
const (
	encodingJSON = 1
	keyNone      = 0
	bodyVersion  = 1
)

// seal returns body in an envelope.
func seal(body []byte) []byte {
	b := make([]byte, 0, len(body)+3)
	b = append(b, encodingJSON)
	b = binary.AppendUvarint(b, keyNone)
	b = binary.AppendUvarint(b, bodyVersion)
	return append(b, body...)
}

// unseal returns the body in b, which it shares. The error wraps ErrNewer for
// an envelope of a later version and errBody for one that is cut off.
func unseal(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: it is empty", errBody)
	}
	encoding, b := b[0], b[1:]
	key, n := binary.Uvarint(b)
	if n <= 0 {
		return nil, fmt.Errorf("%w: the key id is cut off", errBody)
	}
	b = b[n:]
	version, n := binary.Uvarint(b)
	if n <= 0 {
		return nil, fmt.Errorf("%w: the version is cut off", errBody)
	}
	b = b[n:]
	if encoding != encodingJSON || key != keyNone || version != bodyVersion {
		return nil, fmt.Errorf("%w: encoding %d, key %d, version %d", ErrNewer, encoding, key, version)
	}
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: the body is empty", errBody)
	}
	return b, nil
}
