package tunnel

import (
	"net"
	"syscall"
)

const (
	maxUnsent       = 64 << 10
	tcpNotSentLowAt = 0x19 // TCP_NOTSENT_LOWAT of Linux' linux/tcp.h, which package syscall lacks
)

// queueLittle keeps what waits in the kernel to be sent on conn under maxUnsent
// bytes, beside what is on its way: a send buffer grows to megabytes otherwise,
// which on a thin link are minutes that every stream's next byte waits for. Where
// there is no connection of the kernel's, or it refuses, all goes on as before.
func queueLittle(conn net.Conn) {
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = over.NetConn()
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowAt, maxUnsent)
	})
}
