package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/tensor"
)

// Writer collects a file's description and writes the file in one go. It asks for each tensor's
// data when that is written, so that a file of any size takes little memory. The contents depend
// only on the tensors added, not on their order: tensors are sorted by size of element, largest
// first, so that each is aligned to its elements, then by name. The first error in SetMetadata or
// Add is kept and returned by WriteTo and WriteFile.
type Writer struct {
	metadata map[string]string
	tensors  []pending
	names    map[string]bool
	total    uint64 // bytes of data
	err      error
}

type pending struct {
	Info
	fill func(io.Writer) error
}

// NewWriter returns a writer of an empty file.
func NewWriter() *Writer {
	return &Writer{metadata: map[string]string{}, names: map[string]bool{}}
}

func (w *Writer) fail(field, remedy, format string, args ...any) {
	if w.err == nil {
		w.err = fault("", field, remedy, format, args...)
	}
}

// SetMetadata sets an entry of __metadata__. PyTorch's loader requires "format" to be "pt".
func (w *Writer) SetMetadata(key, value string) {
	if !utf8.ValidString(key) || !utf8.ValidString(value) {
		w.fail(metadataName+" "+fileerr.Quote(key), "", "is not valid UTF-8")
		return
	}
	w.metadata[key] = value
}

// Add adds a tensor whose bytes fill will write when the file is written.
func (w *Writer) Add(name string, t tensor.Type, shape []int, fill func(w io.Writer) error) {
	field := "tensor " + fileerr.Quote(name)
	dtype, ok := dtypeOf(t)
	elements, err := numtype.CountElements(shape)
	switch {
	case err != nil:
		w.fail(field, "", "%w", err)
	case !ok:
		w.fail(field, "write it to a GGUF file, or convert it to F32, F16 or BF16", "safetensors has no dtype for %v", t)
	case name == "" || name == metadataName || !utf8.ValidString(name):
		w.fail(field, "choose another name", "cannot be the name of a tensor")
	case w.names[name]:
		w.fail(field, "", "is added twice")
	}
	if w.err != nil {
		return
	}
	size, err := t.Size(elements)
	if err != nil {
		w.fail(field, "", "%w", err)
		return
	}
	w.total += uint64(size)
	if w.total > math.MaxInt64/2 {
		w.fail(field, "", "makes the file larger than the format allows")
		return
	}
	w.names[name] = true
	w.tensors = append(w.tensors, pending{Info{Name: name, DType: dtype, Type: t, Shape: slices.Clone(shape),
		Size: int64(size)}, fill})
}

func dtypeOf(t tensor.Type) (string, bool) {
	for name, typ := range dtypes {
		if typ == t {
			return name, true
		}
	}
	return "", false
}

// AddTensor adds a tensor with its data, which must not change, and must remain readable, until the
// file is written.
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

// WriteFile writes the file at path, whole or not at all. An existing file stays until the new one is complete.
func (w *Writer) WriteFile(path string) error {
	err := atomicfile.Write(path, func(out io.Writer) error {
		_, err := w.WriteTo(out)
		return err
	})
	if err == nil {
		return nil
	}
	if e := (*fileerr.Error)(nil); errors.As(err, &e) {
		named := *e
		named.File = path
		return &named
	}
	return fault(path, "", "", "%w", err)
}

// WriteTo writes the file to out, calling each tensor's fill once.
func (w *Writer) WriteTo(out io.Writer) (int64, error) {
	if w.err != nil {
		return 0, w.err
	}
	slices.SortFunc(w.tensors, func(a, b pending) int {
		_, x := a.Type.Block()
		_, y := b.Type.Block()
		return cmp.Or(cmp.Compare(y, x), cmp.Compare(a.Name, b.Name))
	})
	h := w.header()
	if len(h) > maxHeader {
		return 0, fault("", "header", "write several files", "its %d bytes are beyond the format's limit of %d", len(h),
			maxHeader)
	}
	n := int64(8 + len(h))
	if _, err := out.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(h))), h...)); err != nil {
		return 0, err
	}
	for _, t := range w.tensors {
		if err := atomicfile.Exactly(out, t.Size, t.fill); err != nil {
			return n, fault("", "tensor "+fileerr.Quote(t.Name), "", "%w", err)
		}
		n += t.Size
	}
	return n, nil
}

// header is the JSON, padded with spaces so that the data begins at a multiple of 8.
func (w *Writer) header() []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	if len(w.metadata) > 0 {
		b.WriteString(`"` + metadataName + `":` + asJSON(w.metadata))
	}
	off := int64(0)
	for i, t := range w.tensors {
		if i > 0 || len(w.metadata) > 0 {
			b.WriteByte(',')
		}
		shape := append([]int{}, t.Shape...) // not null, if it is empty
		fmt.Fprintf(&b, `%s:{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}`, asJSON(t.Name), t.DType, asJSON(shape),
			off, off+t.Size)
		off += t.Size
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	return b.Bytes()
}

// asJSON encodes valid text, integers, and maps of text by their keys in order.
func asJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // these have an encoding, and a buffer accepts it
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}
