package memory

import (
	"os"
	"path"
	"strconv"
	"strings"
)

func available() int64 { return availableIn("/proc", "/sys/fs/cgroup") }

// availableIn reads the files of a system whose folders are given.
func availableIn(proc, cgroup string) (n int64) {
	info, _ := os.ReadFile(path.Join(proc, "meminfo"))
	for line := range strings.Lines(string(info)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemAvailable:" {
			kb, _ := strconv.ParseInt(f[1], 10, 64)
			n = kb << 10
		}
	}
	groups, _ := os.ReadFile(path.Join(proc, "self/cgroup"))
	for line := range strings.Lines(string(groups)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) < 3:
		case f[1] == "": // version 2
			n = limit(n, cgroup, f[2], "memory.max")
		case f[1] == "memory":
			n = limit(n, path.Join(cgroup, "memory"), f[2], "memory.limit_in_bytes")
		}
	}
	return n
}

// limit lowers n to the least limit of a group and of those it is in. A container sees its own
// group as the root.
func limit(n int64, root, group, file string) int64 {
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		text, _ := os.ReadFile(path.Join(root, group, file))
		most, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // no number means no limit
		if err == nil && (n == 0 || most < n) {
			n = most
		}
		if group == "/" {
			return n
		}
	}
}
