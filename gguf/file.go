package gguf

import (
	"errors"
	"strings"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/infile"
	"github.com/grovellm/grove/tensor"
)

// File is an open GGUF file, or all the parts of a split one. It may be read from several goroutines. After Close the
// tensors of a file on disk can no longer be read; metadata and names stay.
type File struct {
	Path    string
	Version uint32
	Tensors []Info // in the file's order

	parts []*infile.File
	list  []keyValue     // the metadata, in the file's order
	meta  map[string]int // key → index in list
	byKey map[string]int // tensor name → index
}

// Info describes a tensor without touching its data.
type Info struct {
	Name  string
	Type  tensor.Type
	Shape []int // outermost first
	Size  int64 // bytes of its data; 0 if the type is unknown
	Part  int   // which file of a split model, 0 being the one opened

	offset int64 // of its data in its part of the file
}

// Open opens the file at path and reads its metadata. Given the first part of a split model
// (NAME-00001-of-0000N.gguf), it opens all the parts. If the file changes later, reading it is an error.
func Open(path string) (*File, error) {
	f := &File{Path: path}
	if err := f.open(path); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Parse reads a file that is already in memory, such as one embedded in a program. Errors show name in place
// of a path. data must not change.
func Parse(name string, data []byte) (*File, error) {
	f := &File{Path: name}
	if err := f.read(infile.OpenMemory(name, data)); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) open(path string) error {
	p, err := infile.Open(path)
	if err != nil {
		return fileerr.Opening("gguf", path, err)
	}
	return f.read(p)
}

// read takes the first part.
func (f *File) read(first *infile.File) error {
	h, err := f.addPart(first)
	if err != nil {
		return err
	}
	f.Version = h.version
	f.list = h.meta
	f.Tensors = h.tensors
	f.meta = make(map[string]int, len(f.list))
	for i, kv := range f.list {
		f.meta[kv.key] = i
	}
	if err := f.openSplit(); err != nil {
		return err
	}
	f.byKey = make(map[string]int, len(f.Tensors))
	for i, t := range f.Tensors {
		if j, twice := f.byKey[t.Name]; twice {
			return f.fault(t.Part, fail("tensor "+fileerr.Quote(t.Name), "take all parts from one download",
				"occurs in this part and in %s", f.parts[f.Tensors[j].Part].Path))
		}
		f.byKey[t.Name] = i
	}
	return nil
}

// addPart parses a part's header.
func (f *File) addPart(p *infile.File) (*header, error) {
	f.parts = append(f.parts, p)
	h, err := (&cursor{file: p, size: p.Size(), data: p.Data}).parse()
	if err != nil {
		return nil, f.fault(len(f.parts)-1, err)
	}
	return h, nil
}

// fault gives a parse error its file.
func (f *File) fault(part int, err error) error {
	e := &fileerr.Error{Format: "gguf", File: f.Path, Err: err}
	if part < len(f.parts) {
		e.File = f.parts[part].Path
	}
	if p := (*fault)(nil); errors.As(err, &p) {
		e.Field = p.field
		e.Remedy = p.remedy
		e.Err = p.err
	}
	return e
}

// CheckInPlace returns an error where a part of a split model has changed since it was opened, or
// where another file has taken its place: the parts are then of different versions.
func (f *File) CheckInPlace() error {
	if len(f.parts) < 2 {
		return nil
	}
	for i, p := range f.parts {
		if err := p.CheckInPlace(); err != nil {
			return f.fault(i, err)
		}
	}
	return nil
}

// Close closes the file.
func (f *File) Close() error {
	var errs []error
	for _, p := range f.parts {
		errs = append(errs, p.Close())
	}
	f.parts = nil
	return errors.Join(errs...)
}

// Tensor returns the named tensor, whose bytes are read when they are asked for. ok is false if there is none of
// that name. A tensor of a type unknown to this package is returned without bytes; for Load it is an error.
func (f *File) Tensor(name string) (t tensor.Tensor, ok bool) {
	i, ok := f.byKey[name]
	if !ok || len(f.parts) == 0 {
		return tensor.Tensor{}, false
	}
	info := &f.Tensors[i]
	p := f.parts[info.Part]
	t = tensor.Tensor{Name: info.Name, Type: info.Type, Shape: info.Shape}
	if p.Data != nil {
		t.Data = p.Data[info.offset : info.offset+info.Size : info.offset+info.Size]
	} else if info.Size > 0 {
		row := int64(t.RowBytes())
		t.Reader = func(dst []byte, r0, _ int) error {
			if _, err := p.ReadAt(dst, info.offset+int64(r0)*row); err != nil {
				return &fileerr.Error{Format: "gguf", File: p.Path, Field: "tensor " + fileerr.Quote(name), Err: err}
			}
			return nil
		}
	}
	return t, true
}

// storable reports whether a GGUF file may hold a type.
func storable(t tensor.Type) bool {
	elements, _ := t.Block()
	return t < 1<<16 && elements > 0
}

// decoded names the types that grove reads from GGUF files.
func decoded() string {
	var names []string
	for t := range tensor.Type(1 << 8) {
		if t.Decodes() {
			names = append(names, t.String())
		}
	}
	return strings.Join(names, ", ")
}

// Load is Tensor, but fails, naming file and tensor, if it is missing or of a type that cannot be read.
func (f *File) Load(name string) (tensor.Tensor, error) {
	field := "tensor " + fileerr.Quote(name)
	t, ok := f.Tensor(name)
	if !ok {
		return t, f.fault(0, fail(field, "the file does not hold the model that its metadata describes: convert it again", "is not in the file"))
	}
	if !t.Type.Decodes() {
		return t, f.fault(f.Tensors[f.byKey[name]].Part, fail(field,
			"convert the file to one of "+decoded(), "is of %v, which grove cannot compute with", t.Type))
	}
	return t, nil
}
