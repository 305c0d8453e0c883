package tunnel

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func FuzzPreface(f *testing.F) {
	for _, s := range []string{"control\n", "bulk\nrest", "", "\n", "GET / HTTP/1.1\r\n", strings.Repeat("x", 100)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		c, err := readPreface(r)
		if err != nil {
			return
		}
		if c != Control && c != Bulk {
			t.Fatalf("channel %q", c)
		}
		if rest, _ := io.ReadAll(r); string(c)+"\n"+string(rest) != string(in) {
			t.Fatalf("%q was read from %q", c, in)
		}
	})
}

func FuzzReply(f *testing.F) {
	for _, s := range []string{"ok\n", "no reason\n", "no \n", "HTTP/1.1 400 Bad Request\r\n", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if err := readReply(bytes.NewReader(in)); err == nil && !bytes.HasPrefix(in, []byte("ok\n")) {
			t.Fatalf("%q was taken for a yes", in)
		}
	})
}

func TestRefusalSurvivesTheWire(t *testing.T) {
	var buf bytes.Buffer
	Refuse(&buf, errors.Join(ErrExpired, errors.New(strings.Repeat("long ", 1000))))
	err := readReply(&buf)
	if !errors.Is(err, ErrExpired) || buf.Len() != 0 {
		t.Errorf("got %v with %d bytes left", err, buf.Len())
	}
}
