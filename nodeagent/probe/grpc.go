package probe

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// What a gRPC health service says (grpc.health.v1, HealthCheckResponse), and
// the status codes of gRPC that are told apart.
const (
	serving       = 1
	codeDeadline  = "4"
	codeUnserved  = "12"
	codeOK        = "0"
	grpcFrameHead = 5
)

var servingStatus = map[uint64]string{0: "UNKNOWN", serving: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}

// grpc asks the health service (grpc.health.v1.Health/Check) for a service. The
// one unary call is made over net/http's HTTP/2: gRPC's own library is much
// code for one message of two fields.
func (p *Probers) grpc(ctx context.Context, address, service string, limit time.Duration) (outcome, error) {
	transport := &http.Transport{DialContext: p.cfg.Dial, Protocols: protocols((*http.Protocols).SetUnencryptedHTTP2)}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/grpc.health.v1.Health/Check", bytes.NewReader(healthRequest(service)))
	if err != nil {
		return outcome{}, err
	}
	req.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "User-Agent": {userAgent}}
	res, err := transport.RoundTrip(req)
	if err != nil {
		o, err := failure(err)
		if err == nil && ctx.Err() != nil {
			o = unhealthy("timeout: failed to connect service %q within %s: %v", address, limit, ctx.Err())
		} else if err == nil {
			o = unhealthy("error: failed to connect service at %q: %s", address, o.words)
		}
		return o, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxOutput))
	if err != nil {
		return failure(err)
	}
	return healthOutcome(res, body), nil
}

func healthOutcome(res *http.Response, body []byte) outcome {
	said := func(name string) string {
		if v := res.Trailer.Get(name); v != "" {
			return v
		}
		return res.Header.Get(name) // an answer without a message has no trailers
	}
	code, words := said("Grpc-Status"), said("Grpc-Message")
	if plain, err := url.PathUnescape(words); err == nil {
		words = plain
	}
	switch {
	case res.StatusCode != http.StatusOK:
		return unhealthy("error: health rpc probe failed: HTTP status %d", res.StatusCode)
	case code == codeUnserved:
		return unhealthy("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s", words)
	case code == codeDeadline:
		return unhealthy("timeout: health rpc did not complete: %s", words)
	case code != codeOK:
		return unhealthy("error: health rpc probe failed: rpc error: code = %q desc = %s", code, words)
	}
	status, err := healthStatus(body)
	if err != nil {
		return unhealthy("error: health rpc probe failed: %v", err)
	}
	if status != serving {
		name := servingStatus[status]
		if name == "" {
			name = fmt.Sprint(status)
		}
		return unhealthy("service unhealthy (responded with %q)", name)
	}
	return outcome{healthy: true}
}

// healthRequest is a HealthCheckRequest in gRPC's frame: the service's name is
// field 1.
func healthRequest(service string) []byte {
	var message []byte
	if service != "" {
		message = append(message, 1<<3|2)
		message = binary.AppendUvarint(message, uint64(len(service)))
		message = append(message, service...)
	}
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	return append(frame, message...)
}

var errHealthAnswer = errors.New("the answer is no HealthCheckResponse")

// healthStatus reads a HealthCheckResponse out of gRPC's frame: the status is
// field 1, a number; what is not there is 0. Fields of other numbers are passed
// over.
func healthStatus(frame []byte) (status uint64, err error) {
	if len(frame) < grpcFrameHead || frame[0] != 0 || uint64(binary.BigEndian.Uint32(frame[1:])) != uint64(len(frame)-grpcFrameHead) {
		return 0, errHealthAnswer
	}
	for rest := frame[grpcFrameHead:]; len(rest) > 0; {
		tag, n := binary.Uvarint(rest)
		if n <= 0 {
			return 0, errHealthAnswer
		}
		rest = rest[n:]
		size := 0
		switch tag & 7 {
		case 0:
			v, n := binary.Uvarint(rest)
			if n <= 0 {
				return 0, errHealthAnswer
			}
			if size = n; tag>>3 == 1 {
				status = v
			}
		case 1:
			size = 8
		case 2:
			length, n := binary.Uvarint(rest)
			if n <= 0 || length > uint64(len(rest)-n) {
				return 0, errHealthAnswer
			}
			size = n + int(length)
		case 5:
			size = 4
		default:
			return 0, errHealthAnswer
		}
		if size > len(rest) {
			return 0, errHealthAnswer
		}
		rest = rest[size:]
	}
	return status, nil
}
