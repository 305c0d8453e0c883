package volume

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Some of what volumes need can be done only inside Podman's user and mount
// namespaces: giving files to a group of the containers, and mounts that
// containers see. For that Config.Inside, the agent's own program, is run by
// `podman unshare`. It reads its jobs from its standard input.

// job is one thing to be done inside. Exactly one field is set.
type job struct {
	Bind  *bindJob  `json:",omitempty"`
	Tmpfs *tmpfsJob `json:",omitempty"`
	Own   *ownJob   `json:",omitempty"`
	Clear *clearJob `json:",omitempty"`
}

// tmpfsJob mounts a file system in memory, unless it is there.
type tmpfsJob struct {
	Target string
	Bytes  int64
	GID    *int64
}

// ownJob gives a volume that has just been made to a group.
type ownJob struct {
	Dir string
	GID int64
}

// clearJob unmounts all that is mounted in a directory.
type clearJob struct{ Dir string }

// inside does jobs in order. The text of what fails is for a person.
func (v *Volumes) inside(ctx context.Context, jobs ...job) error {
	input, err := json.Marshal(jobs)
	if err != nil {
		return err
	}
	cmd := v.config.Podman(ctx, append([]string{"unshare"}, v.config.Inside...)...)
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &out
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(out.String())
		if text == "" {
			text = err.Error()
		}
		return errors.New(text)
	}
	return nil
}

// Inside does the jobs that it reads, one after the other. It is for the program
// that Config.Inside names, which must be in Podman's namespaces.
func Inside(input io.Reader) error {
	var jobs []job
	if err := json.NewDecoder(input).Decode(&jobs); err != nil {
		return fmt.Errorf("cannot read what is to be mounted: %w", err)
	}
	for _, j := range jobs {
		var err error
		switch {
		case j.Bind != nil:
			err = j.Bind.do()
		case j.Tmpfs != nil:
			err = j.Tmpfs.do()
		case j.Own != nil:
			err = j.Own.do()
		case j.Clear != nil:
			err = j.Clear.do()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *tmpfsJob) do() error {
	if err := os.MkdirAll(j.Target, 0o755); err != nil {
		return err
	}
	if slices.Contains(mounted(j.Target), j.Target) {
		return nil
	}
	options := fmt.Sprintf("mode=1777,size=%d", j.Bytes)
	if j.GID != nil {
		options = fmt.Sprintf("mode=2777,gid=%d,size=%d", *j.GID, j.Bytes)
	}
	if err := unix.Mount("tmpfs", j.Target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("cannot mount a volume in memory: %w", err)
	}
	return nil
}

func (j *ownJob) do() error {
	return filepath.WalkDir(j.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := os.Lchown(path, -1, int(j.GID)); err != nil {
			return fmt.Errorf("cannot give a volume to group %d (fsGroup; is it among the node user's subordinate ids?): %w", j.GID, err)
		}
		if !entry.IsDir() {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode().Perm()|0o050|fs.ModeSetgid)
	})
}

func (j *clearJob) do() error {
	targets := mounted(j.Dir)
	for i := len(targets) - 1; i >= 0; i-- { // what was mounted last goes first
		if err := unix.Unmount(targets[i], unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("cannot unmount %s: %w", targets[i], err)
		}
	}
	return nil
}

// mounted are the mount points at dir and below, in the order of mounting.
func mounted(dir string) []string {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var targets []string
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		target := octal.Replace(fields[4])
		if target == dir || strings.HasPrefix(target, dir+"/") {
			targets = append(targets, target)
		}
	}
	return targets
}

// octal undoes the kernel's escapes (proc_pid_mountinfo(5)).
var octal = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
