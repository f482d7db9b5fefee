package gguf

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/tensor"
)

// maxName is ggml's limit on a tensor's name: longer ones would make files that only grove reads.
const maxName = 63

// Writer collects a file's description and writes it, version 3, in one go. Tensor data is requested when it is
// written, so that a file of any size needs little memory. The first mistake made with Set or Add is kept and
// returned by WriteTo and WriteFile. The zero value is a writer of an empty file.
type Writer struct {
	meta    []keyValue
	tensors []pending
	names   map[string]bool
	total   uint64 // bytes of data, padding left out
	err     error
}

type pending struct {
	Info
	fill func(io.Writer) error
}

func (w *Writer) fail(field, remedy, format string, args ...any) {
	if w.err == nil {
		w.err = fail(field, remedy, format, args...)
	}
}

// Set sets a metadata key to a Go scalar of fixed size, a string, a slice of those, a Value, or a []Value of one
// type (which may be arrays). A plain int is refused, since its width in the file would be a guess. A key that is
// set again keeps its place.
func (w *Writer) Set(key string, value any) {
	v, err := valueOf(value)
	switch {
	case err != nil:
		w.fail("key "+fileerr.Quote(key), "", "%w", err)
		return
	case key == "" || len(key) > 65535:
		w.fail("key "+fileerr.Quote(key), "", "want 1 to 65535 bytes, it has %d", len(key))
		return
	}
	if i := slices.IndexFunc(w.meta, func(kv keyValue) bool { return kv.key == key }); i >= 0 {
		w.meta[i].value = v
		return
	}
	w.meta = append(w.meta, keyValue{key, v})
}

// Add adds a tensor whose encoded bytes fill will write when the file is written.
func (w *Writer) Add(name string, t tensor.Type, shape []int, fill func(w io.Writer) error) {
	field := "tensor " + fileerr.Quote(name)
	elements, err := numtype.CountElements(shape)
	switch {
	case err != nil:
		w.fail(field, "", "%w", err)
	case name == "" || len(name) > maxName:
		w.fail(field, "choose a shorter name", "want 1 to %d bytes for a name, it has %d", maxName, len(name))
	case w.names[name]:
		w.fail(field, "", "is added twice")
	case len(shape) > maxDims:
		w.fail(field, "", "shape %v has more than %d dimensions", shape, maxDims)
	case !storable(t):
		w.fail(field, "convert it to a ggml type", "GGUF has no type for %v", t)
	}
	if w.err != nil {
		return
	}
	_, err = t.Size(tensor.Tensor{Shape: shape}.Cols())
	size := 0
	if err == nil {
		size, err = t.Size(elements)
	}
	if err != nil {
		w.fail(field, "choose another type for it", "%w", err)
		return
	}
	w.total += uint64(size)
	if w.total > math.MaxInt64/2 {
		w.fail(field, "", "makes the file larger than the format allows")
		return
	}
	if w.names == nil {
		w.names = map[string]bool{}
	}
	w.names[name] = true
	w.tensors = append(w.tensors, pending{Info{Name: name, Type: t, Shape: slices.Clone(shape), Size: int64(size)}, fill})
}

// AddTensor adds a tensor with its data, which must stay unchanged and readable until the file is
// written.
func (w *Writer) AddTensor(t tensor.Tensor) {
	w.Add(t.Name, t.Type, t.Shape, func(out io.Writer) error {
		x, err := t.ReadAll()
		if err != nil {
			return err
		}
		_, err = out.Write(x.Data)
		return err
	})
}

// WriteFile writes the file at path, completely or not at all. An existing file stays until the new one is complete.
func (w *Writer) WriteFile(path string) error {
	err := atomicfile.Write(path, func(out io.Writer) error {
		_, err := w.WriteTo(out)
		return err
	})
	if err == nil {
		return nil
	}
	e := &fileerr.Error{Format: "gguf", File: path, Err: err}
	if p := (*fault)(nil); errors.As(err, &p) {
		e.Field = p.field
		e.Remedy = p.remedy
		e.Err = p.err
	}
	return e
}

// WriteTo writes the file to out, calling each tensor's fill once, in the order added.
func (w *Writer) WriteTo(out io.Writer) (int64, error) {
	if w.err != nil {
		return 0, w.err
	}
	a := uint64(defaultAlignment)
	for _, kv := range w.meta {
		if kv.key == alignmentKey {
			var ok bool
			a, ok = As[uint64](kv.value)
			if !ok || kv.value.typ != typeUint32 || bits.OnesCount64(a) != 1 || a > maxAlignment {
				return 0, fail("key "+fileerr.Quote(alignmentKey), "", "is %v (%v), want a u32 that is a power of two",
					kv.value, kv.value.Type())
			}
		}
	}
	b := w.header(a)
	n := int64(len(b))
	if _, err := out.Write(b); err != nil {
		return 0, err
	}
	pad := make([]byte, a)
	for _, t := range w.tensors {
		if err := atomicfile.Exactly(out, t.Size, t.fill); err != nil {
			return n, fail("tensor "+fileerr.Quote(t.Name), "", "%w", err)
		}
		gap := align(uint64(t.Size), a) - uint64(t.Size)
		if _, err := out.Write(pad[:gap]); err != nil {
			return n, err
		}
		n += t.Size + int64(gap)
	}
	return n, nil
}

// header lays the tensors out one after the other and encodes everything before their data.
func (w *Writer) header(a uint64) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32([]byte(magic), version)
	b = le.AppendUint64(b, uint64(len(w.tensors)))
	b = le.AppendUint64(b, uint64(len(w.meta)))
	for _, kv := range w.meta {
		b = appendString(b, kv.key)
		b = le.AppendUint32(b, uint32(kv.value.typ))
		b = append(b, kv.value.raw...)
	}
	off := uint64(0)
	for _, t := range w.tensors {
		b = appendString(b, t.Name)
		b = le.AppendUint32(b, uint32(len(t.Shape)))
		for _, d := range slices.Backward(t.Shape) { // innermost first
			b = le.AppendUint64(b, uint64(d))
		}
		b = le.AppendUint32(b, uint32(t.Type))
		b = le.AppendUint64(b, off)
		off = align(off+uint64(t.Size), a)
	}
	if len(w.tensors) == 0 {
		return b // nothing to align
	}
	return append(b, make([]byte, align(uint64(len(b)), a)-uint64(len(b)))...)
}
