package memory

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// It is the least of what the machine has free and of what the program's control group and those
// around it leave of their limits.
func TestAvailable(t *testing.T) {
	const meminfo = "MemTotal:       8000 kB\nMemFree:        1000 kB\nMemAvailable:   4000 kB\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing", nil, 0},
		{"a machine", map[string]string{"proc/meminfo": meminfo}, 4000 << 10},
		{"no limit", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"cgroup/a/b/memory.max": "max\n"}, 4000 << 10},
		{"a group", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"cgroup/a/b/memory.max": "1000000\n"}, 1000000},
		{"a group in a group", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"cgroup/a/b/memory.max": "2000000\n",
			"cgroup/a/memory.max":   "1500000\n"}, 1500000},
		{"a container", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/../a\n",
			"cgroup/memory.max": "3000000\n"}, 3000000},
		{"a group in use", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"cgroup/a/b/memory.max":     "1000000\n",
			"cgroup/a/b/memory.current": "700000\n", "cgroup/a/b/memory.stat": "anon 5\ninactive_file 200000\n"}, 500000},
		{"a group that is full", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n",
			"cgroup/a/memory.max":     "1000\n",
			"cgroup/a/memory.current": "1500\n"}, 0},
		{"version 1 in use", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "3:memory:/x\n",
			"cgroup/memory/x/memory.limit_in_bytes": "700000\n",
			"cgroup/memory/x/memory.usage_in_bytes": "300000\n", "cgroup/memory/x/memory.stat": "total_inactive_file 100000\n"},
			500000},
		{"version 1", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "4:cpu:/x\n3:memory:/x\n",
			"cgroup/memory/x/memory.limit_in_bytes": "9223372036854771712\n",
			"cgroup/memory/memory.limit_in_bytes":   "700000\n"}, 700000},
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
		if got := availableIn(filepath.Join(dir, "proc"), filepath.Join(dir, "cgroup")); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
	}
	if n := Available(); n < 1<<20 {
		t.Errorf("this machine has %d bytes", n)
	}
}

// What was read a moment ago is not read again: an engine asks whenever a request ends.
func TestAvailableIsReadNowAndThen(t *testing.T) {
	was := Available()
	latest, read = 7, time.Now().Add(time.Hour)
	if n := Available(); n != 7 {
		t.Errorf("%d bytes are read again at once", n)
	}
	read = time.Time{}
	if n := Available(); n < was/8 {
		t.Errorf("%d bytes later, %d before", n, was)
	}
}
