//go:build linux

package textstore

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A text that cannot be written whole, as on a full disk, is refused. The texts that are added
// after it, when there is room again, are there when the store is opened again. (In a process of
// its own, with a limit on the size of files: writes fail in the middle.)
func TestDiskFull(t *testing.T) {
	const variable = "MEMORY_FULL_DIR"
	text := func(i int32) []int32 { return []int32{i, i + 1, i + 2, i + 3} }
	if dir := os.Getenv(variable); dir != "" { // the process
		s := must(Open(dir, 0))(t)
		add := func(i int32) { fmt.Printf("text %d: %v\n", i, s.Add(nil, text(i)) == nil) }
		limit := func(bytes int64) {
			var l syscall.Rlimit
			if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
				t.Fatal(err)
			}
			l.Cur = l.Max
			if bytes > 0 {
				l.Cur = uint64(bytes)
			}
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
				t.Fatal(err)
			}
		}
		add(100)
		limit(must(os.Stat(filepath.Join(dir, "log")))(t).Size() + 10)
		add(200)
		limit(0)
		add(300)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	dir := t.TempDir()
	c := exec.Command(os.Args[0], "-test.run=^TestDiskFull$")
	c.Env = append(os.Environ(), variable+"="+dir)
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "text 100: true\ntext 200: false\ntext 300: true\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	s := must(Open(dir, 0))(t)
	defer s.Close()
	for _, i := range []int32{100, 300} {
		if m := s.Matches(nil, text(i)[:3], 3, 1); len(m) != 1 || m[0].Next[0] != i+3 {
			t.Errorf("text %d is lost: %v", i, m)
		}
	}
}
