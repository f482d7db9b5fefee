// Package atomicfile writes a file whole or not at all: whoever opens the path, at any moment and
// after any crash, finds the old content or the new one, never a part.
package atomicfile

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// syncFile makes a file or a folder survive a power failure.
var syncFile = (*os.File).Sync

// SkipSync lets the system decide when files are written to the disk, in the whole program. It is for tests.
func SkipSync() { syncFile = func(*os.File) error { return nil } }

// TryFolder makes a folder, if there is none, and writes a temporary file in it, so that a program
// that writes there at its end learns at its beginning whether it can.
func TryFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".try-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Write calls fill with a buffered writer to a temporary file next to path, flushes it to the disk, and
// renames it to path. If fill fails or panics, the temporary file is removed and path is untouched.
func Write(path string, fill func(w io.Writer) error) error {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("write %s: it exists and is not a regular file: choose another name", path)
	}
	f, err := os.OpenFile(path+unfinished+rand.Text()[:8], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriterSize(f, 64<<10)
	if err := fill(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := syncFile(f); err != nil { // the content must be on disk before the file gets its name
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	// The file is complete when it gets its name. An earlier time says so to package infile, which otherwise waits.
	earlier := time.Now().Add(-Age)
	_ = os.Chtimes(f.Name(), earlier, earlier) // if the system cannot set times, infile waits
	if err := Rename(f.Name(), path); err != nil {
		return err
	}
	done = true
	syncFolder(filepath.Dir(path))
	return nil
}

// Rename gives a file or a folder its name. Windows refuses that while a program, such as a reader
// or a virus scanner, has the old or the new file open: there Rename tries for two seconds.
func Rename(from, to string) error {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := os.Rename(from, to)
		if err == nil || runtime.GOOS != "windows" || time.Since(began) > 2*time.Second {
			return err
		}
	}
}

// Age is the age of a file's modification time when the file gets its name.
const Age = 100 * time.Millisecond

// unfinished follows the path in the name of a temporary file.
const unfinished = ".tmp-"

// RemoveUnfinished removes the temporary files that killed writers of the path left. Nobody may
// write the path meanwhile.
func RemoveUnfinished(path string) error {
	files, err := os.ReadDir(filepath.Dir(path))
	for _, f := range files {
		if strings.HasPrefix(f.Name(), filepath.Base(path)+unfinished) {
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(path), f.Name())))
		}
	}
	return err
}

// WriteJSON writes v as indented JSON, without escaping HTML.
func WriteJSON(path string, v any) error {
	return Write(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		return e.Encode(v)
	})
}

// syncFolder makes the rename itself durable if the system can; otherwise the old content may come
// back after a crash, complete.
func syncFolder(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = syncFile(d)
		d.Close()
	}
}

// Exactly calls fill with a writer that takes n bytes, and fails if fill writes fewer or more.
func Exactly(w io.Writer, n int64, fill func(w io.Writer) error) error {
	e := &exact{w: w, left: n}
	if err := fill(e); err != nil {
		return err
	}
	if e.left != 0 {
		return fmt.Errorf("%d bytes were written, want %d", n-e.left, n)
	}
	return nil
}

type exact struct {
	w    io.Writer
	left int64
}

func (e *exact) Write(p []byte) (int, error) {
	if int64(len(p)) > e.left {
		return 0, fmt.Errorf("%d more bytes are written than there is place for", int64(len(p))-e.left)
	}
	n, err := e.w.Write(p)
	e.left -= int64(n)
	return n, err
}
