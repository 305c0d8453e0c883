package hw

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Mount is a file system on a disk, as this process sees it.
type Mount struct {
	Path     string         `json:"path"`     // where it is mounted first
	Device   string         `json:"device"`   // "/dev/mmcblk0p2"
	Type     string         `json:"type"`     // "ext4"
	ReadOnly bool           `json:"readOnly"` // the file system is, and not this mount of it alone
	Flipped  bool           `json:"flipped"`  // it was not, when the Board first saw it: the kernel found errors
	Size     Reading[int64] `json:"sizeBytes"`
	Free     Reading[int64] `json:"freeBytes"`            // for other users than root
	Errors   Reading[int64] `json:"errors"`               // that ext4 counted, until its check is run; they survive a reboot
	Lifetime Reading[int64] `json:"lifetimeWrittenBytes"` // since ext4 was made
}

type mounts struct {
	*reader
	info     *file
	mounts   []mount
	writable map[string]bool // what was, by device
}

type mount struct {
	Mount
	raw              string // its path as mountinfo writes it
	seen             bool   // in this sample
	errors, lifetime *file
}

func newMounts(r *reader) sensor { return &mounts{reader: r, writable: map[string]bool{}} }

func (m *mounts) scan() {
	m.mounts = nil
	m.info = m.open("proc/self/mountinfo")
}

func (m *mounts) sample() {
	data, err := m.bytes(m.info)
	if err != nil {
		return
	}
	for i := range m.mounts {
		m.mounts[i].seen = false
	}
	for len(data) > 0 {
		var line []byte
		line, data = nextLine(data)
		if info, ok := parseMount(line); ok {
			m.note(info)
		}
	}
	m.mounts = slices.DeleteFunc(m.mounts, func(k mount) bool {
		if !k.seen {
			m.forget(k.errors, k.lifetime)
		}
		return !k.seen
	})
	for i := range m.mounts {
		m.measure(&m.mounts[i])
	}
}

// note takes a mount over from mountinfo; of those of one device, the first.
func (m *mounts) note(info mountInfo) {
	at := slices.IndexFunc(m.mounts, func(k mount) bool { return k.Device == string(info.device) })
	if at < 0 {
		at = len(m.mounts)
		k := mount{Mount: Mount{Device: string(info.device), Type: string(info.kind)}}
		if k.Type == "ext4" {
			dir := "sys/fs/ext4/" + filepath.Base(k.Device)
			k.errors, k.lifetime = m.open(dir, "errors_count"), m.open(dir, "lifetime_write_kbytes")
		}
		m.mounts = append(m.mounts, k)
	}
	k := &m.mounts[at]
	if k.seen {
		return
	}
	k.seen = true
	if k.raw != string(info.path) {
		k.raw, k.Path = string(info.path), unescape(info.path)
	}
	if !info.readOnly {
		m.writable[k.Device] = true
	}
	k.ReadOnly, k.Flipped = info.readOnly, info.readOnly && m.writable[k.Device]
}

func (m *mounts) measure(k *mount) {
	var fs unix.Statfs_t
	err := unix.Statfs(filepath.Join(m.root, k.Path), &fs)
	k.Size = read(m.reader, k.Path, int64(fs.Blocks)*int64(fs.Bsize), err)
	k.Free = read(m.reader, k.Path, int64(fs.Bavail)*int64(fs.Bsize), err)
	count, err := m.integer(k.errors)
	k.Errors = read(m.reader, "errors_count", count, err)
	kB, err := m.integer(k.lifetime)
	if err == nil && kB > 1<<50 {
		err = ErrFormat
	}
	k.Lifetime = read(m.reader, "lifetime_write_kbytes", kB*1024, err)
}

func (m *mounts) put(s *Snapshot) {
	s.Mounts = s.Mounts[:0]
	for i := range m.mounts {
		s.Mounts = append(s.Mounts, m.mounts[i].Mount)
	}
}

// mountInfo is a line of mountinfo (proc_pid_mountinfo(5)).
type mountInfo struct {
	path, kind, device []byte
	readOnly           bool
}

// parseMount reads a line, and says whether it is of a file system on a disk of this
// machine: a hung file server would hang whoever asks for its space.
func parseMount(line []byte) (info mountInfo, ok bool) {
	before, after, found := bytes.Cut(line, []byte(" - "))
	if !found {
		return mountInfo{}, false
	}
	for range 5 {
		info.path, before = field(before)
	}
	info.kind, after = field(after)
	info.device, after = field(after)
	options, _ := field(after)
	info.readOnly = hasOption(options, "ro")
	return info, bytes.HasPrefix(info.device, []byte("/dev/")) && len(info.path) > 0
}

func hasOption(options []byte, want string) bool {
	for len(options) > 0 {
		var option []byte
		option, options, _ = bytes.Cut(options, []byte{','})
		if string(option) == want {
			return true
		}
	}
	return false
}

// unescape undoes what mountinfo does to space, tab, line end and backslash.
func unescape(path []byte) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(string(path))
}
