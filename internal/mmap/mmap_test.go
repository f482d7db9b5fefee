package mmap

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The mapping is the file, before and after any advice.
func TestContent(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(4000, 20000), rapid.Just(os.Getpagesize()), rapid.Just(3*os.Getpagesize())).Draw(t, "size")
		want := make([]byte, n)
		for i := range want {
			want[i] = byte(i * 7 >> 3)
		}
		path := filepath.Join(dir, "f")
		if err := os.WriteFile(path, want, 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 5).Draw(t, "advices") {
			off := rapid.OneOf(rapid.IntRange(-1, n+1), rapid.Just(math.MaxInt)).Draw(t, "off")
			f.Advise(Advice(rapid.IntRange(0, 2).Draw(t, "advice")), off, rapid.OneOf(rapid.IntRange(-1, n+1), rapid.Just(math.MaxInt)).Draw(t, "n"))
		}
		if !bytes.Equal(f.Data, want) {
			t.Fatal("the content differs")
		}
		for range 2 {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		f.Advise(DontNeed, 0, n)
		if f.Data != nil {
			t.Fatal("a closed file has data")
		}
	})
}

func TestFails(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Error(err)
	}
	if _, err := Open(os.DevNull); err == nil {
		t.Error("a device is mapped")
	}
}

// The way without mapping gives the same.
func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("hello"), 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, err := readFile(r, 5)
	if err != nil || string(f.Data) != "hello" {
		t.Fatalf("%q, %v", f.Data, err)
	}
	f.Advise(WillNeed, 0, 5)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := readFile(r, 6); err == nil {
		t.Error("more is read than there is")
	}
}
