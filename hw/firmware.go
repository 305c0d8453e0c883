package hw

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Mailboxes returns the devices that ask the firmware of a Raspberry Pi, the one that
// can do least first: who has vcio can also write to one-time memory.
func Mailboxes() []string { return []string{"/dev/vcio_gencmd", "/dev/vcio"} }

// The property that runs a command, as linux/drivers/char/broadcom/vcio.c has it.
const (
	gencmdTag    = 0x00030080
	gencmdAnswer = 1024 // bytes
	// _IOWR(100, 0, char *): the size of a pointer is part of it.
	mailboxProperty = 0xC0000000 | uintptr(unsafe.Sizeof(uintptr(0)))<<16 | 100<<8
)

// mailbox returns what asks the firmware: of this machine by its device, of another
// root by the files of vcgencmd.
func mailbox(t *tree) func(string) (string, error) {
	if t.recorded() {
		return func(command string) (string, error) {
			data, err := os.ReadFile(filepath.Join(t.root, "vcgencmd", strings.ReplaceAll(command, " ", "_")))
			if errors.Is(err, fs.ErrNotExist) {
				err = ErrAbsent
			}
			return string(data), err
		}
	}
	return (&firmware{fd: -1}).command
}

// firmware is the mailbox of a Raspberry Pi, kept open.
type firmware struct {
	mu sync.Mutex // protects all below; the firmware answers one at a time as well
	fd int        // -1: not open
}

// command asks and waits for the answer, a second at most by the kernel.
func (f *firmware) command(command string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fd < 0 {
		err := ErrAbsent
		for _, device := range Mailboxes() {
			fd, open := unix.Open(device, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if open == nil {
				f.fd, err = fd, nil
				break
			}
			if !absent(open) {
				err = fmt.Errorf("cannot open %s: %w", device, open)
			}
		}
		if err != nil {
			return "", err
		}
	}
	message := gencmd(command)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(f.fd), mailboxProperty, uintptr(unsafe.Pointer(&message[0]))); errno != 0 {
		return "", errno
	}
	return gencmdResult(message)
}

// gencmd is the message that has the firmware run a command: its length, a request;
// one property with room for the answer; the end.
func gencmd(command string) []byte {
	message := make([]byte, 6*4+gencmdAnswer+4)
	binary.NativeEndian.PutUint32(message, uint32(len(message)))
	binary.NativeEndian.PutUint32(message[8:], gencmdTag)
	binary.NativeEndian.PutUint32(message[12:], gencmdAnswer)
	copy(message[6*4:6*4+gencmdAnswer-1], command)
	return message
}

// gencmdResult is the text of the answer.
func gencmdResult(message []byte) (string, error) {
	if code := binary.NativeEndian.Uint32(message[20:]); code != 0 {
		return "", fmt.Errorf("the firmware refuses with code %#x", code)
	}
	return string(trim(message[6*4 : 6*4+gencmdAnswer])), nil
}
