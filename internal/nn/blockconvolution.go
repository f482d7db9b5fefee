package nn

// BlockConvolution is a causal convolution over the rows of a block, as DFlash 2 has before and
// after each half of a layer. Its weights are those of Base, and what each row adds to them, one
// number for Group neighbouring numbers of a row.
type BlockConvolution struct {
	Base        []float32 // 2 × Taps × width: those before a half of a layer, and those after it
	Taps, Group int
}

// At is where the weights of a tap begin, in Base and in what a row adds, of rows so wide.
func (c *BlockConvolution) At(after, tap, width int) (base, added int) {
	at := after*c.Taps + tap
	return at * width, at * width / c.Group
}

// ConvolveBlock leaves rows of x, convolved, in dst; with the weights before a half of a layer
// (after is 0), or after it (1). added is what each row adds to the weights: 2 × Taps ×
// width/Group. before is how many rows of its block are before each row, the last of them just
// before it. Rows before a block are zeros.
func (e *Exec) ConvolveBlock(c *BlockConvolution, after int, before []int32, x, added, dst Mat) {
	if e.records != nil {
		e.records.ConvolveBlock(c, after, before, x, added, dst)
	}
	j := e.plan.blockConvolutions.next()
	*j = blockConvolveJob{c, after, before, x, added, dst}
	e.PerRow(x.Rows, c.Taps*x.Cols, j)
}

type blockConvolveJob struct {
	c             *BlockConvolution
	after         int
	before        []int32
	x, added, dst Mat
}

func (j *blockConvolveJob) Do(_, i int) {
	row := j.dst.Row(i)
	clear(row)
	for tap := range min(j.c.Taps, int(j.before[i])+1) {
		from, of := j.c.At(j.after, tap, len(row))
		base, added := j.c.Base[from:][:len(row)], j.added.Row(i)[of:]
		for k, v := range j.x.Row(i - tap) {
			row[k] += (base[k] + added[k/j.c.Group]) * v
		}
	}
}
