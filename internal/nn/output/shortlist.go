package output

import (
	"math"
	"math/bits"
	"sort"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/nn"
)

// Shortlist is the tokens whose logits are wanted for a row: panels of one head, or of a few.
type Shortlist struct {
	parts  []listPart
	tokens []int32
	count  int // of tokens, without NoToken
	extra  int // numbers beyond the logits
}

type listPart struct {
	head *OrderedHead
	runs []gemm.Run
}

// Reset empties the list.
func (s *Shortlist) Reset() {
	s.parts = s.parts[:0]
	s.tokens = s.tokens[:0]
	s.count = 0
	s.extra = 0
}

// Add appends panels [from, to) of h. Panels of one head must be added consecutively and in ascending order.
func (s *Shortlist) Add(h *OrderedHead, from, to int) {
	if from < to {
		s.add(h, from, to, len(s.tokens)/gemm.Panel)
		s.tokens = append(s.tokens, h.Tokens[from*gemm.Panel:to*gemm.Panel]...)
		for _, n := range h.filled[from:to] {
			s.count += n
		}
	}
}

// AddExtra appends the outputs of all rows of h, which are not logits. They follow the logits, so it is called last.
func (s *Shortlist) AddExtra(h *OrderedHead) {
	s.add(h, 0, h.Panels(), len(s.tokens)/gemm.Panel)
	s.extra = h.W.Out()
}

func (s *Shortlist) add(h *OrderedHead, from, to, at int) {
	n := len(s.parts)
	if n == 0 || s.parts[n-1].head != h {
		if n < cap(s.parts) {
			s.parts = s.parts[:n+1]
		} else {
			s.parts = append(s.parts, listPart{})
		}
		s.parts[n].head, s.parts[n].runs = h, s.parts[n].runs[:0]
		n++
	}
	p := &s.parts[n-1]
	if k := len(p.runs); k > 0 && p.runs[k-1].To == from {
		p.runs[k-1].To = to
	} else {
		p.runs = append(p.runs, gemm.Run{From: from, To: to, At: at})
	}
}

// Omit removes the token at a place from the list, if it is listed elsewhere too: its logit there is minus infinity.
func (s *Shortlist) Omit(at int) {
	if s.tokens[at] != NoToken {
		s.tokens[at] = NoToken
		s.count--
	}
}

// Tokens returns the tokens of the logits, in order, including NoToken.
func (s *Shortlist) Tokens() []int32 { return s.tokens }

// Len is the number of logits, and Width that of logits and extra numbers together.
func (s *Shortlist) Len() int   { return len(s.tokens) }
func (s *Shortlist) Width() int { return len(s.tokens) + s.extra }

// Find returns the place of a token's logit in the list, or -1 if it is not listed. If a token has
// several rows in a head, only the last is considered.
func (s *Shortlist) Find(token int32) int {
	for i := range s.parts {
		p := &s.parts[i]
		row := p.head.Row(token)
		if row < 0 {
			continue
		}
		panel := row / gemm.Panel
		at := sort.Search(len(p.runs), func(i int) bool { return p.runs[i].To > panel })
		if at < len(p.runs) && p.runs[at].From <= panel {
			// not omitted
			if place := (p.runs[at].At+panel-p.runs[at].From)*gemm.Panel + row%gemm.Panel; s.tokens[place] == token {
				return place
			}
		}
	}
	return -1
}

// Has reports whether a token is listed.
func (s *Shortlist) Has(token int32) bool { return s.Find(token) >= 0 }

// Count is the number of tokens listed.
func (s *Shortlist) Count() int { return s.count }

// In is the number of inputs of the list's heads, or 0 if it is empty.
func (s *Shortlist) In() int {
	if len(s.parts) == 0 {
		return 0
	}
	return s.parts[0].head.W.In()
}

// Lists computes logits of shortlists: products of several heads, each with bands of rows that want
// the same panels of it. Its memory is reused.
type Lists struct {
	intake   nn.Intake
	dst      nn.Mat
	products []listProduct
	tasks    []listTask
}

// Run computes, for each row i of the source, the logits of lists[i] and its extra numbers, and
// writes them to the start of row i of dst, which is as wide as the widest. They equal the head's
// own to the bit. No Recorder is notified.
func (j *Lists) Run(e *nn.Exec, src nn.Source, lists []*Shortlist, dst nn.Mat) {
	j.dst = dst
	j.intake.Enter(e, src, j.plan(lists, e.Threads()), nn.Mat{})
	e.Phase(len(j.tasks), j)
}

type listProduct struct {
	head  *OrderedHead
	bands []gemm.Band
	lists []*Shortlist // of each band
	want  []uint64     // one bit for each panel that any row wants
	count int          // of them
}

// listTask is panels [from, to) of a product.
type listTask struct{ product, from, to int }

// plan divides rows into bands, and their panels into tasks of equal numbers. It returns which types the tasks use.
func (j *Lists) plan(lists []*Shortlist, threads int) (uses [gemm.NumTypes]bool) {
	j.products, j.tasks = j.products[:0], j.tasks[:0]
	for from := 0; from < len(lists); {
		to := from + 1
		for to < len(lists) && lists[to] == lists[from] {
			to++
		}
		for i := range lists[from].parts {
			part := &lists[from].parts[i]
			p := j.product(part.head)
			p.bands, p.lists = append(p.bands, gemm.Band{From: from, To: to, Runs: part.runs}), append(p.lists, lists[from])
			uses[part.head.W.Type().Activations()] = true
		}
		from = to
	}
	panels := 0
	for i := range j.products {
		panels += j.products[i].merge()
	}
	const tasksPerWorker = 4
	size := max(1, panels/(threads*tasksPerWorker))
	for i := range j.products {
		j.split(i, size)
	}
	return uses
}

// product returns the product of a head.
func (j *Lists) product(h *OrderedHead) *listProduct {
	n := len(j.products)
	for i := range n {
		if j.products[i].head == h {
			return &j.products[i]
		}
	}
	if n < cap(j.products) {
		j.products = j.products[:n+1]
	} else {
		j.products = append(j.products, listProduct{})
	}
	p := &j.products[n]
	p.head = h
	p.bands = p.bands[:0]
	p.lists = p.lists[:0]
	return p
}

// merge marks the panels that any band wants, and counts them.
func (p *listProduct) merge() int {
	words := (p.head.Panels() + 63) / 64
	if cap(p.want) < words {
		p.want = make([]uint64, words)
	}
	p.want = p.want[:words]
	clear(p.want)
	for _, b := range p.bands {
		for _, r := range b.Runs {
			for at := r.From; at < r.To; at = at&^63 + 64 {
				p.want[at/64] |= ^uint64(0) << (at % 64) & (^uint64(0) >> (63 - min(r.To-1-at&^63, 63)))
			}
		}
	}
	p.count = 0
	for _, w := range p.want {
		p.count += bits.OnesCount64(w)
	}
	return p.count
}

// split makes tasks of about size panels from those that product i wants.
func (j *Lists) split(i, size int) {
	p := &j.products[i]
	n := max(1, p.count/size)
	from := 0
	seen := 0
	t := 1
	for word, w := range p.want {
		for ; w != 0; w &= w - 1 {
			seen++
			if seen == p.count*t/n {
				to := word*64 + bits.TrailingZeros64(w) + 1
				j.tasks = append(j.tasks, listTask{i, from, to})
				from, t = to, t+1
			}
		}
	}
}

func (j *Lists) Do(worker, t int) {
	task := &j.tasks[t]
	p := &j.products[task.product]
	p.head.W.MulBands(j.dst.Data, j.dst.Stride, j.intake.Input(worker, p.head.W.Type()), p.bands, task.from, task.to)
	for i := range p.bands {
		b := &p.bands[i]
		first := sort.Search(len(b.Runs), func(i int) bool { return b.Runs[i].To > task.from })
		for _, r := range b.Runs[first:] {
			if r.From >= task.to {
				break
			}
			r.At += max(task.from, r.From) - r.From
			r.From, r.To = max(task.from, r.From), min(task.to, r.To)
			p.head.finish(j.dst.Slice(b.From, b.To), r, p.lists[i].tokens)
		}
	}
}

var negInf = float32(math.Inf(-1))

// finish adds the bias, turns sums into logits, and gives places without a token their logit.
func (h *OrderedHead) finish(dst nn.Mat, r gemm.Run, tokens []int32) {
	if h.Bias != nil {
		for i := range dst.Rows {
			simd.Add(dst.Data[i*dst.Stride+r.At*gemm.Panel:][:(r.To-r.From)*gemm.Panel], h.Bias[r.From*gemm.Panel:r.To*gemm.Panel])
		}
	}
	if h.Scale != 0 || h.Cap != 0 {
		n := min(r.To*gemm.Panel, h.W.Out()) - r.From*gemm.Panel // a head of extra numbers may end anywhere
		for i := range dst.Rows {
			h.Linear.Finish(dst.Data[i*dst.Stride+r.At*gemm.Panel:][:n])
		}
	}
	// the rest are extra numbers
	for at := r.At * gemm.Panel; at < min((r.At+r.To-r.From)*gemm.Panel, len(tokens)); at++ {
		if tokens[at] == NoToken {
			for i := range dst.Rows {
				dst.Data[i*dst.Stride+at] = negInf
			}
		}
	}
}
