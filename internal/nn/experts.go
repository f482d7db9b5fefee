package nn

import (
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/simd"
)

// Experts is the feed-forward half of a block whose router chooses a few MLPs for each row. A row's
// result is the sum of its experts' results, each multiplied by its weight, in the router's order
// of preference. It does not depend on other rows.
type Experts struct {
	Router Linear // experts × hidden
	MLPs   []MLP  // the experts, all of one shape
	Used   int    // experts per row
	Rule   Rule
	Scale  float32 // of the sum; 0: 1
	Early  bool    // the router reads the block's input, before attention and without a norm (SmallThinker)

	// The experts read Narrow's results of the router's input, and their sum goes through Widen
	// (Nemotron 3); nil: neither.
	Narrow, Widen *Linear

	// Where there is an MLP alongside the experts, whose results are added to theirs (Gemma 4), these
	// norms may differ; nil: the router and the experts read the MLP's input, and results have no norm.
	RouterNorm, Norm *Norm // of the inputs of the router and of the experts
	Post, MLPPost    *Norm // of the experts' sum, and of the MLP's results

	MLPGate *Linear // its σ multiplies the MLP's results; nil: 1
}

// Rule defines how a router's scores become experts and weights.
type Rule struct {
	All     bool // weights are a softmax over all experts (OLMoE), else over the row's own
	Sigmoid bool // weights are σ of the scores instead of a softmax
	Norm    bool // weights are divided by their sum
	Inputs  bool // weights multiply the experts' inputs instead of their results (Llama 4)

	// Mixer, if it is not 0, makes an expert's weight a softmax of its own: over the experts that are not chosen before it
	// and whose scores are at most 2·Mixer of the larger magnitude below its score (SparseMixer, arXiv 2409.12136).
	Mixer float32

	Bias  []float32 // added to the weights only when choosing experts; nil: none
	Scale float32   // multiplies weights; 0: 1
	Each  []float32 // multiplies each expert's weight; nil: none

	// Groups of neighbouring experts, of which a row uses only Chosen, those with the largest sum
	// of their two best experts; 0: none.
	Groups, Chosen int
}

// Bytes is the size of the packed weights.
func (x *Experts) Bytes() int {
	size := x.Router.W.Bytes()
	for i := range x.MLPs {
		size += x.MLPs[i].Bytes()
	}
	if x.Narrow != nil {
		size += x.Narrow.W.Bytes() + x.Widen.W.Bytes()
	}
	return size
}

// experts leaves the sum of the chosen experts' results for the rows of x in out.Dst, or adds it to
// out.To.
func (e *Exec) experts(b *Block, x Mat, out Proj, m *BlockBuffers) {
	if e.records != nil {
		panic("nn: a layer with experts has no gradient")
	}
	h := b.Experts
	r := &m.routing
	norm, routerNorm := b.MLPNorm.orNil(), b.MLPNorm.orNil()
	if h.Norm != nil {
		norm, routerNorm = h.Norm, h.RouterNorm
	}
	scores := h.scores(e, x.Rows, m)
	router := h.route(scores)
	switch src := (Source{X: x, Norm: routerNorm}); {
	case h.Early: // the scores are there
	case h.MLPGate == nil:
		e.Linear(src, router)
	default:
		e.Linear(src, router, Proj{Linear: h.MLPGate, Dst: e.Mat(&m.mlpGate, x.Rows, 1)})
	}
	r.reset(h, scores)
	e.OwnRows(scores.Rows, scores.Cols, (*chooseJob)(r))
	e.flush() // the next phases depend on the choice of experts
	r.group()
	e.expertsRead += len(r.groups)

	src, sum := Source{X: x, Norm: norm}, out
	if h.Narrow != nil {
		narrow, width := e.Mat(&m.narrow, x.Rows, h.Narrow.W.Out()), h.MLPs[0].Down.W.Out()
		e.Linear(src, Proj{Linear: h.Narrow, Dst: narrow})
		src, sum = Source{X: narrow}, Proj{Dst: e.Mat(&m.narrowSum, x.Rows, width)}
	}
	src.Copies = r.place
	if h.Rule.Inputs {
		src.Factors = r.weights
	}
	pairs, inner := len(r.place), h.MLPs[0].Up.W.Out()
	up, results := e.Mat(&m.expertUp, pairs, inner), e.Mat(&m.results, pairs, sum.Dst.Cols)
	made := Source{X: up, Act: h.MLPs[0].act(), Cut: h.MLPs[0].Cut}
	projs := [2]expertProj{1: {func(m *MLP) *Linear { return &m.Up }, up}}
	first := 1
	if h.MLPs[0].Gate != nil {
		gate := e.Mat(&m.expertGate, pairs, inner)
		made = Source{X: gate, Act: made.Act, Cut: made.Cut, Up: up}
		projs[0] = expertProj{func(m *MLP) *Linear { return m.Gate }, gate}
		first = 0
	}
	e.expertProducts(r, src, projs[first:]...)
	e.expertProducts(r, made, expertProj{func(m *MLP) *Linear { return &m.Down }, results})
	c := e.plan.mixes.next(&e.plan)
	*c = mixJob{r, results, sum}
	e.OwnRows(x.Rows, h.Used*sum.Dst.Cols, c)
	if h.Widen != nil {
		out.Linear = h.Widen
		e.Linear(Source{X: sum.Dst}, out)
	}
}

// scores are the router's, with the rule's room.
func (h *Experts) scores(e *Exec, rows int, m *BlockBuffers) Mat {
	return e.Mat(&m.scores, rows, h.Rule.room(len(h.MLPs)))
}

// route is the router's product.
func (h *Experts) route(scores Mat) Proj {
	return Proj{Linear: &h.Router, Dst: scores.Columns(0, len(h.MLPs))}
}

// both is the second half of a layer with an MLP alongside its experts.
func (e *Exec) both(b *Block, x Mat, m *BlockBuffers) {
	sum := e.Mat(&m.out, x.Rows, x.Cols)
	e.sum(b, x, sum, m)
	if b.MLPPost == nil {
		e.Add(x, sum)
		return
	}
	e.addPost(x, sum, b.MLPPost)
}

// sum leaves the sum of an MLP's results and of the experts alongside it in sum.
func (e *Exec) sum(b *Block, x, sum Mat, m *BlockBuffers) {
	down := e.Mat(&m.down, x.Rows, x.Cols)
	e.mlp(b, x, Proj{Linear: &b.MLP.Down, Dst: down}, m)
	e.experts(b, x, Proj{Dst: sum}, m)
	if b.Experts.MLPGate != nil {
		gate := e.plan.rowGates.next(&e.plan)
		*gate = rowGateJob{e.Mat(&m.mlpGate, x.Rows, 1), down}
		e.OwnRows(x.Rows, x.Cols, gate)
	}
	if h := b.Experts; h.Post != nil {
		e.Normalise(h.MLPPost, down, down)
		e.Normalise(h.Post, sum, sum)
	}
	e.Add(sum, down)
}

// ExpertsRead is how many experts the passes so far have read, counted per layer and expert.
func (e *Exec) ExpertsRead() int { return e.expertsRead }

// flush runs everything planned so far, even between Hold and Release.
func (e *Exec) flush() {
	held := e.plan.held
	e.plan.held = 0
	e.run()
	e.plan.held = held
}

// expertProj is one product of each expert, of its rows of the source into the same rows of dst.
type expertProj struct {
	of  func(*MLP) *Linear
	dst Mat
}

// expertProducts plans products of the pairs' rows with the experts' matrices. Each matrix is read once.
func (e *Exec) expertProducts(r *routing, src Source, projs ...expertProj) {
	j := e.plan.experts.next(&e.plan)
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

// expertJob is the products of one intake with the experts' matrices. A task is some panels of one matrix.
type expertJob struct {
	intake Intake
	units  []expertUnit
}

// expertUnit is panels [p0, p1) of a product with rows [from, to).
type expertUnit struct {
	linear           *Linear
	dst              Mat
	from, to, p0, p1 int
}

func (j *expertJob) Do(worker, t int) {
	s, u := &j.intake.e.scratch[worker], &j.units[t]
	w := u.linear.W
	a := gemm.Part{X: j.intake.Input(worker, w.Type()), From: u.from, To: u.to, P0: u.p0, P1: u.p1, Fetched: s.next,
		Scratch: &s.products}
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
		weight := r.weights[t]
		if r.of.Rule.Inputs {
			weight = 1
		}
		simd.Axpy(sum, weight, j.results.Row(int(r.place[t])))
	}
	if r.of.Scale != 0 {
		simd.Scale(sum, r.of.Scale)
	}
	if j.out.To.Data != nil {
		simd.Add(j.out.To.Row(i), sum)
	}
}
