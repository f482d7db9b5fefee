package nn

// Mat is a matrix of activations, one row per token, in row-major order. A Mat may be some columns
// of a wider one: rows are Stride apart.
type Mat struct {
	Rows, Cols, Stride int
	Data               []float32
	Grad               []float32 // laid out like Data: room for a gradient, if a Recorder made the matrix
}

// Row returns row i, of Cols elements.
func (m Mat) Row(i int) []float32 {
	o := i * m.Stride
	return m.Data[o : o+m.Cols : o+m.Cols]
}

// flat returns the rows of m, and what lies between them, as one row.
func (m Mat) flat() Mat {
	n := m.Rows * m.Stride
	return Mat{Rows: 1, Cols: n, Stride: n, Data: m.Data[:n:n]}
}

// Columns returns the view of columns [from, to).
func (m Mat) Columns(from, to int) Mat {
	v := Mat{Rows: m.Rows, Cols: to - from, Stride: m.Stride, Data: m.Data[from:]}
	if m.Grad != nil {
		v.Grad = m.Grad[from:]
	}
	return v
}

// Slice returns rows [from, to). A slice of no matrix is no matrix.
func (m Mat) Slice(from, to int) Mat {
	if m.Data == nil {
		return m
	}
	v := m
	v.Rows, v.Data = to-from, m.Data[from*m.Stride:]
	if m.Grad != nil {
		v.Grad = m.Grad[from*m.Stride:]
	}
	return v
}

// Buffer is memory for a Mat that every pass fills anew: it grows to the largest pass seen and then
// allocates no more.
type Buffer struct{ data []float32 }

// Mat returns a rows×cols matrix over the buffer; its contents are undefined.
func (b *Buffer) Mat(rows, cols int) Mat {
	if n := rows * cols; cap(b.data) < n {
		b.data = make([]float32, n)
	}
	return Mat{Rows: rows, Cols: cols, Stride: cols, Data: b.data[:cap(b.data)]}
}

// NewMat returns a matrix of zeros.
func NewMat(rows, cols int) Mat {
	return Mat{Rows: rows, Cols: cols, Stride: cols, Data: make([]float32, rows*cols)}
}
