package tensor

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
)

// FileError is what every reader of a model file returns: which file, what in it, what is wrong, what to do.
// It prints as "gguf: model.gguf: tensor "x": what is wrong: what to do".
type FileError struct {
	Format string // gguf, safetensors
	File   string
	Field  string // e.g. `tensor "x"`, `key "general.alignment"`, `header`
	Err    error  // what is wrong
	Remedy string
}

func (e *FileError) Error() string {
	parts := make([]string, 0, 5)
	for _, s := range []string{e.Format, e.File, e.Field, e.Err.Error(), e.Remedy} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

func (e *FileError) Unwrap() error { return e.Err }

// OpenError is the FileError of a file that cannot be opened; errors.Is still finds fs.ErrNotExist and the like in it.
func OpenError(format, file string, err error) *FileError {
	e := &FileError{Format: format, File: file, Err: err}
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		e.Err = p.Err // it would name the file a second time
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Remedy = "check the path"
	case errors.Is(err, fs.ErrPermission):
		e.Remedy = "allow it to be read"
	}
	return e
}

// Quote quotes a name read from a file for a message: control characters escaped, length bounded.
func Quote(name string) string { return strconv.Quote(clip(name)) }

func clip(s string) string {
	if len(s) > 96 {
		return s[:80] + "…"
	}
	return s
}
