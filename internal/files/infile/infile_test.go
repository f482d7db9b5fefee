package infile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/testing/testfile"
)

// contents are bytes that differ from place to place.
func contents(t *rapid.T) []byte {
	b := make([]byte, rapid.IntRange(1, 20_000).Draw(t, "size"))
	for i := range b {
		b[i] = byte(i * 7 >> 3)
	}
	return b
}

// What is read is the file as it was opened. Once it is changed, reading and looking are errors
// that say how.
func TestChanges(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		want, path := contents(t), filepath.Join(dir, "f")
		hour := time.Now().Add(-time.Hour)
		if err := errors.Join(os.WriteFile(path, want, 0o666), os.Chtimes(path, hour, hour)); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		off := rapid.IntRange(0, len(want)).Draw(t, "off")
		got := make([]byte, rapid.IntRange(0, len(want)-off).Draw(t, "n"))
		read := func() error { _, err := f.ReadAt(got, int64(off)); return err }
		err = errors.Join(read(), f.CheckUnchanged(), f.CheckInPlace())
		if err != nil || !bytes.Equal(got, want[off:off+len(got)]) {
			t.Fatalf("%d bytes at %d: %v", len(got), off, err)
		}
		if _, err := f.ReadAt(make([]byte, len(want)), int64(off+1)); err == nil {
			t.Fatal("more is read than there is")
		}

		kind := rapid.SampledFrom([]string{"cut short", "emptied", "written to", "replaced", "removed"}).Draw(t, "change")
		switch kind {
		case "cut short":
			if len(want) == 1 {
				return // nothing would remain
			}
			err = os.Truncate(path, rapid.Int64Range(1, int64(len(want)-1)).Draw(t, "left"))
		case "emptied":
			err = os.Truncate(path, 0)
		case "written to":
			err = os.WriteFile(path, make([]byte, len(want)+rapid.IntRange(0, 1).Draw(t, "more")), 0o666)
		case "replaced":
			err = errors.Join(os.WriteFile(path+".new", want, 0o666), os.Rename(path+".new", path))
		case "removed":
			err = os.Remove(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		if kind == "replaced" || kind == "removed" { // the open file is unchanged
			clear(got)
			if err := errors.Join(read(), f.CheckUnchanged()); err != nil || !bytes.Equal(got, want[off:off+len(got)]) {
				t.Fatalf("an open file that was %s: %v", kind, err)
			}
		} else if err := read(); err == nil || !strings.Contains(err.Error(), kind) {
			t.Fatalf("reading a file that was %s: %v", kind, err)
		}
		if err := f.CheckInPlace(); err == nil || !strings.Contains(err.Error(), kind) {
			t.Fatalf("looking at a file that was %s: %v", kind, err)
		}
	})
}

// brokenReader reads only that many of the bytes asked for, and returns err.
type brokenReader struct {
	n   int
	err error
}

func (r brokenReader) ReadAt(p []byte, _ int64) (int, error) { return min(r.n, len(p)), r.err }

// A file is not read in the middle of a write: reading one that is being overwritten in place gives
// its old contents, its new ones, or nothing. All the writes fall in one tick of the clock, so the
// modification time reveals nothing.
func TestOpenDuringWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	defer func() { sleep, since = time.Sleep, time.Since }()
	since = func(time.Time) time.Duration { return settled / 2 } // also on a busy machine
	rapid.Check(t, func(t *rapid.T) {
		before := contents(t)
		after := bytes.Repeat([]byte{255}, len(before))
		tick := time.Now()
		write := func(b []byte) {
			if err := errors.Join(os.WriteFile(path, b, 0o666), os.Chtimes(path, tick, tick)); err != nil {
				t.Fatal(err)
			}
		}
		cut := rapid.IntRange(0, len(before)).Draw(t, "written when it is opened")
		write(append(slices.Clone(after[:cut]), before[cut:]...))
		finished := false
		finish := func() {
			if !finished {
				write(after)
			}
			finished = true
		}
		grow := rapid.Bool().Draw(t, "the file grows")
		sleep = func(time.Duration) {
			finish()
			if grow {
				write(append(slices.Clone(after), 255))
			}
		}
		f, err := Open(path)
		if err != nil {
			if !grow {
				t.Fatal(err)
			}
			return
		}
		defer f.Close()
		got := make([]byte, f.Size())
		_, err = f.ReadAt(got, 0)
		finish()
		if err == nil && !bytes.Equal(got, before) && !bytes.Equal(got, after) {
			t.Fatalf("%d of %d bytes are those of the new contents", cut, len(got))
		}
	})
}

// A file that was written whole before it got its name is opened without a wait.
func TestOpenWhole(t *testing.T) {
	defer func() { sleep = time.Sleep }()
	sleep = func(time.Duration) { t.Error("a wait") }
	path := filepath.Join(t.TempDir(), "f")
	for _, text := range []string{"before", "after"} {
		if err := atomicfile.WriteJSON(path, text); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if atomicfile.Age < settled {
		t.Errorf("files are %v old when they are written, and waited for until they are %v", atomicfile.Age, settled)
	}
}

// A file system that gives fewer bytes than were asked for, with an error or without, is an error.
func TestShortReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.IntRange(1, 100).Draw(t, "want")
		failure := rapid.SampledFrom([]error{nil, io.EOF, fs.ErrPermission}).Draw(t, "error")
		r := brokenReader{rapid.IntRange(0, want-1).Draw(t, "got"), failure}
		f := &File{Path: "f", size: 1000, r: r}
		_, err := f.ReadAt(make([]byte, want), 0)
		if err == nil || err == io.EOF || failure == fs.ErrPermission && !errors.Is(err, failure) {
			t.Fatalf("%d bytes of %d, %v: %v", r.n, want, r.err, err)
		}
	})
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Error(err)
	}
	if _, err := Open(os.DevNull); err == nil {
		t.Error("a device is opened")
	}
	path := filepath.Join(dir, "model.gguf")
	text := "version https://git-lfs.github.com/spec/v1\noid sha256:4f\nsize 98362432\n"
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path+": is a pointer of Git LFS") {
		t.Errorf("what git has in a file's place: %v", err)
	}
}

// A pipe that nobody writes to is refused, and not waited for.
func TestOpenPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if !testfile.Pipe(path) {
		t.Skip("no named pipe can be made here")
	}
	link := path + "-link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		if _, err := Open(name); err == nil || !strings.Contains(err.Error(), name+": is not a regular file") {
			t.Error(err)
		}
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("hello"), 0o666); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadFile(path, 5); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := ReadFile(path, 4); err == nil || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	if _, err := ReadFile(path+"x", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if b := make([]byte, 3); must(OpenMemory("f", []byte("hello")).ReadAt(b, 2)) != 3 || string(b) != "llo" {
		t.Errorf("%q", b)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestPlainJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": [0.0, Infinity], "b": -Infinity, "c":NaN}`: `{"a": [0.0, null], "b": null, "c":null}`,
		`{"Infinity": "NaN \" Infinity"}`:                 `{"Infinity": "NaN \" Infinity"}`,
		`"\\"NaN`:                                         `"\\"null`,
		`"Infinity`:                                       `"Infinity`,
		`NaN`:                                             `null`,
		``:                                                ``,
	} {
		if got := string(PlainJSON([]byte(in))); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}
