package cpu

import (
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
)

// Limit is how many processors' time the container (control group) grants the program, rounded up;
// 0: it sets no limit, or the system has no control groups. Go's GOMAXPROCS follows a limit too,
// but is never less than 2.
var Limit = sync.OnceValue(func() int { return limitIn("/proc", "/sys/fs/cgroup") })

// limitIn reads the files of a system whose folders are given. The limit is the least of the
// program's group and those around it.
func limitIn(proc, cgroup string) (n int) {
	groups, _ := os.ReadFile(path.Join(proc, "self/cgroup"))
	for line := range strings.Lines(string(groups)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		root, v1 := cgroup, false
		switch {
		case len(f) < 3:
			continue
		case f[1] == "": // version 2
		case strings.Contains(","+f[1]+",", ",cpu,"):
			root, v1 = path.Join(cgroup, f[1]), true
		default:
			continue
		}
		for group := path.Clean("/" + f[2]); ; group = path.Dir(group) { // a container sees its own group as the root
			if g := granted(path.Join(root, group), v1); g > 0 && (n == 0 || g < n) {
				n = g
			}
			if group == "/" {
				break
			}
		}
	}
	return n
}

// granted is what a group's files grant; 0: no limit.
func granted(dir string, v1 bool) int {
	read := func(file string) []string {
		text, _ := os.ReadFile(path.Join(dir, file))
		return strings.Fields(string(text))
	}
	f := read("cpu.max") // quota and period
	if v1 {
		f = append(read("cpu.cfs_quota_us"), read("cpu.cfs_period_us")...)
	}
	if len(f) != 2 {
		return 0
	}
	quota, err := strconv.Atoi(f[0]) // no number, or -1, means no limit
	period, err2 := strconv.Atoi(f[1])
	if err != nil || err2 != nil || quota <= 0 || period <= 0 {
		return 0
	}
	return (quota-1)/period + 1
}
