package nn

// Recurrent is a layer's replacement for attention, and what a cache keeps for it.
type Recurrent interface {
	Shape() *RecurrentShape
	Bytes() int // of the packed weights, except the block's Out

	// mix ends with the product out of the layer's results for src.
	mix(e *Exec, layer int, f *Forest, src Source, out Proj, m *BlockBuffers)
}

// Convolution is a depthwise causal convolution over a row and the rows before it on its path: the
// sum of Taps[i]·x, with x of the row len(Taps)−1−i before it. A cache keeps the inputs x of rows.
type Convolution struct {
	Taps [][]float32
	Bias []float32 // nil: none
}

// before is the number of earlier rows that a row sees.
func (c *Convolution) before() int { return len(c.Taps) - 1 }

// tail is the length of a state: the inputs of the rows before the page.
func (c *Convolution) tail() int { return c.before() * len(c.Taps[0]) }

// slotOf returns the slot of the row at a position that row r sees.
func (s *Segment) slotOf(f *Forest, r forestRow, position int) int {
	if ordered := s.Base + r.prefix; position >= ordered {
		return s.Base + int(f.rest[r.from+position-ordered])
	}
	return position
}

// convolveJob computes a convolution of the inputs x of the forest's rows, which it stores in the caches as
// pending rows, and hands each row's result to next. State is where the tail begins in a layer's state.
type convolveJob struct {
	conv  *Convolution
	layer int
	f     *Forest
	x, y  Mat
	state int
	next  interface{ rowDone(worker, i int) }
}

func (e *Exec) convolve(j convolveJob) {
	job := e.plan.convolves.next(&e.plan)
	*job = j
	e.perRow(j.x.Rows, len(j.conv.Taps)*j.x.Cols, job, false)
}

func (j *convolveJob) Do(worker, i int) {
	g := j.f.segmentOf(i)
	x, y := j.x.Row(i), j.y.Row(i)
	r := j.f.rows[i]
	copy(g.Cache.row(j.layer, g.slot(i)), x)
	if i == g.Row {
		j.makeTails(g.Cache)
	}
	clear(y)
	copy(y, j.conv.Bias)
	n := j.conv.before()
	for t, position := 0, g.end(r)-1-n; t < n; t, position = t+1, position+1 {
		if position >= 0 {
			multiplyAdd(y, j.conv.Taps[t], j.input(g, r, position))
		}
	}
	multiplyAdd(y, j.conv.Taps[n], x)
	if j.next != nil {
		j.next.rowDone(worker, i)
	}
}

// slot returns the slot of row i of the forest.
func (s *Segment) slot(i int) int { return s.Base + s.From + i - s.Row }

// input returns the input at a position before that of row r.
func (j *convolveJob) input(g *Segment, r forestRow, position int) []float32 {
	slot, first := g.slotOf(j.f, r, position), g.Cache.firstPage()*PageRows
	switch {
	case slot >= g.Base+g.From: // computed in this pass
		return j.x.Row(slot - g.Base - g.From + g.Row)
	case slot >= first:
		return g.Cache.row(j.layer, slot)[:j.x.Cols]
	}
	at := j.state + (j.conv.before()-(first-slot))*j.x.Cols
	return g.Cache.firstState(j.layer)[at : at+j.x.Cols]
}

// makeTails makes the tails of the states that the pass produces.
func (j *convolveJob) makeTails(c *Cache) {
	n, width := j.conv.before(), j.x.Cols
	for _, m := range c.states.making {
		tail := c.stateAt(j.layer, m.state)[j.state:]
		for i := range n {
			copy(tail[i*width:], c.row(j.layer, m.page*PageRows-n+i)[:width])
		}
	}
}

// multiplyAdd adds w·x to y, element by element.
func multiplyAdd(y, w, x []float32) {
	w, x = w[:len(y)], x[:len(y)]
	for i := range y {
		y[i] += float32(w[i] * x[i])
	}
}

// ShortConv is a layer of LFM2: the rows of In are B, C and x, and Out reads C·conv(B·x).
type ShortConv struct {
	In   Linear
	Conv Convolution
}

func (c *ShortConv) Shape() *RecurrentShape {
	return &RecurrentShape{Row: len(c.Conv.Taps[0]), State: c.Conv.tail()}
}

func (c *ShortConv) Bytes() int { return c.In.W.Bytes() }

func (c *ShortConv) mix(e *Exec, layer int, f *Forest, src Source, out Proj, m *BlockBuffers) {
	n, width := src.X.Rows, len(c.Conv.Taps[0])
	in, y := e.Mat(&m.in, n, 3*width), e.Mat(&m.mixed, n, width)
	e.Linear(src, Proj{Linear: &c.In, Dst: in})
	gates := e.plan.gates.next(&e.plan)
	*gates = gateJob{in.Columns(0, width), in.Columns(2*width, 3*width)}
	e.OwnRows(n, width, gates)
	after := e.plan.gates.next(&e.plan)
	*after = gateJob{in.Columns(width, 2*width), y}
	e.convolve(convolveJob{conv: &c.Conv, layer: layer, f: f, x: in.Columns(2*width, 3*width), y: y, next: after})
	e.Linear(Source{X: y}, out)
}

// gateJob multiplies rows of x by those of gate.
type gateJob struct{ gate, x Mat }

func (j *gateJob) Do(_, i int) {
	x, gate := j.x.Row(i), j.gate.Row(i)
	for k := range x {
		x[k] *= gate[k]
	}
}

func (j *gateJob) rowDone(worker, i int) { j.Do(worker, i) }
