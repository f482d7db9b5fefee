//go:build linux

package textstore

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A text that cannot be written whole, as on a full disk, is refused. The texts that are added
// after it, when there is room again, are there when the store is opened again. (In a process of
// its own, with a limit on the size of files: writes fail in the middle, or at
// once.)
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
		if err := s.Wait(); err != nil {
			t.Fatal(err)
		}
		s.log.Close()
		s.log = must(os.OpenFile(s.logPath(), os.O_WRONLY|os.O_APPEND, 0o666))(t) // as cutLog opens it
		room := must(strconv.ParseInt(os.Getenv("MEMORY_FULL_ROOM"), 10, 64))(t)
		limit(must(os.Stat(s.logPath()))(t).Size() + room)
		add(200)
		limit(0)
		add(300)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, room := range []string{"10", "0"} {
		dir := t.TempDir()
		c := exec.Command(os.Args[0], "-test.run=^TestDiskFull$")
		c.Env = append(os.Environ(), variable+"="+dir, "MEMORY_FULL_ROOM="+room)
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "text 100: true\ntext 200: false\ntext 300: true\n") {
			t.Fatalf("%v\n%s", err, out)
		}
		s := must(Open(dir, 0))(t)
		for _, i := range []int32{100, 300} {
			if m := s.Matches(nil, text(i)[:3], 3, 1); len(m) != 1 || m[0].Next[0] != i+3 {
				t.Errorf("with room for %s bytes text %d is lost: %v", room, i, m)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
