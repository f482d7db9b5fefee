// Package mmap maps files into memory for reading.
//
// A model file is read once, front to back, by several workers that repack it. Mapping it lets each of
// them read the operating system's own copy: nothing is read twice, nothing is copied to be looked at, and
// Advise(DontNeed) hands pages back as soon as they were repacked, which keeps the peak near one copy.
//
// Where the system or the file system cannot map, Open reads the whole file instead; callers see no difference.
package mmap

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
)

// File is a file in memory. Data must not be written, nor read after Close.
type File struct {
	Data []byte

	mapped bool // Data came from the system's map call and must be unmapped
}

// Advice tells the system how a range is going to be used. It changes speed and memory, never content.
type Advice int

// The advices every system knows in some form.
const (
	Sequential Advice = iota // read ahead far, drop behind
	WillNeed                 // start reading now
	DontNeed                 // drop from memory; a later read fetches it again
)

// Open maps the regular file at path, read-only.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // a mapping outlives its descriptor
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case st.IsDir():
		return nil, &fs.PathError{Op: "map", Path: path, Err: errors.New("is a folder, not a file")}
	case !st.Mode().IsRegular():
		return nil, &fs.PathError{Op: "map", Path: path, Err: errors.New("is not a regular file")}
	case uint64(st.Size()) > math.MaxInt:
		return nil, &fs.PathError{Op: "map", Path: path, Err: fmt.Errorf("its %d bytes do not fit this machine's address space", st.Size())}
	case st.Size() == 0:
		return &File{}, nil // systems refuse to map nothing
	}
	m, err := mapFile(f, int(st.Size()))
	if err != nil {
		return nil, &fs.PathError{Op: "map", Path: path, Err: err}
	}
	return m, nil
}

// Advise passes advice about Data[off:off+n]; out-of-range parts are ignored, as is a system that does not listen.
func (f *File) Advise(a Advice, off, n int) {
	if !f.mapped || off < 0 || n <= 0 || off >= len(f.Data) {
		return
	}
	end := off + min(n, len(f.Data)-off)
	page := os.Getpagesize()
	if a == DontNeed && end < len(f.Data) {
		end -= end % page // the last page may also hold what a neighbour still reads
	}
	off -= off % page // a first page shared with a neighbour already read costs at most one fault
	if off < end {
		advise(f.Data[off:end], a)
	}
}

// Close unmaps the file. Closing twice is harmless.
func (f *File) Close() error {
	data, mapped := f.Data, f.mapped
	f.Data, f.mapped = nil, false
	if !mapped {
		return nil
	}
	return unmap(data)
}

// readFile is the way without mapping.
func readFile(f *os.File, size int) (*File, error) {
	b := make([]byte, size)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, fmt.Errorf("reading %d bytes: %w", size, err)
	}
	return &File{Data: b}, nil
}
