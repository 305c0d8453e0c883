package stream

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestPongsStandBetweenFrames lets time pass in the middle of an answer and of
// frames of each kind of length, and between them: the client finds each frame
// whole, and a pong for each beat.
func TestPongsStandBetweenFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		got := make(chan []byte)
		go func() {
			var all bytes.Buffer
			_, _ = all.ReadFrom(theirs)
			got <- all.Bytes()
		}()
		conn := &beatingConn{Conn: ours}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			conn.run(ctx, beat)
		}()
		answer := []byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")
		lengths := []int{0, 1, 125, 126, 4097, 65535, 65536, 100_000}
		stream := bytes.Clone(answer)
		for _, length := range lengths {
			stream = append(stream, frame(length)...)
		}
		for _, piece := range pieces(stream) {
			time.Sleep(beat / 4)
			synctest.Wait()
			if _, err := conn.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * beat)
		synctest.Wait()
		cancel()
		<-done
		_ = ours.Close()
		rest, ok := bytes.CutPrefix(<-got, answer)
		if !ok {
			t.Fatal("the answer to the handshake is not whole")
		}
		pongs := 0
		for i := 0; len(rest) > 0; {
			if after, ok := bytes.CutPrefix(rest, pong); ok {
				rest = after
				pongs++
				continue
			}
			if i == len(lengths) {
				t.Fatalf("%d bytes after the last frame", len(rest))
			}
			if rest, ok = bytes.CutPrefix(rest, frame(lengths[i])); !ok {
				t.Fatalf("frame %d is not whole", i)
			}
			i++
		}
		if pongs < 12 {
			t.Errorf("%d pongs came", pongs)
		}
	})
}

// TestAClientThatTakesNoPongIsGone, also where nobody reads from it.
func TestAClientThatTakesNoPongIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		conn := &beatingConn{Conn: ours, gone: cancel, frames: frames{answered: true}}
		_ = theirs.Close()
		conn.run(ctx, beat) // ends with ctx
	})
}

// frame is a binary frame with a body of that length.
func frame(length int) []byte {
	head := []byte{0x82, byte(length)}
	switch {
	case length >= 1<<16:
		head[1] = 127
		head = binary.BigEndian.AppendUint64(head, uint64(length))
	case length > 125:
		head[1] = 126
		head = binary.BigEndian.AppendUint16(head, uint16(length))
	}
	return append(head, bytes.Repeat([]byte{'x'}, length)...)
}

// pieces cuts data into pieces of odd lengths.
func pieces(data []byte) (all [][]byte) {
	for n := 1; len(data) > 0; n = n*3%7001 + 1 {
		n = min(n, len(data))
		all = append(all, data[:n])
		data = data[n:]
	}
	return all
}
