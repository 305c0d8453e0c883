package hw

import (
	"encoding/json"
	"errors"
	"time"
)

// Why a Reading has no value, beside the kernel's own errors (syscall.Errno).
var (
	ErrAbsent      = errors.New("not on this board")               // normal
	ErrImplausible = errors.New("not a plausible value")           // glitches, sensors that are off
	ErrLate        = errors.New("no answer in time")               // the driver hangs
	ErrFormat      = errors.New("not in the format of the kernel") // or cut off
)

// Reading is a value that was read, or why it was not.
type Reading[T any] struct {
	Value  T             // holds if Err is nil
	At     time.Duration // when it was read, since the Board was opened, by the monotonic clock
	Source string        // the file below the root, or what else was asked
	Err    error         // nil: Value holds; of a zero Reading it is ErrAbsent by Get
}

// Get returns the value, or why there is none: ErrAbsent also if it never was read.
func (r Reading[T]) Get() (T, error) {
	if r.Err == nil && r.Source == "" {
		return r.Value, ErrAbsent
	}
	return r.Value, r.Err
}

// OK says whether Value holds.
func (r Reading[T]) OK() bool {
	_, err := r.Get()
	return err == nil
}

// MarshalJSON writes {"value", "at" in seconds, "source", "error"}; null if absent.
func (r Reading[T]) MarshalJSON() ([]byte, error) {
	value, err := r.Get()
	if errors.Is(err, ErrAbsent) {
		return []byte("null"), nil
	}
	out := struct {
		Value  *T      `json:"value,omitempty"`
		At     float64 `json:"at"`
		Source string  `json:"source"`
		Error  string  `json:"error,omitempty"`
	}{At: float64(r.At.Milliseconds()) / 1000, Source: r.Source}
	if err == nil {
		out.Value = &value
	} else {
		out.Error = err.Error()
	}
	return json.Marshal(out)
}

// read is a Reading of now.
func read[T any](r *reader, source string, value T, err error) Reading[T] {
	return Reading[T]{Value: value, At: r.now(), Source: source, Err: err}
}
