// Package infile reads files that must not change while they are read, such as a model's.
//
// Bytes are read, not mapped: if a mapped file is cut short, the process is killed. After each
// read, the file's size and modification time are compared with those when it was opened. So all
// data read is from the file as it was opened, and anything else is an error that says what
// happened. The time does not reveal a second write in the same tick of the file system's clock
// (some milliseconds), nor the end of a write that has begun. So a file that was written to a
// moment ago is opened only after it has been left alone for a while. A file from package
// atomicfile is complete when it gets its name, and has an older time: it is opened at once.
package infile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"time"
)

// File is an open file, or bytes in memory that stand for one. Several goroutines may read it.
type File struct {
	Path string
	Data []byte // of a file in memory; nil for one on disk
	size int64
	r    io.ReaderAt
	disk *os.File    // nil for a file in memory
	was  fs.FileInfo // of disk when it was opened
}

// settled is how long ago the last write to a file must have begun before it is read: several ticks
// of a file system's clock, which are at most 10 ms.
const settled = 50 * time.Millisecond

// sleep and since are replaced in tests.
var sleep, since = time.Sleep, time.Since

// Open opens the regular file at path. If it was written to less than 50 ms ago, Open waits until
// that time has passed.
func Open(path string) (*File, error) {
	// Checked before opening too: opening a pipe waits for its writer.
	if st, err := os.Stat(path); err == nil && readable(st) != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: readable(st)}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil {
		err = readable(st)
	}
	if err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: bare(err)}
	}
	file := &File{Path: path, size: st.Size(), r: f, disk: f, was: st}
	if age := since(st.ModTime()); age >= 0 && age < settled {
		sleep(settled - age)
		if err := file.CheckUnchanged(); err != nil {
			f.Close()
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
	start := make([]byte, len(pointer))
	if n, _ := f.ReadAt(start, 0); string(start[:n]) == pointer {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("is a pointer of Git LFS, not the contents: " +
			"git lfs pull in its folder fetches them")}
	}
	return file, nil
}

// pointer is the beginning of the file that git keeps instead of a large one, if Git LFS is not installed.
const pointer = "version https://git-lfs.github.com/spec/"

// readable returns the reason why a file cannot be read, if there is one.
func readable(st fs.FileInfo) error {
	switch {
	case st.IsDir():
		return errors.New("is a folder, not a file")
	case !st.Mode().IsRegular():
		return errors.New("is not a regular file")
	case uint64(st.Size()) > math.MaxInt:
		return fmt.Errorf("its %d bytes do not fit this machine's address space", st.Size())
	}
	return nil
}

// OpenMemory returns a file of these contents, called path in errors.
func OpenMemory(path string, data []byte) *File {
	return &File{Path: path, Data: data, size: int64(len(data)), r: bytes.NewReader(data)}
}

// Size returns the file's size in bytes when it was opened.
func (f *File) Size() int64 { return f.size }

// ReadAt fills p with the bytes from off on, or returns an error that says why it did not. The
// error lacks the path.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.r.ReadAt(p, off)
	if e := f.CheckUnchanged(); e != nil {
		return n, e // rather than only an unexpected end of the file
	}
	if n == len(p) {
		return n, nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, fmt.Errorf("only %d of %d bytes at %d could be read, though the file has %d: %w",
		n, len(p), off, f.size, bare(err))
}

// bare returns an error without the path, which the caller adds.
func bare(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

const remedy = "open it again once nothing writes to it"

// CheckUnchanged returns an error that says what happened if the file has changed since it was
// opened.
func (f *File) CheckUnchanged() error {
	if f.disk == nil {
		return nil
	}
	st, err := f.disk.Stat()
	switch {
	case err != nil:
		return bare(err)
	case st.Size() == 0 && f.size != 0:
		return fmt.Errorf("the file was emptied while it was read: %s", remedy)
	case st.Size() < f.size:
		return fmt.Errorf("the file was cut short while it was read, from %d bytes to %d: %s",
			f.size, st.Size(), remedy)
	case st.Size() != f.size || !st.ModTime().Equal(f.was.ModTime()):
		return fmt.Errorf("the file was written to while it was read: %s", remedy)
	}
	return nil
}

// CheckInPlace is CheckUnchanged, but also fails if another file has replaced it at the path: then
// files that belong together are of different versions.
func (f *File) CheckInPlace() error {
	if f.disk == nil {
		return nil
	}
	st, err := os.Stat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the file was removed while the files beside it were read: %s", remedy)
	case err != nil:
		return bare(err)
	case !os.SameFile(st, f.was):
		return fmt.Errorf("the file was replaced while the files beside it were read: %s", remedy)
	}
	return f.CheckUnchanged()
}

// Close closes the file.
func (f *File) Close() error {
	if f.disk == nil {
		return nil
	}
	return f.disk.Close()
}

// ReadFile returns the contents of the file at path, which may have at most most bytes.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.size > most {
		return nil, fmt.Errorf("%s: larger than %d MB", path, most>>20)
	}
	b := make([]byte, f.size)
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}
