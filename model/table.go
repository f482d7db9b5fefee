package model

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tensor"
)

// table is an embedding that is only looked up, kept as the file has it.
type table struct {
	kind tensor.Type
	size int // bytes of a row
	data []byte
}

func (t *table) Row(dst []float32, i int) {
	if err := tensor.Dequantize(t.kind, t.data[i*t.size:(i+1)*t.size], dst); err != nil {
		panic(err) // type and sizes were checked when it was loaded
	}
}

// Table loads an embedding that is not tied to the head.
func (l *Loader) Table(name string, rows, cols int) (nn.Table, error) {
	t, err := l.get(name, rows, cols)
	if err != nil {
		return nil, err
	}
	if err := t.DequantizeRows(make([]float32, cols), 0, 1); err != nil {
		return nil, err
	}
	e := &table{kind: t.Type, size: t.RowBytes(), data: slices.Clone(t.Data)}
	l.src.done(t)
	return e, nil
}

// widen returns a quantised tensor's elements as little-endian f32.
func widen(t tensor.Tensor, pool *par.Pool) ([]byte, error) {
	w := &widenJob{t: t, out: make([]byte, 4*t.Elements()), errs: make([]error, t.Rows())}
	pool.Run(t.Rows(), w)
	return w.out, errors.Join(w.errs...)
}

type widenJob struct {
	t    tensor.Tensor
	out  []byte
	errs []error
}

func (w *widenJob) Do(_, i int) {
	cols := w.t.Cols()
	row := make([]float32, cols)
	w.errs[i] = w.t.DequantizeRows(row, i, i+1)
	for j, x := range row {
		binary.LittleEndian.PutUint32(w.out[4*(i*cols+j):], math.Float32bits(x))
	}
}
