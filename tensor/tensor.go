package tensor

import (
	"cmp"
	"fmt"
	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/numtype"
	"slices"
)

// Tensor is a named array of numbers as a file holds it.
//
// Shape is outermost first, as PyTorch prints it: a linear layer's weight is [out, in], its rows lie one after the
// other, and blocks run along a row. (GGUF files store the same dimensions innermost first.)
type Tensor struct {
	Name  string
	Type  Type
	Shape []int
	Data  []byte // row-major, little endian; read-only

	// Reader reads rows [r0, r1) of a tensor that is in a file, not in memory; Data is nil then. It
	// may be called from several goroutines, until the file is closed.
	Reader func(dst []byte, r0, r1 int) error
}

// Elements is the number of elements, 0 for an impossible shape.
func (t Tensor) Elements() int {
	n, err := numtype.CountElements(t.Shape)
	if err != nil {
		return 0
	}
	return n
}

// Cols is the length of a row: the last dimension, 1 for a scalar.
func (t Tensor) Cols() int {
	if len(t.Shape) == 0 {
		return 1
	}
	return t.Shape[len(t.Shape)-1]
}

// Rows is the number of rows: the product of the other dimensions.
func (t Tensor) Rows() int {
	if c := t.Cols(); c > 0 {
		return t.Elements() / c
	}
	return 0
}

// RowBytes is the encoded size of a row, 0 if the type is unknown or its blocks do not divide the row.
func (t Tensor) RowBytes() int {
	n, err := t.Type.Size(t.Cols())
	if err != nil {
		return 0
	}
	return n
}

// Check reports whether shape, type and data match. The readers of files have already checked it.
func (t Tensor) Check() error {
	n, err := numtype.CountElements(t.Shape)
	if err != nil {
		return fmt.Errorf("tensor %s: %w", fileerr.Quote(t.Name), err)
	}
	if _, err := t.Type.Size(t.Cols()); err != nil {
		return fmt.Errorf("tensor %s: a row: %w", fileerr.Quote(t.Name), err)
	}
	size, err := t.Type.Size(n)
	if err != nil {
		return fmt.Errorf("tensor %s: %w", fileerr.Quote(t.Name), err)
	}
	if size != len(t.Data) && t.Reader == nil {
		return fmt.Errorf("tensor %s: shape %v of %v takes %d bytes, there are %d", fileerr.Quote(t.Name), t.Shape,
			t.Type, size, len(t.Data))
	}
	return nil
}

// ReadRows copies the bytes of rows [r0, r1), from memory or from the file, to dst, which must hold exactly those.
func (t Tensor) ReadRows(dst []byte, r0, r1 int) error {
	n := t.RowBytes()
	switch err := t.checkRows(r0, r1); {
	case err != nil:
		return err
	case len(dst) != (r1-r0)*n:
		return fmt.Errorf("tensor %s: %d rows of %d bytes, into %d", fileerr.Quote(t.Name), r1-r0, n, len(dst))
	case t.Reader != nil:
		return t.Reader(dst, r0, r1)
	}
	copy(dst, t.Data[r0*n:r1*n])
	return nil
}

// checkRows refuses rows that t does not have.
func (t Tensor) checkRows(r0, r1 int) error {
	if r0 < 0 || r1 < r0 || r1 > t.Rows() {
		return fmt.Errorf("tensor %s: rows %d to %d of %d", fileerr.Quote(t.Name), r0, r1, t.Rows())
	}
	return nil
}

// ReadAll returns t with its bytes in Data.
func (t Tensor) ReadAll() (Tensor, error) {
	if t.Reader == nil {
		return t, nil
	}
	t.Data = make([]byte, t.Rows()*t.RowBytes())
	err := t.Reader(t.Data, 0, t.Rows())
	t.Reader = nil
	return t, err
}

// DequantizeRows decodes rows [r0, r1) into dst, which must hold exactly (r1−r0)·Cols elements.
// Disjoint ranges may be decoded at the same time.
func (t Tensor) DequantizeRows(dst []float32, r0, r1 int) error {
	if err := cmp.Or(t.Check(), t.checkRows(r0, r1)); err != nil {
		return err
	}
	n, data := t.RowBytes(), t.Data
	if t.Reader != nil {
		data = make([]byte, (r1-r0)*n)
		if err := t.Reader(data, r0, r1); err != nil {
			return err
		}
	} else {
		data = data[r0*n : r1*n]
	}
	if err := Dequantize(t.Type, data, dst); err != nil {
		return fmt.Errorf("tensor %s: %w", fileerr.Quote(t.Name), err)
	}
	return nil
}

// Float32s decodes the whole tensor.
func (t Tensor) Float32s() ([]float32, error) {
	if err := t.Check(); err != nil { // before allocating: the bytes there are bound what a shape can claim
		return nil, err
	}
	dst := make([]float32, t.Elements())
	return dst, t.DequantizeRows(dst, 0, t.Rows())
}

// FromFloat32s encodes values as a tensor of a type that Quantize knows.
func FromFloat32s(name string, t Type, shape []int, values []float32) (Tensor, error) {
	out := Tensor{Name: name, Type: t, Shape: slices.Clone(shape)}
	n, err := numtype.CountElements(shape)
	if err != nil {
		return Tensor{}, fmt.Errorf("tensor %s: %w", fileerr.Quote(name), err)
	}
	if n != len(values) {
		return Tensor{}, fmt.Errorf("tensor %s: shape %v holds %d elements, there are %d values", fileerr.Quote(name),
			shape, n, len(values))
	}
	if _, err := t.Size(out.Cols()); err != nil {
		return Tensor{}, fmt.Errorf("tensor %s: a row: %w", fileerr.Quote(name), err)
	}
	size, err := t.Size(n)
	if err != nil {
		return Tensor{}, fmt.Errorf("tensor %s: %w", fileerr.Quote(name), err)
	}
	out.Data = make([]byte, size)
	if err := Quantize(t, values, out.Data); err != nil {
		return Tensor{}, fmt.Errorf("tensor %s: %w", fileerr.Quote(name), err)
	}
	return out, nil
}
