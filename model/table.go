package model

import (
	"slices"

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
