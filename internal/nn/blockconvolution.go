package nn

// BlockConvolution is a causal convolution over the rows of a block, which DFlash 2 has before and
// after each half of a layer. Its weights are those of Base plus the weights that each row adds,
// one for every Group neighbouring elements of a row.
type BlockConvolution struct {
	Base        []float32 // 2 × Taps × width: the weights before a half of a layer, then those after it
	Taps, Group int
}

// At returns where the weights of a tap begin in Base and in a row's added weights, for rows of the given width.
func (c *BlockConvolution) At(after, tap, width int) (base, added int) {
	at := after*c.Taps + tap
	return at * width, at * width / c.Group
}

// ConvolveBlock writes the convolved rows of x to dst, with the weights before a half of a layer
// (after is 0) or after it (1). added is the weights that each row adds: 2 × Taps × width/Group.
// before is, for each row, how many rows of its block come before it, the last of them immediately
// before. Rows before a block are zeros.
func (e *Exec) ConvolveBlock(c *BlockConvolution, after int, before []int32, x, added, dst Mat) {
	if e.records != nil {
		e.records.ConvolveBlock(c, after, before, x, added, dst)
	}
	j := e.plan.blockConvolutions.next(&e.plan)
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
