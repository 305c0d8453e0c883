package runtime

import (
	"bytes"
	"time"
)

// entry is one line of a log file as conmon writes it, in the format of the
// Container Runtime Interface:
//
//	2016-10-06T00:17:09.669794202Z stdout F The text
//	TIME                           STREAM TAG
//
// Tag P says that the text goes on in the next entry of the stream.
type entry struct {
	time    time.Time
	stream  string
	partial bool
	text    []byte // without the line's end; valid as long as the line
}

// parseEntry reads a line, with or without its line end. Lines that are not of
// the format, as a power cut may leave, are not ok.
func parseEntry(line []byte) (e entry, ok bool) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	stamp, rest, ok1 := bytes.Cut(line, []byte(" "))
	stream, rest, ok2 := bytes.Cut(rest, []byte(" "))
	tag, text, _ := bytes.Cut(rest, []byte(" ")) // an empty text may come without its space
	if !ok1 || !ok2 {
		return entry{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil {
		return entry{}, false
	}
	switch string(stream) {
	case "stdout", "stderr":
	default:
		return entry{}, false
	}
	switch string(tag) {
	case "F", "P":
	default:
		return entry{}, false
	}
	return entry{time: at, stream: string(stream), partial: string(tag) == "P", text: text}, true
}
