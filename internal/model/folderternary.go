package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/reshape"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/kernels/num"
	"github.com/grovellm/grove/tensor"
)

// Folders of BitNet have weights −1, 0 and 1 and a scale, X.weight_scale, in one of three forms:
//
//	packed     X.weight U8, four rows in each: row r has bits 2·⌊4r/R⌋ on of packed row r mod R/4, where R is the number of rows
//	unpacked   X.weight in F32, F16 or BF16
//	online     X.weight before rounding; the scale is the mean magnitude, of which weights are rounded to multiples
//
// The class bitlinear divides by the scale, autobitlinear multiplies by it. On reading, weights that are no wider than
// 16 bits become TQ2_0, which holds them exactly, or else F32.

// decodeTernary replaces such weights and their scales.
func decodeTernary(f *safetensors.File, a *architecture, q *quantization) error {
	drop := map[string]bool{}
	for _, info := range slices.Clone(f.Tensors) {
		if !a.isProduct(info.Name) {
			continue
		}
		t, _ := f.Tensor(info.Name)
		if t.Type != numtype.U8 && !t.Type.Decodes() || len(t.Shape) != 2 {
			return fmt.Errorf("tensor %s is %v of shape %v: want a matrix in U8, F32, F16 or BF16",
				fileerr.Quote(t.Name), t.Type, t.Shape)
		}
		x := ternary{stored: t, rows: t.Rows(), wide: t.Type == tensor.F32}
		if q.online() {
			x.scale = sync.OnceValues(x.mean)
		} else {
			s, err := readScale(f, t.Name, q)
			if err != nil {
				return err
			}
			drop[t.Name+"_scale"] = true
			x.scale = func() (float32, error) { return s, nil }
			switch {
			case t.Type == numtype.U8:
				x.rows *= 4
			case s == 1:
				continue
			default:
				scaled, err := reshape.Scaled(t, func(int) [2]float32 { return [2]float32{s, 1} })
				if err != nil {
					return err
				}
				f.Replace(t.Name, scaled, t.Type)
				continue
			}
		}
		f.Replace(t.Name, x.tensor(), t.Type)
	}
	f.Drop(func(name string) bool { return drop[name] })
	return nil
}

// readScale returns the factor of the named weights.
func readScale(f *safetensors.File, weights string, q *quantization) (float32, error) {
	t, err := scaling(f, weights, weights+"_scale")
	if err != nil {
		return 0, err
	}
	v, err := t.Float32s()
	if err != nil {
		return 0, err
	}
	if len(v) != 1 || !positive(float64(v[0])) || !positive(float64(1/v[0])) {
		return 0, fmt.Errorf("tensor %s of shape %v: want one positive number", fileerr.Quote(t.Name), t.Shape)
	}
	if q.Class != "autobitlinear" {
		return 1 / v[0], nil
	}
	return v[0], nil
}

// ternary is a matrix of −1, 0 and 1 times a scale.
type ternary struct {
	stored tensor.Tensor
	rows   int
	wide   bool // the scale has more than 16 bits
	scale  func() (float32, error)
}

// mean returns the mean magnitude of the weights, in the weights' type.
func (x *ternary) mean() (float32, error) {
	sum, row := 0.0, make([]float32, x.stored.Cols())
	for r := range x.rows {
		if err := x.stored.DequantizeRows(row, r, r+1); err != nil {
			return 0, err
		}
		for _, v := range row {
			sum += math.Abs(float64(v))
		}
	}
	return max(float32(sum/float64(x.rows*len(row))), 1e-5), nil
}

func (x *ternary) tensor() tensor.Tensor {
	t := tensor.Tensor{Name: x.stored.Name, Type: numtype.TQ2_0, Shape: []int{x.rows, x.stored.Cols()}}
	if _, err := t.Type.Size(t.Cols()); err != nil || x.wide {
		t.Type = tensor.F32
	}
	size := t.RowBytes()
	t.Reader = func(dst []byte, r0, r1 int) error {
		scale, err := x.scale()
		if err != nil {
			return err
		}
		values, row := make([]byte, t.Cols()), make([]float32, t.Cols())
		for r := r0; r < r1; r++ {
			if x.stored.Type == numtype.U8 {
				err = x.unpack(values, r)
			} else {
				err = x.round(values, row, r, scale)
			}
			if err == nil {
				err = x.write(dst[:size], values, t.Type, scale)
			}
			if err != nil {
				return fmt.Errorf("tensor %s: %w", fileerr.Quote(t.Name), err)
			}
			dst = dst[size:]
		}
		return nil
	}
	return t
}

// unpack writes the weights of row r, plus 1.
func (x *ternary) unpack(values []byte, r int) error {
	packed := x.rows / 4
	if err := x.stored.ReadRows(values, r%packed, r%packed+1); err != nil {
		return err
	}
	for i, b := range values {
		values[i] = b >> (2 * (r / packed)) & 3
		if values[i] == 3 {
			return errors.New("a weight is 2: want −1, 0 and 1")
		}
	}
	return nil
}

// round writes the weights of row r, plus 1, of weights before rounding, which it leaves in row.
func (x *ternary) round(values []byte, row []float32, r int, scale float32) error {
	if err := x.stored.DequantizeRows(row, r, r+1); err != nil {
		return err
	}
	inv := 1 / scale
	for i, v := range row {
		values[i] = byte(1 + min(max(math.RoundToEven(float64(v*inv)), -1), 1))
	}
	return nil
}

// write encodes weights plus 1.
func (x *ternary) write(dst, values []byte, typ tensor.Type, scale float32) error {
	le := binary.LittleEndian
	if x.stored.Type == tensor.BF16 {
		scale = num.BF16(num.ToBF16(scale))
	}
	if typ == tensor.F32 {
		for i, v := range values {
			le.PutUint32(dst[4*i:], math.Float32bits(float32(int(v)-1)*scale))
		}
		return nil
	}
	d := num.ToF16(scale)
	if x.stored.Type != tensor.F16 && num.F16(d) != scale {
		return fmt.Errorf("the scale %g is not a number of half precision", scale)
	}
	for ; len(values) > 0; values, dst = values[256:], dst[66:] {
		clear(dst[:64])
		for i, v := range values[:256] {
			dst[i/128*32+i%32] |= v << (i % 128 / 32 * 2)
		}
		le.PutUint16(dst[64:], d)
	}
	return nil
}
