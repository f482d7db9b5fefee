// Package torch finds the tensors in PyTorch's checkpoint files (pytorch_model.bin, .pt), the form
// in which many drafters' heads are published.
//
// A file is a zip archive of stored entries: data.pkl, a pickle of a dictionary by name whose
// tensors refer to storages, and one entry data/KEY for each storage, which holds the raw numbers.
// The pickle is read as data: nothing that it names is run, and anything that is not a tensor is
// skipped.
package torch

import (
	"archive/zip"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"path"
	"slices"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/tensor"
)

// Magic is the beginning of a file: that of a zip archive.
const Magic = "PK\x03\x04"

// Info is a tensor's place in the file.
type Info struct {
	Name         string
	Type         tensor.Type
	Shape        []int
	Offset, Size int64
}

// types maps the class of a storage to its type of numbers.
var types = map[string]tensor.Type{
	"FloatStorage": tensor.F32, "HalfStorage": tensor.F16, "BFloat16Storage": tensor.BF16, "DoubleStorage": numtype.F64,
	"LongStorage": numtype.I64, "IntStorage": numtype.I32, "ShortStorage": numtype.I16, "CharStorage": numtype.I8,
	"ByteStorage": numtype.U8,
	"BoolStorage": numtype.Bool,
}

const (
	// maxDirectory bounds how much of the archive's directory is read: about 80 bytes for each
	// storage. An entry of 46 bytes takes about 300 bytes of memory.
	maxDirectory = 4 << 20

	maxDims = 64 // PyTorch's limit
)

// Parse lists the tensors of a file of size bytes, in the order of its dictionary.
func Parse(file io.ReaderAt, size int64) ([]Info, error) {
	directory := &limitedReader{file, maxDirectory}
	z, err := zip.NewReader(directory, size)
	if err != nil {
		return nil, fmt.Errorf("not a PyTorch file, which is a zip archive: %w", err)
	}
	directory.left = math.MaxInt // places are read next, 30 bytes each
	a := &archive{file: file, size: size, storages: map[string]*zip.File{}}
	for _, f := range z.File {
		switch dir, name := path.Split(f.Name); {
		case name == "data.pkl":
			a.pickle = f
		case name == "byteorder":
			a.order = f
		case path.Base(dir) == "data":
			a.storages[name] = f
		}
	}
	if a.pickle == nil {
		return nil, fmt.Errorf("the archive has no data.pkl: it is not a PyTorch checkpoint")
	}
	if a.order != nil {
		if text, err := a.read(a.order); err != nil || string(text) != "little" {
			return nil, fmt.Errorf("byteorder is %s (%v): want little", fileerr.Quote(string(text[:min(len(text), 97)])), err)
		}
	}
	text, err := a.read(a.pickle)
	if err != nil {
		return nil, fmt.Errorf("data.pkl: %w", err)
	}
	top, err := unpickle(text)
	if err != nil {
		return nil, fmt.Errorf("data.pkl: %w", err)
	}
	return a.list(top)
}

// limitedReader fails once it has read its limit.
type limitedReader struct {
	io.ReaderAt
	left int
}

func (r *limitedReader) ReadAt(p []byte, at int64) (int, error) {
	r.left -= len(p)
	if r.left < 0 {
		return 0, fmt.Errorf("its directory is larger than %d MB", maxDirectory>>20)
	}
	return r.ReaderAt.ReadAt(p, at)
}

type archive struct {
	file          io.ReaderAt
	size          int64
	pickle, order *zip.File
	storages      map[string]*zip.File
}

// place returns where the contents of an entry are in the file.
func (a *archive) place(f *zip.File) (at, size int64, err error) {
	if at, err = f.DataOffset(); err != nil {
		return 0, 0, err
	}
	size = int64(f.UncompressedSize64)
	switch {
	case f.Method != zip.Store:
		return 0, 0, fmt.Errorf("is compressed, which PyTorch's are not")
	case size < 0 || at < 0 || size > a.size || at > a.size-size:
		return 0, 0, fmt.Errorf("goes beyond the end of the file")
	}
	return at, size, nil
}

// read returns the contents of an entry.
func (a *archive) read(f *zip.File) ([]byte, error) {
	at, size, err := a.place(f)
	if err != nil {
		return nil, err
	}
	text := make([]byte, size)
	if _, err := a.file.ReadAt(text, at); err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(text) != f.CRC32 {
		return nil, zip.ErrChecksum
	}
	return text, nil
}

// list finds the tensors of the top-level dictionary.
func (a *archive) list(top any) ([]Info, error) {
	d, ok := top.(*dict)
	if !ok {
		return nil, fmt.Errorf("data.pkl: holds %s: want a dictionary of tensors by name", describe(top))
	}
	var list []Info
	seen := map[string]bool{}
	for i, key := range d.keys {
		name, ok := key.(string)
		t, is := d.values[i].(*built)
		if !ok || !is {
			continue // an optimizer's state, an epoch
		}
		if seen[name] {
			return nil, fmt.Errorf("tensor %s occurs twice", fileerr.Quote(name))
		}
		seen[name] = true
		info, err := a.tensor(name, t)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", fileerr.Quote(name), err)
		}
		list = append(list, info)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("data.pkl: its dictionary holds no tensors by name")
	}
	return list, nil
}

// tensor resolves the pickle's description of a tensor to bytes of the file.
func (a *archive) tensor(name string, t *built) (Info, error) {
	if t.function == (global{"torch._utils", "_rebuild_parameter"}) && len(t.args) > 0 {
		inner, ok := t.args[0].(*built)
		if !ok || inner.function == t.function {
			return Info{}, fmt.Errorf("a parameter of no tensor")
		}
		return a.tensor(name, inner)
	}
	if t.function != (global{"torch._utils", "_rebuild_tensor_v2"}) || len(t.args) < 4 {
		return Info{}, fmt.Errorf("is made by %s: want plain tensors, save them as safetensors", t.function.quote())
	}
	s, ok := t.args[0].(*storage)
	first, ok1 := t.args[1].(int64)
	shape, ok2 := ints(t.args[2])
	strides, ok3 := ints(t.args[3])
	if !ok || !ok1 || !ok2 || !ok3 || len(shape) != len(strides) || first < 0 {
		return Info{}, fmt.Errorf("its storage, shape or strides are not what PyTorch writes")
	}
	typ, ok := types[s.class.name]
	ok = ok && s.class.module == "torch"
	if !ok {
		return Info{}, fmt.Errorf("its numbers are of class %s: want a type of number that PyTorch has a storage class for", s.class.quote())
	}
	info := Info{Name: name, Type: typ, Shape: shape}
	n := 0
	if !slices.Contains(shape, 0) {
		var err error
		if n, err = numtype.CountElements(shape); err != nil {
			return info, err
		}
	}
	step := 1
	for i := len(shape) - 1; i >= 0 && n > 0; i-- {
		if shape[i] > 1 && strides[i] != step {
			return info, fmt.Errorf("shape %v has strides %v: want rows one after the other; save it contiguous", shape, strides)
		}
		step *= shape[i]
	}
	f := a.storages[s.key]
	if f == nil {
		return info, fmt.Errorf("its storage %s is not in the archive: the file is incomplete",
			fileerr.Quote("data/"+s.key[:min(len(s.key), 97)]))
	}
	at, have, err := a.place(f)
	if err != nil {
		return info, fmt.Errorf("its storage %w", err)
	}
	size, err := typ.Size(n)
	if err != nil {
		return info, err
	}
	_, each := typ.Block()
	if first > math.MaxInt64/int64(each) || first*int64(each) > have || int64(size) > have-first*int64(each) {
		return info, fmt.Errorf("takes %d bytes from number %d on, its storage has %d", size, first, have)
	}
	info.Offset, info.Size = at+first*int64(each), int64(size)
	return info, nil
}

// ints reads a tuple of at most maxDims non-negative numbers. Without that limit, many tensors with
// one long shape would take unbounded memory.
func ints(v any) ([]int, bool) {
	t, ok := v.([]any)
	if !ok || len(t) > maxDims {
		return nil, false
	}
	list := make([]int, len(t))
	for i, x := range t {
		n, ok := x.(int64)
		if !ok || n < 0 || n > math.MaxInt {
			return nil, false
		}
		list[i] = int(n)
	}
	return list, true
}
