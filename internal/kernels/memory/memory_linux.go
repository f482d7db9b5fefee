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
			n = left(n, cgroup, f[2], groupFiles{"memory.max", "memory.current", "inactive_file"})
		case f[1] == "memory":
			n = left(n, path.Join(cgroup, "memory"), f[2], groupFiles{"memory.limit_in_bytes", "memory.usage_in_bytes",
				"total_inactive_file"})
		}
	}
	return n
}

// groupFiles are where a control group says how much memory it may use and uses, and what memory.stat calls the part of
// the file cache that it gives up first.
type groupFiles struct{ limit, usage, cache string }

// left lowers n to the least of what a group and those it is in leave of their limits. A container
// sees its own group as the root.
func left(n int64, root, group string, f groupFiles) int64 {
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		dir := path.Join(root, group)
		if most, ok := number(path.Join(dir, f.limit)); ok {
			used, _ := number(path.Join(dir, f.usage))
			most = max(most-max(used-cached(path.Join(dir, "memory.stat"), f.cache), 0), 0)
			if n == 0 || most < n {
				n = most
			}
		}
		if group == "/" {
			return n
		}
	}
}

// number is what a file says, if that is a number.
func number(name string) (n int64, ok bool) {
	text, _ := os.ReadFile(name)
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// cached is the number of a line of memory.stat.
func cached(name, line string) (n int64) {
	text, _ := os.ReadFile(name)
	for l := range strings.Lines(string(text)) {
		if f := strings.Fields(l); len(f) == 2 && f[0] == line {
			n, _ = strconv.ParseInt(f[1], 10, 64)
		}
	}
	return n
}
