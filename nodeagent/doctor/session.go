package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Session is what of the user is there without a login.
type Session struct {
	Lingers    bool
	RuntimeDir string // "" if no user is known
	Err        error  // what is wrong with it
	Bus        bool   // systemd's bus of the user is in it
}

func (p Place) lookSession() (s Session) {
	if p.User == nil {
		return s
	}
	_, err := os.Stat(p.path("var/lib/systemd/linger", p.User.Username))
	s.Lingers = err == nil
	if s.RuntimeDir = p.RuntimeDir; s.RuntimeDir == "" {
		s.RuntimeDir = "/run/user/" + p.User.Uid
	}
	s.Err = p.checkOwn(s.RuntimeDir)
	_, err = os.Stat(p.path(s.RuntimeDir, "bus"))
	s.Bus = err == nil
	return s
}

// checkOwn says why the user cannot use a directory as its own.
func (p Place) checkOwn(dir string) error {
	info, err := os.Stat(p.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("is not there")
	}
	if err != nil {
		return fmt.Errorf("cannot be looked at: %w", err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && strconv.Itoa(int(stat.Uid)) != p.User.Uid {
		return fmt.Errorf("belongs to the user with number %d", stat.Uid)
	}
	if !info.IsDir() || info.Mode().Perm()&0o700 != 0o700 {
		return fmt.Errorf("has the mode %v", info.Mode())
	}
	if p.Self {
		if err := unix.Access(p.path(dir), unix.W_OK); err != nil {
			return fmt.Errorf("cannot be written to: %w", err)
		}
	}
	return nil
}

const checkRuntimeDir = "RuntimeDirUnusable"

func checkUser(f Facts) []Finding {
	if f.User != nil {
		return nil
	}
	return []Finding{unknown("NodeUser", "what concerns the node's user: root cannot be it, and there is no user bramble; name another by --user").
		by("sudo useradd --create-home bramble")}
}

func checkSession(f Facts) (all []Finding) {
	s := f.Session
	if f.User == nil {
		return []Finding{checkManager(f)}
	}
	switch name := f.User.Username; {
	case s.Err == nil:
		all = append(all, fine(checkRuntimeDir, "%s is the user's", s.RuntimeDir))
	case f.Init.Systemd && s.RuntimeDir == "/run/user/"+f.User.Uid && !s.Lingers:
		all = append(all, fatal(checkRuntimeDir, "the runtime directory %s %v: systemd makes it for a user that lingers", s.RuntimeDir, s.Err).by("sudo loginctl enable-linger %s", name))
	default:
		all = append(all, fatal(checkRuntimeDir, "the runtime directory %s %v", s.RuntimeDir, s.Err).
			by("sudo install -d -m 755 %s && sudo install -d -m 700 -o %s -g %s %s", filepath.Dir(s.RuntimeDir), f.User.Uid, f.User.Gid, s.RuntimeDir))
	}
	all = append(all, checkManager(f))
	if f.Init.Systemd && s.Err == nil && f.Cgroups.Unified {
		bus := fine("UserBusMissing", "the user's systemd can be asked")
		if !s.Bus {
			bus = warning("UserBusMissing", "systemd's bus of the user is not in %s: Podman cannot have it make cgroups, and limits of pods may not be held", s.RuntimeDir).by("sudo apt install dbus-user-session && sudo reboot")
		}
		all = append(all, bus)
	}
	return all
}

// checkManager says what brings the node back after a boot.
func checkManager(f Facts) Finding {
	const check = "LingerOff"
	switch {
	case !f.Init.Systemd:
		return note(check, "process 1 is %s and not systemd: something else has to make the user's runtime directory and start the agent at each boot", f.Init.Name)
	case f.User == nil:
		return unknown(check, "whether the node's user lingers: it is not known who that is")
	case !f.Session.Lingers:
		return warning(check, "user %s does not linger: its pods end when it logs out, and do not come back with a boot", f.User.Username).by("sudo loginctl enable-linger %s", f.User.Username)
	}
	return fine(check, "user %s lingers", f.User.Username)
}
