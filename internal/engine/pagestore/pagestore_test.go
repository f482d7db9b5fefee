package pagestore

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const blockSize = 10_000

// block returns the contents of the block with a number.
func block(n int) []byte {
	return bytes.Repeat([]byte{byte(n), byte(n >> 8), 7}, blockSize)[:blockSize]
}

func key(n int) Key { return Root("test").Next([]int32{int32(n)}) }

func open(t *testing.T, dir string, limit int64) *Store {
	t.Helper()
	s, err := Open(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t *testing.T, s *Store, n int) {
	t.Helper()
	if err := s.Write(key(n), blockSize, func(w io.Writer) error { _, err := w.Write(block(n)); return err }); err != nil {
		t.Fatal(err)
	}
}

func read(s *Store, n int) (b []byte, err error) {
	err = s.Read(key(n), blockSize, func(r io.Reader) error { b, err = io.ReadAll(r); return err })
	return b, err
}

// A block is read as it was written, also by a later store, and only under its own key and size.
func TestBlocks(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1<<20)
	for n := range 3 {
		write(t, s, n)
	}
	if _, err := Open(dir, 1<<20); err == nil {
		t.Error("a second store has the folder")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, 1<<20)
	if known := s.Known([]Key{key(0), key(1), key(7), key(2)}); known != 2 {
		t.Errorf("%d blocks are known", known)
	}
	for n := range 3 {
		if b, err := read(s, n); err != nil || !bytes.Equal(b, block(n)) {
			t.Errorf("block %d: %v", n, err)
		}
	}
	if _, err := read(s, 3); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := s.Read(key(0), blockSize-1, func(io.Reader) error { return nil }); !errors.Is(err, errDamaged) {
		t.Error(err)
	}
	want := Stats{Blocks: 2, Bytes: s.bytes, Read: 3, Refused: 2} // the missing one, and the one of another size
	if got := s.Stats(); got != want || got.Bytes < 2*blockSize {
		t.Errorf("the store says %+v, want %+v", got, want)
	}
	write(t, s, 0)
	if got := s.Stats(); got.Blocks != 3 || got.Written != 1 {
		t.Errorf("the store says %+v after a block is written", got)
	}
}

// A file that was changed anywhere, cut short or renamed is no block, and is removed.
func TestDamagedBlocks(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1<<20)
	write(t, s, 0)
	whole, err := os.ReadFile(s.path(key(0)))
	if err != nil {
		t.Fatal(err)
	}
	damage := map[string][]byte{"empty": {}, "longer": append(slices.Clone(whole), 0)}
	for _, at := range []int{0, 9, headerSize - 1, headerSize, len(whole) / 2, len(whole) - 5, len(whole) - 1} {
		changed := slices.Clone(whole)
		changed[at] ^= 1
		damage["changed at "+strconv.Itoa(at)] = changed
		damage["cut at "+strconv.Itoa(at)] = whole[:at]
	}
	for what, b := range damage {
		write(t, s, 0)
		if err := os.WriteFile(s.path(key(0)), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := read(s, 0); err == nil {
			t.Errorf("%s: it is read", what)
		}
		if _, err := os.Stat(s.path(key(0))); !errors.Is(err, os.ErrNotExist) || s.Known([]Key{key(0)}) != 0 {
			t.Errorf("%s: it is still there", what)
		}
	}
	write(t, s, 0)
	if err := os.Rename(s.path(key(0)), s.path(key(1))); err != nil {
		t.Fatal(err)
	}
	if _, err := read(s, 1); !errors.Is(err, errDamaged) {
		t.Error(err)
	}
}

// The folder stays within its limit. The least recently used blocks are removed first, and of a
// chain its end, also after the store is reopened.
func TestLimit(t *testing.T) {
	dir := t.TempDir()
	limit := int64(4 * (headerSize + blockSize + 4))
	s := open(t, dir, limit)
	for n := range 4 {
		write(t, s, n)
	}
	s.Use([]Key{key(1), key(0)})
	s.Use([]Key{key(2), key(3)})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, limit)
	for i, gone := range []int{0, 1, 3} {
		write(t, s, 10+i)
		if s.Known([]Key{key(gone)}) != 0 {
			t.Errorf("block %d is still there", gone)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"+ending))
		if err != nil || len(files) != 4 || s.bytes != limit {
			t.Errorf("%d files of %d bytes, %v", len(files), s.bytes, err)
		}
	}
	if s.Known([]Key{key(2)}) != 1 {
		t.Error("the block used last is gone")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, 1)
	if len(s.files) != 0 || s.bytes != 0 {
		t.Errorf("%d files are left of none", len(s.files))
	}
}

// A disk that has less room than the limit keeps the newest blocks, as the limit does.
func TestDiskFull(t *testing.T) {
	s := open(t, t.TempDir(), 1<<20)
	defer s.Close()
	for n := range 3 {
		write(t, s, n)
	}
	s.Use([]Key{key(0)})
	full := true
	if err := s.Write(key(3), blockSize, func(w io.Writer) error {
		if full {
			full = false
			return &os.PathError{Op: "write", Path: "a file", Err: syscall.ENOSPC}
		}
		_, err := w.Write(block(3))
		return err
	}); err != nil {
		t.Error(err)
	}
	for n, want := range []int{1, 0, 1, 1} {
		if known := s.Known([]Key{key(n)}); known != want {
			t.Errorf("%d of block %d, want %d", known, n, want)
		}
	}
	if err := s.Write(key(4), blockSize, func(io.Writer) error { return syscall.ENOSPC }); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a disk without room: %v", err)
	}
	if got := s.Stats(); got.Blocks != 2 || got.Written != 4 {
		t.Errorf("the store says %+v", got)
	}
}

// Blocks that were used while the clock was ahead give way to new ones.
func TestClockWasAhead(t *testing.T) {
	dir, later := t.TempDir(), time.Now().Add(1000*time.Hour)
	s := open(t, dir, 1<<20)
	for n := range 3 {
		write(t, s, n)
		if err := os.Chtimes(s.path(key(n)), later, later); err != nil {
			t.Fatal(err)
		}
	}
	size := s.Stats().Bytes
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, size)
	defer s.Close()
	write(t, s, 3)
	if got := s.Stats(); s.Known([]Key{key(3)}) != 1 || got.Blocks != 3 {
		t.Errorf("the new block is gone: the store says %+v", got)
	}
}

// A block that cannot be opened temporarily, such as when too many files are open, stays.
func TestNotOpened(t *testing.T) {
	s := open(t, t.TempDir(), 1<<20)
	defer s.Close()
	write(t, s, 0)
	path, moved := s.path(key(0)), filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, path); err != nil { // it leads to itself
		t.Skip(err)
	}
	if _, err := read(s, 0); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.Rename(moved, path); err != nil {
		t.Fatal(err)
	}
	b, err := read(s, 0)
	if got := s.Stats(); err != nil || !bytes.Equal(b, block(0)) || got.Blocks != 1 || got.Refused > 0 {
		t.Errorf("%v; the store says %+v", err, got)
	}
}

// A store whose process was killed has every block that was written, unchanged, and nothing else.
func TestKilled(t *testing.T) {
	const variable = "PAGESTORE_TEST_FOLDER"
	if dir := os.Getenv(variable); dir != "" { // the process
		s := open(t, dir, 1<<30)
		for n := len(s.files); ; n++ {
			write(t, s, n)
			fmt.Println(n)
		}
	}
	dir := t.TempDir()
	for round := range 6 {
		c := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		c.Env = append(os.Environ(), variable+"="+dir)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		last := -1
		lines := bufio.NewReader(out)
		for range 2 + 3*round {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if last, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		s := open(t, dir, 1<<30)
		for n := range len(s.files) {
			if b, err := read(s, n); err != nil || !bytes.Equal(b, block(n)) {
				t.Fatalf("block %d of %d: %v", n, len(s.files), err)
			}
		}
		if len(s.files) <= last {
			t.Fatalf("%d blocks are left, and block %d was written", len(s.files), last)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != len(s.files)+1 {
			t.Fatalf("%d files, the lock included, of %d blocks: %v", len(entries), len(s.files), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
