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
	kb, _ := numberOf(path.Join(proc, "meminfo"), "MemAvailable:")
	n = kb << 10
	groups, _ := os.ReadFile(path.Join(proc, "self/cgroup"))
	for line := range strings.Lines(string(groups)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && f[1] == "" { // version 2
			n = left(n, cgroup, f[2], "memory.max", "memory.current", "inactive_file")
		} else if len(f) == 3 && f[1] == "memory" {
			n = left(n, cgroup+"/memory", f[2], "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
		}
	}
	return n
}

// left lowers n to the least of what a group and those it is in leave of their limits. A container
// sees its own group as the root. limit and usage are files of a group, and cache is what its memory.stat
// calls the part of the file cache that it gives up first.
func left(n int64, root, group, limit, usage, cache string) int64 {
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		dir := path.Join(root, group)
		if most, ok := numberOf(path.Join(dir, limit), ""); ok {
			used, _ := numberOf(path.Join(dir, usage), "")
			cached, _ := numberOf(path.Join(dir, "memory.stat"), cache+" ")
			most = max(most-max(used-cached, 0), 0)
			if n == 0 || most < n {
				n = most
			}
		}
		if group == "/" {
			return n
		}
	}
}

// numberOf is the number after the beginning of a line of a file, if it is one.
func numberOf(name, beginning string) (int64, bool) {
	text, _ := os.ReadFile(name)
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, beginning); found {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
