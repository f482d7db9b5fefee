// Package reshape makes tensors from other tensors, for matrices that one format keeps whole and
// another in parts, or in another order.
package reshape

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/tensor"
)

// Columns returns a matrix of columns [from, to) of t, which must be whole blocks of its type. The data are a copy.
func Columns(t tensor.Tensor, from, to int) (tensor.Tensor, error) {
	if err := t.Check(); err != nil {
		return t, err
	}
	elements, bytes := t.Type.Block()
	switch {
	case len(t.Shape) != 2 || from < 0 || to <= from || to > t.Cols():
		return t, fmt.Errorf("tensor %s: columns %d to %d of shape %v", fileerr.Quote(t.Name), from, to, t.Shape)
	case from%elements != 0 || to%elements != 0:
		return t, fmt.Errorf("tensor %s: columns %d to %d are not whole blocks of %v, which hold %d: convert it to F32, F16 or BF16", fileerr.Quote(t.Name), from,
			to, t.Type, elements)
	}
	t, err := t.ReadAll()
	if err != nil {
		return t, err
	}
	from, to = from/elements*bytes, to/elements*bytes
	row := t.RowBytes()
	data := make([]byte, 0, t.Rows()*(to-from))
	for r := range t.Rows() {
		data = append(data, t.Data[r*row+from:r*row+to]...)
	}
	t.Shape = []int{t.Rows(), (to - from) / bytes * elements}
	t.Data = data
	return t, nil
}

// Join returns a matrix of parts side by side, which must have equally many rows, and one type.
func Join(name string, parts ...tensor.Tensor) (tensor.Tensor, error) {
	if len(parts) == 0 {
		return tensor.Tensor{}, fmt.Errorf("tensor %s: no parts", fileerr.Quote(name))
	}
	joined := tensor.Tensor{Name: name, Type: parts[0].Type, Shape: []int{parts[0].Rows(), 0}}
	for _, p := range parts {
		if err := p.Check(); err != nil {
			return joined, err
		}
		if len(p.Shape) != 2 || p.Type != joined.Type || p.Rows() != joined.Shape[0] {
			return joined, fmt.Errorf("tensor %s: %s of shape %v and type %v does not go beside %s of shape %v and type %v",
				fileerr.Quote(name), fileerr.Quote(p.Name), p.Shape, p.Type, fileerr.Quote(parts[0].Name),
				parts[0].Shape, parts[0].Type)
		}
		joined.Shape[1] += p.Cols()
	}
	if len(parts) == 1 {
		joined.Data, joined.Reader = parts[0].Data, parts[0].Reader
		return joined, nil
	}
	for r := range joined.Shape[0] {
		for _, p := range parts {
			at := len(joined.Data)
			joined.Data = append(joined.Data, make([]byte, p.RowBytes())...)
			if err := p.ReadRows(joined.Data[at:], r, r+1); err != nil {
				return joined, err
			}
		}
	}
	return joined, joined.Check()
}

// Reordered returns t with its rows, or the elements of a vector, in another order: row i is row
// order(i) of t. If order is nil, it returns t itself.
func Reordered(t tensor.Tensor, order func(i int) int) (tensor.Tensor, error) {
	if err := t.Check(); err != nil || order == nil {
		return t, err
	}
	rows, n := t.Rows(), t.RowBytes()
	if len(t.Shape) == 1 {
		elements, bytes := t.Type.Block()
		if elements != 1 {
			return t, fmt.Errorf("tensor %s: the elements of a vector of %v do not stand alone", fileerr.Quote(t.Name), t.Type)
		}
		rows, n = t.Shape[0], bytes
	}
	for i := range rows {
		if r := order(i); r < 0 || r >= rows {
			return t, fmt.Errorf("tensor %s: row %d of %d", fileerr.Quote(t.Name), r, rows)
		}
	}
	t.Shape = slices.Clone(t.Shape)
	if from := t.Reader; from != nil && len(t.Shape) > 1 {
		t.Reader = func(dst []byte, r0, r1 int) error {
			for i := r0; i < r1; {
				run := 1 // rows that are consecutive in the file too
				for i+run < r1 && order(i+run) == order(i)+run {
					run++
				}
				if err := from(dst[(i-r0)*n:(i-r0+run)*n], order(i), order(i)+run); err != nil {
					return err
				}
				i += run
			}
			return nil
		}
		return t, nil
	}
	t, err := t.ReadAll()
	if err != nil {
		return t, err
	}
	data := make([]byte, 0, rows*n)
	for i := range rows {
		r := order(i)
		data = append(data, t.Data[r*n:(r+1)*n]...)
	}
	t.Data = data
	return t, nil
}

// Shifted returns a vector with a number added to each element, in F32.
func Shifted(t tensor.Tensor, by float32) (tensor.Tensor, error) {
	return Mapped(t, func(x float32) float32 { return x + by })
}

// Mapped returns a vector with a function applied to each element, in F32.
func Mapped(t tensor.Tensor, f func(x float32) float32) (tensor.Tensor, error) {
	x, err := t.Float32s()
	if err != nil {
		return t, err
	}
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = f(v)
	}
	return tensor.FromFloat32s(t.Name, tensor.F32, t.Shape, y)
}

// Scaled returns a matrix whose rows are multiplied by two factors each, one after the other: in the matrix's type, or
// in F32 if that is quantised.
func Scaled(t tensor.Tensor, factors func(row int) [2]float32) (tensor.Tensor, error) {
	if err := t.Check(); err != nil || len(t.Shape) != 2 {
		return t, err
	}
	x := tensor.Tensor{Name: t.Name, Type: tensor.F32, Shape: t.Shape}
	if t.Type == tensor.F16 || t.Type == tensor.BF16 {
		x.Type = t.Type
	}
	size, cols := t.RowBytes(), t.Cols()
	x.Reader = func(dst []byte, r0, r1 int) error {
		data, values := make([]byte, (r1-r0)*size), make([]float32, (r1-r0)*cols)
		if err := t.ReadRows(data, r0, r1); err != nil {
			return err
		}
		if err := tensor.Dequantize(t.Type, data, values); err != nil {
			return err
		}
		for r := r0; r < r1; r++ {
			f, row := factors(r), values[(r-r0)*cols:][:cols]
			for i := range row {
				row[i] = row[i] * f[0] * f[1]
			}
		}
		return tensor.Quantize(x.Type, values, dst)
	}
	return x, nil
}

// Equal reports whether two tensors have the same type, shape and bytes. It reads tensors that are
// in a file a few rows at a time.
func Equal(t, o tensor.Tensor) (bool, error) {
	if t.Type != o.Type || !slices.Equal(t.Shape, o.Shape) {
		return false, nil
	}
	const most = 1 << 20 // bytes at a time
	rows, size := t.Rows(), t.RowBytes()
	step := max(most/max(size, 1), 1)
	a, b := make([]byte, min(step, rows)*size), make([]byte, min(step, rows)*size)
	for r := 0; r < rows; r += step {
		n := min(step, rows-r)
		if err := errors.Join(t.ReadRows(a[:n*size], r, r+n), o.ReadRows(b[:n*size], r, r+n)); err != nil {
			return false, err
		}
		if !bytes.Equal(a[:n*size], b[:n*size]) {
			return false, nil
		}
	}
	return true, nil
}
