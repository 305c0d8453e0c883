package stream

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kubernetes' channels on a WebSocket.
const (
	stdinChannel = iota
	stdoutChannel
	stderrChannel
	errorChannel
	resizeChannel
)

// serveChannels serves exec or attach on a WebSocket, whose messages each begin
// with the number of a channel. From version 5 on a client can end its input.
func serveChannels(ctx context.Context, w http.ResponseWriter, r *http.Request, o *remotecommand.Options, failure string, run runner) {
	channels := []wsstream.ChannelType{
		stdinChannel:  only(o.Stdin, wsstream.ReadChannel),
		stdoutChannel: only(o.Stdout, wsstream.WriteChannel),
		stderrChannel: only(o.Stderr, wsstream.WriteChannel),
		errorChannel:  wsstream.WriteChannel,
		resizeChannel: wsstream.ReadChannel,
	}
	protocols := wsstream.NewDefaultChannelProtocols(channels)
	for _, name := range []string{"v5.channel.k8s.io", "v4.channel.k8s.io"} {
		protocols[name] = wsstream.ChannelProtocolConfig{Binary: true, Channels: channels}
	}
	protocols["v4.base64.channel.k8s.io"] = wsstream.ChannelProtocolConfig{Channels: channels}
	conn := wsstream.NewConn(protocols)
	protocol, streams, err := conn.Open(w, r)
	if err != nil {
		return // the client has its answer
	}
	defer conn.Close()
	first := errorChannel
	if o.Stdout {
		first = stdoutChannel
	}
	_, _ = streams[first].Write(nil) // tells the client that it is connected

	var in io.Reader
	var out, errs io.WriteCloser
	if o.Stdin {
		in = streams[stdinChannel]
	}
	if o.Stdout {
		out = streams[stdoutChannel]
	}
	if o.Stderr {
		errs = streams[stderrChannel]
	}
	sizes := make(chan remotecommand.TerminalSize)
	go decodeSizes(ctx, streams[resizeChannel], sizes)
	err = run.AttachContainer(ctx, "", "", "", in, out, errs, o.TTY, sizes)
	_, _ = streams[errorChannel].Write(lastWord(protocol, status(failure, err))) // the client may be gone
}

// decodeSizes reads the sizes of the client's window until its stream or ctx ends.
func decodeSizes(ctx context.Context, r io.Reader, sizes chan<- remotecommand.TerminalSize) {
	defer close(sizes)
	decoder := json.NewDecoder(r)
	for {
		var size remotecommand.TerminalSize
		if decoder.Decode(&size) != nil {
			return
		}
		select {
		case sizes <- size:
		case <-ctx.Done():
			return
		}
	}
}

// lastWord is the status as the protocol has it: before version 4 a text, and
// nothing for success.
func lastWord(protocol string, s metav1.Status) []byte {
	switch protocol {
	case "v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io":
		data, _ := json.Marshal(s) // cannot fail
		return data
	}
	return []byte(s.Message)
}

func only(asked bool, kind wsstream.ChannelType) wsstream.ChannelType {
	if asked {
		return kind
	}
	return wsstream.IgnoreChannel
}
