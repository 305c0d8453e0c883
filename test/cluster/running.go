package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Running returns the ids of the user's processes that run a program, by its
// name and, where words follow, the first arguments: Running("podman system").
func (u *User) Running(command string) ([]int, error) {
	words := strings.Fields(command)
	pids, err := u.Processes()
	return slices.DeleteFunc(pids, func(pid int) bool {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		args := strings.Split(string(line), "\x00")
		args[0] = filepath.Base(args[0])
		return err != nil || len(args) < len(words) || !slices.Equal(args[:len(words)], words)
	}), err
}
