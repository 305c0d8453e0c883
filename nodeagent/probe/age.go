package probe

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ticksPerSecond is the unit of times in /proc (sysconf(_SC_CLK_TCK)), which is
// 100 on every architecture of Go's Linux.
const ticksPerSecond = 100

// age is how long a process has run, by the machine's uptime; 0 when it has ended.
func age(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	var now unix.Timespec
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return max(0, time.Duration(now.Nano())-startTime(stat))
}

// startTime reads when a process began, since the machine's start (proc_pid_stat(5),
// field 22); a text that is none is 0.
func startTime(stat []byte) time.Duration {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // a name may hold anything; field 3 is the first
	if len(fields) < 20 {
		return 0
	}
	ticks, _ := strconv.ParseInt(string(fields[19]), 10, 64)
	return time.Duration(ticks) * (time.Second / ticksPerSecond)
}
