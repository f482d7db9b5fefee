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

// A text that cannot be written whole, as on a full disk, is refused. Texts that are added later,
// when there is room again, are there when the store is reopened. (The test runs in a separate
// process with a limit on the size of files: writes fail in the middle, or at once.)
func TestDiskFull(t *testing.T) {
	const variable = "MEMORY_FULL_DIR"
	text := func(i int32) []int32 { return []int32{i, i + 1, i + 2, i + 3} }
	if dir := os.Getenv(variable); dir != "" { // the process
		s := must(Open(dir, 0))(t)
		add := func(i int32) { fmt.Printf("text %d: %v\n", i, s.Add(nil, text(i)) == nil) }
		limit := func(bytes int64) { limitFiles(t, bytes) }
		add(100)
		if err := s.Wait(); err != nil {
			t.Fatal(err)
		}
		s.log.Close()
		s.log = must(os.OpenFile(s.logPath(), os.O_WRONLY|os.O_APPEND, 0o666))(t) // opened as by cutLog
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

// limitFiles lets no file grow beyond a size; 0: no limit.
func limitFiles(t *testing.T, bytes int64) {
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

// Texts that are to become a separate file while the disk is full stay in the log, and whoever adds texts gets an
// error. When there is room again they become a file together with later texts, including short ones with a long one.
func TestDiskFullForSegments(t *testing.T) {
	const variable = "MEMORY_FULL_SEGMENTS"
	const most = 8000 // texts of 1,000 tokens or more become a file
	dir := os.Getenv(variable)
	if dir == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestDiskFullForSegments$")
		c.Env = append(os.Environ(), variable+"="+t.TempDir())
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	add := func(s *Store, i, tokens int32) error {
		list := make([]int32, tokens)
		for k := range list {
			list[k] = i*10_000 + int32(k)
		}
		_ = s.Add(nil, list) // the error of an earlier text
		return s.Wait()
	}
	s := must(Open(dir, most))(t)
	limitFiles(t, 7000) // the log's texts take half as much space as their file
	for i, tokens := range []int32{1100, 100, 100} {
		if err := add(s, int32(i), tokens); err == nil {
			t.Errorf("text %d: no error with a full disk", i)
		}
	}
	for i := range int32(3) {
		if len(s.Matches(nil, []int32{i * 10_000}, 1, 1)) != 1 {
			t.Errorf("text %d is not found while the disk is full", i)
		}
	}
	limitFiles(t, 0)
	if err := add(s, 3, 100); err != nil {
		t.Error(err)
	}
	if size := must(os.Stat(s.logPath()))(t).Size(); size != 0 {
		t.Errorf("the log has %d bytes: its texts are in a file", size)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s = must(Open(dir, most))(t)
	for i := range int32(4) {
		if len(s.Matches(nil, []int32{i * 10_000}, 1, 1)) != 1 {
			t.Errorf("text %d is lost", i)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
