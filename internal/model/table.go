package model

import (
	"runtime"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
)

// table is an embedding used only for look-ups, in the file's type and, like weights, outside the
// Go heap.
type table struct {
	kind  tensor.Type
	size  int // bytes of a row
	data  []byte
	owner any // keeps data alive
}

func (t *table) Row(dst []float32, i int) {
	if err := tensor.Dequantize(t.kind, t.data[i*t.size:(i+1)*t.size], dst); err != nil {
		panic(err) // type and sizes were checked when it was loaded
	}
	runtime.KeepAlive(t)
}

// scaledTable is a table of embeddings that the network multiplies by a factor.
type scaledTable struct {
	nn.Table
	scale float32
}

func (t *scaledTable) Row(dst []float32, i int) {
	t.Table.Row(dst, i)
	simd.Scale(dst, t.scale)
}

// Table makes room for an embedding that is not tied to the head. Pack will fill it.
func (l *Loader) Table(name string, rows, cols int) (nn.Table, error) {
	t, err := l.get(name, rows, cols)
	if err != nil {
		return nil, err
	}
	if err := t.DequantizeRows(make([]float32, cols), 0, 1); err != nil {
		return nil, err
	}
	e := &table{kind: t.Type, size: t.RowBytes()}
	l.count(t, t.Type, rows*e.size)
	if l.dry {
		return e, nil
	}
	e.data, e.owner = gemm.Memory(rows * e.size)
	l.jobs = append(l.jobs, packing{t: t, rows: e.data})
	return e, nil
}
