// Package fileerr defines the form of errors about files: which file, what in it, what is wrong, what to do.
package fileerr

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
)

// Error is the error that every reader of a model file returns. It prints as "gguf: model.gguf:
// tensor "x": what is wrong: what to do".
type Error struct {
	Format string // gguf, safetensors
	File   string
	Field  string // e.g. `tensor "x"`, `key "general.alignment"`, `header`
	Err    error  // what is wrong
	Remedy string
}

func (e *Error) Error() string {
	parts := make([]string, 0, 5)
	for _, s := range []string{e.Format, e.File, e.Field, e.Err.Error(), e.Remedy} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

func (e *Error) Unwrap() error { return e.Err }

// Opening returns the Error for a file that cannot be opened. errors.Is still finds fs.ErrNotExist and the like in it.
func Opening(format, file string, err error) *Error {
	e := &Error{Format: format, File: file, Err: err}
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

// Quote quotes a name read from a file for a message: it escapes control characters and bounds the length.
func Quote(name string) string {
	name = Clip(name)
	special := func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
	if strings.ContainsFunc(name, special) {
		return strconv.Quote(name)
	}
	return `"` + name + `"` // the usual case, and readers quote the name of each tensor
}

// Clip bounds the length of a name.
func Clip(name string) string {
	if len(name) > 96 {
		return name[:80] + "…"
	}
	return name
}
