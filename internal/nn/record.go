package nn

// Recorder is notified of each operation of an Exec before it runs, so that a gradient can be taken
// back through it: package internal/autograd has one. While an Exec has a Recorder, operations run
// one by one and their results are kept apart; they are the same to the bit.
type Recorder interface {
	// Mat returns memory for results that nothing overwrites.
	Mat(rows, cols int) Mat

	// Linear is called for products. The rows of the source are kept, as they enter the products,
	// in the matrix that it returns, unless that has no data. Additions to To are reported by Add.
	Linear(src Source, projs []Proj) (kept Mat)

	// Embed may look up the rows itself; it reports whether it did.
	Embed(t Table, tokens []int32, dst Mat) bool

	Add(x, y Mat, act Activation) // of x += act(y); act is None or SiLU
	Normalise(norm *Norm, x, dst Mat)
	Gather(src Mat, rows []int32, dst Mat)
	Cell(gates, before, h, c Mat) // of an LSTM
	Attend(a *Attention, layer int, f *Forest, qkv, out Mat)
	Keys(a *Attention, layer int, f *Forest, kv Mat)
	ConvolveBlock(c *BlockConvolution, after int, before []int32, x, added, dst Mat)
}

// Record makes r receive the operations of e from now on; nil ends this.
func (e *Exec) Record(r Recorder) { e.records = r }

// Mat returns a matrix for the output of an operation: over the buffer or, if a gradient may need
// what the buffer held before, in memory of the Recorder.
func (e *Exec) Mat(b *Buffer, rows, cols int) Mat {
	if e.records != nil {
		return e.records.Mat(rows, cols)
	}
	return b.Mat(rows, cols)
}
