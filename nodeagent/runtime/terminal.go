package runtime

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"bramble.dev/bramble/nodeagent/container"
)

// openTerminal makes a pair of pseudo-terminals (pty(7)) that changes nothing of
// what passes.
func openTerminal() (master, slave *os.File, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot make a terminal: %w", err)
			if master != nil {
				master.Close()
			}
		}
	}()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return master, nil, err
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return master, nil, err
	}
	other, err := unix.Open(fmt.Sprintf("/dev/pts/%d", number), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return master, nil, err
	}
	if err := makeRaw(other); err != nil {
		unix.Close(other)
		return master, nil, err
	}
	return master, os.NewFile(uintptr(other), "terminal"), nil
}

// makeRaw is cfmakeraw(3): the container's own terminal does what a terminal does.
func makeRaw(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}

// terminalOf lets a command have its standard input as its controlling terminal,
// so that it hears of resizes.
func terminalOf(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	attr.Setsid, attr.Setctty, attr.Ctty = true, true, 0
	return attr
}

func resize(terminal *os.File, size container.Size) error {
	conn, err := terminal.SyscallConn() // Fd would take the descriptor out of the poller
	if err != nil {
		return err
	}
	if controlled := conn.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Height, Col: size.Width})
	}); controlled != nil {
		return controlled
	}
	return err
}
