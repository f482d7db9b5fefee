package nn

import (
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/simd"
)

// Experts is the feed-forward half of a block whose router chooses a few MLPs for each row. A row's
// result is the sum of its experts' results, each multiplied by its weight, in the router's order of
// preference. It does not depend on other rows.
type Experts struct {
	Router Linear // experts × hidden
	MLPs   []MLP  // the experts, all of one shape
	Used   int    // experts of a row
	All    bool   // weights are a softmax over all experts (OLMoE), else over those of the row
	Scale  float32
}

// Bytes is the size of the packed weights.
func (x *Experts) Bytes() int {
	size := x.Router.W.Bytes()
	for i := range x.MLPs {
		size += x.MLPs[i].Bytes()
	}
	return size
}

// experts ends in out.Dst, or in what is added to out.To, the sum of the chosen experts' results for
// the rows of x.
func (e *Exec) experts(b *Block, x Mat, out Proj, m *BlockBuffers) {
	if e.records != nil {
		panic("nn: a layer with experts has no gradient")
	}
	h := b.Experts
	r := &m.routing
	norm := b.MLPNorm.orNil()
	scores := e.Mat(&m.scores, x.Rows, len(h.MLPs))
	e.Linear(Source{X: x, Norm: norm}, Proj{Linear: &h.Router, Dst: scores})
	r.reset(h, scores)
	e.OwnRows(scores.Rows, scores.Cols, (*chooseJob)(r))
	e.flush() // the next phases depend on the choice
	r.group()
	e.expertsRead += len(r.groups)

	pairs, width := len(r.place), h.MLPs[0].Up.W.Out()
	gate, up := e.Mat(&m.gate, pairs, width), e.Mat(&m.up, pairs, width)
	results := e.Mat(&m.results, pairs, x.Cols)
	e.expertProducts(r, Source{X: x, Norm: norm, Copies: r.place},
		expertProj{func(m *MLP) *Linear { return m.Gate }, gate}, expertProj{func(m *MLP) *Linear { return &m.Up }, up})
	e.expertProducts(r, Source{X: gate, Act: h.MLPs[0].gated(), Up: up},
		expertProj{func(m *MLP) *Linear { return &m.Down }, results})
	c := e.plan.mixes.next()
	*c = mixJob{r, results, out}
	e.OwnRows(x.Rows, h.Used*x.Cols, c)
}

// ExpertsRead is how many experts the passes so far have read, one for each layer and expert.
func (e *Exec) ExpertsRead() int { return e.expertsRead }

// flush does what is planned so far, even between Hold and Release.
func (e *Exec) flush() {
	held := e.plan.held
	e.plan.held = 0
	e.run()
	e.plan.held = held
}

// routing says which experts each row of a pass takes. A row and one of its experts are a pair;
// pairs lie by expert, and rows in order within each.
// The layers of a plan share it: they take equally many experts for a row.
type routing struct {
	of      *Experts
	scores  Mat       // rows × experts
	chosen  []int32   // rows × Used, the best first
	weights []float32 // of those
	place   []int32   // of those, the number of the pair
	groups  []expertGroup
	starts  []int32
}

// expertGroup is the pairs [from, to) of an expert.
type expertGroup struct{ expert, from, to int }

func (r *routing) reset(of *Experts, scores Mat) {
	n := scores.Rows * of.Used
	r.of, r.scores = of, scores
	r.chosen, r.weights = grow(r.chosen, n), grow(r.weights, n)
	r.place, r.starts = grow(r.place, n), grow(r.starts, len(of.MLPs)+1)
}

// chooseJob chooses the experts of a row and their weights.
type chooseJob routing

func (r *chooseJob) Do(_, i int) {
	k := r.of.Used
	scores := r.scores.Row(i)
	chosen := r.chosen[i*k : (i+1)*k]
	weights := r.weights[i*k : (i+1)*k]
	simd.TopK(scores, chosen, weights)
	if !r.of.All {
		simd.Softmax(weights, 1)
		return
	}
	simd.Softmax(scores, 1)
	for t, expert := range chosen {
		weights[t] = scores[expert]
	}
}

// group sorts the pairs by expert.
func (r *routing) group() {
	clear(r.starts)
	for _, expert := range r.chosen {
		r.starts[expert+1]++
	}
	r.groups = r.groups[:0]
	for expert := range r.of.MLPs {
		from, n := int(r.starts[expert]), int(r.starts[expert+1])
		if n > 0 {
			r.groups = append(r.groups, expertGroup{expert, from, from + n})
		}
		r.starts[expert+1] += int32(from)
	}
	for i, expert := range r.chosen {
		r.place[i] = r.starts[expert]
		r.starts[expert]++
	}
}

// expertProj is a product of each expert, by its rows of the source into the same rows of dst.
type expertProj struct {
	of  func(*MLP) *Linear
	dst Mat
}

// expertProducts plans products of the pairs' rows by the experts' matrices. Each matrix is read once.
func (e *Exec) expertProducts(r *routing, src Source, projs ...expertProj) {
	j := e.plan.experts.next()
	j.units = j.units[:0]
	var uses [inputTypes]bool
	panels, size := 0, 0
	for _, g := range r.groups {
		for _, p := range projs {
			w := p.of(&r.of.MLPs[g.expert]).W
			uses[w.Type().Activations()] = true
			panels += w.Panels()
			size += w.Bytes()
		}
	}
	chunk := taskPanels(panels, size, len(r.place)/len(r.groups), e.Threads())
	for _, g := range r.groups {
		for _, p := range projs {
			l := p.of(&r.of.MLPs[g.expert])
			for at := 0; at < l.W.Panels(); at += chunk {
				j.units = append(j.units, expertUnit{l, p.dst, g.from, g.to, at, min(at+chunk, l.W.Panels())})
			}
		}
	}
	j.intake.Enter(e, src, uses, Mat{})
	e.plan.phase(len(j.units), j)
}

// expertJob is the products of one intake by experts' matrices. A task is some panels of one.
type expertJob struct {
	intake Intake
	units  []expertUnit
}

// expertUnit is panels [p0, p1) of a product by rows [from, to).
type expertUnit struct {
	linear           *Linear
	dst              Mat
	from, to, p0, p1 int
}

func (j *expertJob) Do(worker, t int) {
	s, u := &j.intake.e.scratch[worker], &j.units[t]
	w := u.linear.W
	a := gemm.Part{X: j.intake.Input(worker, w.Type()), From: u.from, To: u.to, P0: u.p0, P1: u.p1, Told: s.next, Scratch: &s.products}
	if t+1 < len(j.units) {
		a.Next = gemm.Place{M: j.units[t+1].linear.W, Panel: j.units[t+1].p0}
	}
	s.next = a.Next
	u.linear.part(&a, u.dst.Columns(u.p0*gemm.Panel, min(u.p1*gemm.Panel, w.Out())).Slice(u.from, u.to))
}

// mixJob adds up the experts' results for a row.
type mixJob struct {
	r       *routing
	results Mat // of the pairs
	out     Proj
}

func (j *mixJob) Do(_, i int) {
	r, sum := j.r, j.out.Dst.Row(i)
	clear(sum)
	for t := i * r.of.Used; t < (i+1)*r.of.Used; t++ {
		simd.Axpy(sum, r.weights[t], j.results.Row(int(r.place[t])))
	}
	if r.of.Scale != 0 {
		simd.Scale(sum, r.of.Scale)
	}
	if j.out.To.Data != nil {
		simd.Add(j.out.To.Row(i), sum)
	}
}
