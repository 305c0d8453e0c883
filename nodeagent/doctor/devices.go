package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"bramble.dev/bramble/hw"
)

// Node is a file of /dev.
type Node struct {
	Path  string // "/dev/gpiochip0"; "" if there is none
	Class hw.Class
	Group string // the file's group
	ByIt  bool   // who is in the group, which is not root's, may read and write
}

// lookNodes looks at the mailbox of the firmware, and at the devices that this process
// may not open: of another user it is not known.
func (p Place) lookNodes(s hw.Snapshot, recorded bool) (mailbox Node, nodes []Node) {
	if recorded {
		return mailbox, nil
	}
	for _, name := range hw.Mailboxes() {
		if n, err := p.node(name); err == nil {
			mailbox = n
			break
		}
	}
	if !p.Self {
		return mailbox, nil
	}
	for _, d := range s.Devices {
		if may, err := d.Access.Get(); d.Path == "" || err != nil || may || d.IsHub() {
			continue
		}
		if n, err := p.node(d.Path); err == nil {
			n.Class = d.Class
			nodes = append(nodes, n)
		}
	}
	return mailbox, nodes
}

func (p Place) node(path string) (n Node, err error) {
	info, err := os.Stat(p.path(path))
	if err != nil {
		return n, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return n, fs.ErrInvalid
	}
	n = Node{Path: path, Group: p.group(stat.Gid)}
	n.ByIt = stat.Gid != 0 && info.Mode().Perm()&0o060 == 0o060
	return n, nil
}

// group is the name of a group; its number if it has none.
func (p Place) group(gid uint32) string {
	number := strconv.Itoa(int(gid))
	data, _ := os.ReadFile(p.path("etc/group"))
	for line := range strings.Lines(string(data)) {
		if fields := strings.Split(strings.TrimSpace(line), ":"); len(fields) >= 3 && fields[2] == number {
			return fields[0]
		}
	}
	return number
}

// checkFirmware says why the firmware of a Raspberry Pi does not say what it does.
func checkFirmware(f Facts) []Finding {
	const check = "FirmwareForbidden"
	_, err := f.Board.Throttle.Bits.Get()
	const lost = "under-voltage and throttling since the boot are not known"
	switch {
	case err == nil && !f.Self && !f.Recorded:
		return []Finding{unknown(check, "whether the node's user may ask the board's firmware: only a process of that user can tell")}
	case err == nil:
		return []Finding{fine(check, "the board's firmware can be asked")}
	case errors.Is(err, hw.ErrAbsent):
		if isPi(f.Board) && !f.Recorded {
			return []Finding{unknown(check, "what the firmware does: this kernel has neither /dev/vcio_gencmd nor /dev/vcio; %s", lost)}
		}
		return nil
	case !errors.Is(err, fs.ErrPermission):
		return []Finding{unknown(check, "what the firmware does: %v", err)}
	case f.Mailbox.ByIt && f.User != nil:
		return []Finding{warning(check, "this user may not ask the firmware (%s): %s", f.Mailbox.Path, lost).by("%s", join(f, f.Mailbox.Group))}
	}
	name := filepath.Base(f.Mailbox.Path)
	return []Finding{warning(check, "this user may not ask the firmware, and no group may (%s): %s", f.Mailbox.Path, lost).
		by(`echo 'KERNEL=="%s", GROUP="video", MODE="0660"' | sudo tee /etc/udev/rules.d/60-bramble-%[1]s.rules && sudo usermod -aG video %s && sudo reboot`, name, userName(f))}
}

// join is the line that puts the user into groups.
func join(f Facts, groups ...string) string {
	return fmt.Sprintf("sudo usermod -aG %s %s && sudo reboot", strings.Join(groups, ","), userName(f))
}

func userName(f Facts) string {
	if f.User == nil {
		return "bramble"
	}
	return f.User.Username
}

// checkDevices names the devices that pods cannot be given, since the user has none.
func checkDevices(f Facts) (all []Finding) {
	const check, closed = "DevicesForbidden", "DevicesClosed"
	if !f.Self {
		if len(f.Board.Devices) > 0 && !f.Recorded {
			all = append(all, unknown(check, "which devices the node's user may open: only a process of that user can tell"))
		}
		return all
	}
	var groups, byGroup, byNone []string
	for _, n := range f.Nodes {
		if !n.ByIt {
			byNone = append(byNone, n.Path)
			continue
		}
		byGroup = append(byGroup, n.Path)
		if !slices.Contains(groups, n.Group) {
			groups = append(groups, n.Group)
		}
	}
	if byGroup != nil {
		all = append(all, note(check, "pods cannot be given devices that user %s may not open: %s", f.User.Username, some(byGroup)).by("%s", join(f, groups...)))
	}
	if byNone != nil {
		all = append(all, note(closed, "pods cannot be given devices that root alone may use: %s", some(byNone)).
			by("printf '%%s\\n' %s | sudo tee /etc/udev/rules.d/60-bramble-devices.rules && sudo udevadm control --reload && sudo udevadm trigger", strings.Join(rules(f), " ")))
	}
	if openable := may(f.Board.Devices); all == nil && openable > 0 {
		all = append(all, fine(check, "user %s may open all devices that pods could be given (%d)", f.User.Username, openable))
	}
	return all
}

// rules are lines of udev that give devices of root to the user's group, quoted for the
// shell. A node of USB has a number in the place of its name.
func rules(f Facts) (all []string) {
	var names []string
	usb := ""
	give := fmt.Sprintf(`GROUP="%s", MODE="0660"'`, f.User.Gid)
	for _, n := range f.Nodes {
		switch {
		case n.ByIt:
		case n.Class == hw.USB:
			usb = `'SUBSYSTEM=="usb", ENV{DEVTYPE}=="usb_device", ` + give
		default:
			names = append(names, filepath.Base(n.Path))
		}
	}
	if names != nil {
		all = append(all, fmt.Sprintf(`'KERNEL=="%s", %s`, strings.Join(names, "|"), give))
	}
	if usb != "" {
		all = append(all, usb)
	}
	return all
}

func may(devices []hw.Device) (count int) {
	for _, d := range devices {
		if d.Access.OK() && d.Access.Value {
			count++
		}
	}
	return count
}

// some names a few of many.
func some(names []string) string {
	const most = 6
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
