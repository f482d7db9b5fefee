package nn

import (
	"sync/atomic"

	"github.com/grovellm/grove/internal/kernels/gemm"
)

// The products of a large network are divided among workers by their weights: each worker reads its part of
// the weights, once, for all rows. The others fetch its results from its cache before they go on, and all
// wait for the last worker, several times a layer. In a small network that takes most of the time, so the
// rows are divided instead: a worker takes its own rows through everything up to the next attention, the
// only operation that sees other rows. Each worker then reads all the weights, but from a cache.

// strip is a phase in which each worker takes some of the rows through several operations. Within a
// plan, a buffer has one shape, so that rows of one operation are separate from other rows of the
// next.
type strip struct {
	n, parts int
	ops      []stripOp
	product  *productJob // the last
}

// stripOp is an operation whose results for a row depend only on that row and on the results of earlier phases.
type stripOp interface{ span(worker, from, to int) }

func (s *strip) Do(worker, part int) {
	from, to := s.n*part/s.parts, s.n*(part+1)/s.parts
	for _, op := range s.ops {
		op.span(worker, from, to)
	}
}

const (
	stripMost     = 8 << 20   // bytes of weights
	stripRowBytes = 384 << 10 // that arrive while a worker multiplies one of its rows (SmolLM2, two cores of a Zen 5)
)

var noStrips atomic.Bool

// UseStrips sets whether rows may be divided at all, until restore is called, so that tests run
// both ways, which give the same bits.
func UseStrips(on bool) (restore func()) {
	old := noStrips.Swap(!on)
	return func() { noStrips.Store(old) }
}

// strips reports whether the rows of a layer with the given bytes of weights are divided.
func (e *Exec) strips(rows, bytes int) bool {
	threads := e.Threads()
	if e.records != nil || e.plan.held == 0 || noStrips.Load() || threads == 1 || rows < threads {
		return false
	}
	return bytes <= min(stripMost, rows/threads*stripRowBytes)
}

// strip returns the plan's last phase, if that is a strip of n rows, or else a new one, which takes
// in the operations planned row by row before it.
func (e *Exec) strip(n int) *strip {
	p := &e.plan
	if s := p.openStrip(n); s != nil {
		return s
	}
	s, at := p.strips.next(p), len(p.phases)
	s.n = n
	s.parts = min(n, e.Threads())
	s.ops = s.ops[:0]
	s.product = nil
	for ; at > 0; at-- {
		if b, ok := p.phases[at-1].Job.(*blockJob); !ok || !b.own || b.n != n {
			break
		}
	}
	for _, f := range p.phases[at:] {
		s.ops = append(s.ops, f.Job.(*blockJob))
	}
	p.phases = p.phases[:at]
	p.phase(s.parts, s)
	p.open = s
	return s
}

// openStrip returns the last phase, if it is a strip of n rows that can take more operations.
func (p *plan) openStrip(n int) *strip {
	if s := p.open; s != nil && s.n == n && p.phases[len(p.phases)-1].Job == s {
		return s
	}
	return nil
}

func (b *blockJob) span(worker, from, to int) {
	for i := from; i < to; i++ {
		b.row.Do(worker, i)
	}
}

func (j *storeJob) span(_, from, to int) {
	for u := range j.units() * j.a.KVHeads {
		j.unit(u, from, to)
	}
}

func (j *attendJob) span(worker, from, to int) {
	s := &j.e.scratch[worker]
	s.pieces = s.pieces[:0]
	s.blocks = j.cut(s.blocks[:0], &s.pieces, from, to, j.block)
	for _, b := range s.blocks {
		for head := range j.a.KVHeads {
			t := j.task(worker, head, b)
			t.attend(s.pieces[b.lo:b.hi])
		}
	}
}

// productJob is the products of a source in a strip.
type productJob struct {
	e     *Exec
	src   Source
	projs []Proj
	uses  [inputTypes]bool
	then  gemm.Place // what the strip multiplies next
}

// product adds the products of a source to a strip.
func (e *Exec) product(s *strip, src Source, projs ...Proj) {
	j := e.plan.products.next(&e.plan)
	*j = productJob{e: e, src: src, projs: append(j.projs[:0], projs...)}
	width := 0
	for _, p := range projs {
		j.uses[p.Linear.W.Type().Activations()] = true
		width = max(width, p.Linear.W.Panels()*gemm.Panel)
	}
	if s.product != nil {
		s.product.then.M = projs[0].Linear.W
	}
	s.product = j
	e.grow(scratchSizes{row: src.Cols(), sums: (s.n + s.parts - 1) / s.parts * width})
	s.ops = append(s.ops, j)
}

func (j *productJob) span(worker, from, to int) {
	s, cols := &j.e.scratch[worker], j.src.Cols()
	s.inputs.reset(&j.uses, to-from, cols)
	for i := from; i < to; i++ {
		s.inputs.set(&j.uses, &j.src, i-from, j.src.Row(i, s.row[:cols]))
	}
	for i, p := range j.projs {
		w := p.Linear.W
		a := gemm.Part{X: &s.inputs[w.Type().Activations()], To: to - from, P1: w.Panels(), Fetched: s.next, Next: j.then,
			Scratch: &s.products}
		if i+1 < len(j.projs) {
			a.Next.M = j.projs[i+1].Linear.W
		}
		s.next = a.Next
		p.Dst, p.To = p.Dst.Slice(from, to), p.To.Slice(from, to)
		p.run(&a, true, s.sums)
	}
}
