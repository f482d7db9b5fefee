package cpu

import (
	"os"
	"path/filepath"
	"testing"
)

// The limit is the least of the program's control group and those around it, rounded up to whole processors.
func TestLimit(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int
	}{
		{"nothing", nil, 0},
		{"no limit", map[string]string{"proc/self/cgroup": "0::/a/b\n", "cgroup/a/b/cpu.max": "max 100000\n"}, 0},
		{"a group", map[string]string{"proc/self/cgroup": "0::/a/b\n", "cgroup/a/b/cpu.max": "100000 100000\n"}, 1},
		{"part of a processor", map[string]string{"proc/self/cgroup": "0::/a\n", "cgroup/a/cpu.max": "50000 100000\n"}, 1},
		{"rounded up", map[string]string{"proc/self/cgroup": "0::/a\n", "cgroup/a/cpu.max": "250001 100000\n"}, 3},
		{"a group in a group", map[string]string{"proc/self/cgroup": "0::/a/b\n", "cgroup/a/b/cpu.max": "400000 100000\n",
			"cgroup/a/cpu.max": "150000 50000\n"}, 3},
		{"a container", map[string]string{"proc/self/cgroup": "0::/../a\n", "cgroup/cpu.max": "200000 100000\n"}, 2},
		{"damaged", map[string]string{"proc/self/cgroup": "0::/a\n", "cgroup/a/cpu.max": "100000 0\n"}, 0},
		{"version 1", map[string]string{"proc/self/cgroup": "3:memory:/x\n2:cpu,cpuacct:/x\n",
			"cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "-1\n", "cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000\n",
			"cgroup/cpu,cpuacct/cpu.cfs_quota_us": "300000\n", "cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n"}, 3},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if got := limitIn(filepath.Join(dir, "proc"), filepath.Join(dir, "cgroup")); got != c.want {
			t.Errorf("%s: %d processors, want %d", c.name, got, c.want)
		}
	}
}
