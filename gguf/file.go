package gguf

import (
	"errors"

	"github.com/grovellm/grove/internal/mmap"
	"github.com/grovellm/grove/tensor"
)

// File is an open GGUF file, or all the parts of a split one. It may be read from several goroutines; Close may not run
// beside them, and ends the life of every Tensor's data (metadata and names stay).
type File struct {
	Path    string
	Version uint32
	Meta    []KV   // in the file's order
	Tensors []Info // in the file's order

	parts []part
	meta  map[string]int
	byKey map[string]int // tensor name → index
}

// Info describes a tensor without touching its data.
type Info struct {
	Name   string
	Type   tensor.Type
	Shape  []int // outermost first
	Offset int64 // of its data in its part of the file
	Size   int64 // bytes of its data; 0 where the type is not known
	Part   int   // which file of a split model, 0 being the one opened
}

type part struct {
	path string
	m    *mmap.File
}

// Open maps the file at path and reads its metadata. Given the first part of a split model (NAME-00001-of-0000N.gguf), it
// opens all the parts.
func Open(path string) (*File, error) {
	f := &File{Path: path}
	if err := f.open(path); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Parse reads a file that is in memory already, such as one embedded in a program. name stands for its path in
// errors. data must not change.
func Parse(name string, data []byte) (*File, error) {
	f := &File{Path: name}
	if err := f.read(part{name, &mmap.File{Data: data}}); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) open(path string) error {
	m, err := mmap.Open(path)
	if err != nil {
		return tensor.OpenError("gguf", path, err)
	}
	return f.read(part{path, m})
}

// read takes the first part.
func (f *File) read(first part) error {
	h, err := f.addPart(first)
	if err != nil {
		return err
	}
	f.Version, f.Meta, f.Tensors = h.version, h.meta, h.tensors
	f.meta = make(map[string]int, len(f.Meta))
	for i, kv := range f.Meta {
		f.meta[kv.Key] = i
	}
	if err := f.openSplit(); err != nil {
		return err
	}
	f.byKey = make(map[string]int, len(f.Tensors))
	for i, t := range f.Tensors {
		if j, twice := f.byKey[t.Name]; twice {
			return f.fault(t.Part, fail("tensor "+tensor.Quote(t.Name), "take all parts from one download", "occurs in this part and in %s", f.parts[f.Tensors[j].Part].path))
		}
		f.byKey[t.Name] = i
	}
	return nil
}

// addPart parses a part's header.
func (f *File) addPart(p part) (*header, error) {
	f.parts = append(f.parts, p)
	h, err := parse(p.m.Data)
	if err != nil {
		return nil, f.fault(len(f.parts)-1, err)
	}
	return h, nil
}

// fault gives a parse error its file.
func (f *File) fault(part int, err error) error {
	e := &tensor.FileError{Format: "gguf", File: f.Path, Err: err}
	if part < len(f.parts) {
		e.File = f.parts[part].path
	}
	if p := (*fault)(nil); errors.As(err, &p) {
		e.Field, e.Remedy, e.Err = p.field, p.remedy, p.err
	}
	return e
}

// Close unmaps the file.
func (f *File) Close() error {
	var errs []error
	for _, p := range f.parts {
		errs = append(errs, p.m.Close())
	}
	f.parts = nil
	return errors.Join(errs...)
}

// Tensor returns the named tensor, its data being a view of the mapped file. ok is false where there is none of
// that name. A tensor of a type this package does not know is returned without data: Load makes it an error.
func (f *File) Tensor(name string) (t tensor.Tensor, ok bool) {
	i, ok := f.byKey[name]
	if !ok || len(f.parts) == 0 {
		return tensor.Tensor{}, false
	}
	info := f.Tensors[i]
	data := f.parts[info.Part].m.Data[info.Offset : info.Offset+info.Size : info.Offset+info.Size]
	return tensor.Tensor{Name: info.Name, Type: info.Type, Shape: info.Shape, Data: data}, true
}

// Load is Tensor with an error, naming file and tensor, for one that is missing or of a type that cannot be read.
func (f *File) Load(name string) (tensor.Tensor, error) {
	field := "tensor " + tensor.Quote(name)
	t, ok := f.Tensor(name)
	if !ok {
		return t, f.fault(0, fail(field, "the file does not hold the model that its metadata describes: convert it again", "is not in the file"))
	}
	if !t.Type.Decodes() {
		return t, f.fault(f.Tensors[f.byKey[name]].Part, fail(field,
			"convert the file to F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K", "is of %v, which grove cannot compute with", t.Type))
	}
	return t, nil
}

// Prefetch asks the system to start reading the tensor's data.
func (f *File) Prefetch(name string) { f.advise(name, mmap.WillNeed) }

// Release tells the system that the tensor's data will not be read again soon, so that its pages can leave memory; reading it
// again stays correct.
func (f *File) Release(name string) { f.advise(name, mmap.DontNeed) }

func (f *File) advise(name string, a mmap.Advice) {
	if i, ok := f.byKey[name]; ok && len(f.parts) > 0 {
		t := f.Tensors[i]
		f.parts[t.Part].m.Advise(a, int(t.Offset), int(t.Size))
	}
}
