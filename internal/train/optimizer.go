package train

import (
	"math"
	"slices"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
)

// Optimizer is AdamW (Loshchilov and Hutter, 2019) for embeddings, other tables of tokens and
// vectors and, if Muon is set, Muon (Jordan et al., 2024) for the other matrices: the momentum of
// the gradient is made orthogonal, so that every direction of a matrix learns at the same pace.
// Weight decay is decoupled and does not apply to norms and biases.
type Optimizer struct {
	autograd.AdamW // its Rate is the peak of the schedule

	Muon         bool
	MuonRate     float32
	MuonMomentum float32
	MuonDecay    float32
}

// DefaultOptimizer returns the optimiser of the recipes.
func DefaultOptimizer() Optimizer {
	return Optimizer{AdamW: autograd.AdamW{Rate: 8e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-10, Decay: 0.05}, Muon: true,
		MuonRate: 0.02, MuonMomentum: 0.95, MuonDecay: 0.05}
}

// optimizer is an Optimizer with its state: m and v of every parameter; Muon has no v.
type optimizer struct {
	Optimizer
	pool  *par.Pool
	slots []*slot
	tasks []optTask
	parts []float64 // of the gradient's squared length
	ortho []*orthogonalizer
}

type slot struct {
	p    *autograd.Param
	muon bool
	m, v []float32
}

// optTask is elements [from, to) of a parameter; with Muon, a whole matrix.
type optTask struct {
	*slot
	from, to int
}

// optChunk is the number of elements in a task.
const optChunk = 1 << 15

func newOptimizer(o Optimizer, pool *par.Pool, params []*autograd.Param) *optimizer {
	opt := &optimizer{Optimizer: o, pool: pool, ortho: make([]*orthogonalizer, pool.Threads())}
	for _, p := range params {
		s := &slot{p: p, m: make([]float32, len(p.Data))}
		s.muon = o.Muon && !p.Vector && !hasAdamW(p.Name)
		opt.slots = append(opt.slots, s)
		if s.muon {
			opt.tasks = append(opt.tasks, optTask{s, 0, len(s.m)})
			continue
		}
		s.v = make([]float32, len(p.Data))
		for from := 0; from < len(s.m); from += optChunk {
			opt.tasks = append(opt.tasks, optTask{s, from, min(from+optChunk, len(s.m))})
		}
	}
	// The longest tasks come first, so that none begins late.
	cost := func(t optTask) int {
		if t.muon {
			return 100 * (t.to - t.from)
		}
		return t.to - t.from
	}
	slices.SortStableFunc(opt.tasks, func(a, b optTask) int { return cost(b) - cost(a) })
	opt.parts = make([]float64, len(opt.tasks))
	return opt
}

// norm returns the length of the whole gradient, summed in a fixed order.
func (o *optimizer) norm() float64 {
	o.pool.Run(len(o.tasks), Tasks(func(_, i int) {
		t := &o.tasks[i]
		var sum float64
		for _, v := range t.p.Grad[t.from:t.to] {
			sum += float64(v) * float64(v)
		}
		o.parts[i] = sum
	}))
	total := 0.0
	for _, v := range o.parts {
		total += v
	}
	return math.Sqrt(total)
}

// step changes the parameters by their gradients times clip. step counts from 1; rate is the
// schedule's, from 0 to 1.
func (o *optimizer) step(step int, rate, clip float32) {
	o.pool.Run(len(o.tasks), Tasks(func(worker, i int) {
		if t := &o.tasks[i]; t.muon {
			o.muon(t, worker, rate, clip)
		} else {
			o.Part(t.p, t.m, t.v, t.from, t.to, step, rate, clip)
		}
	}))
}

// muon applies Nesterov momentum and makes the step orthogonal. The factor √max(1, out/in) gives
// the steps of tall matrices the same effect on their outputs.
func (o *optimizer) muon(t *optTask, worker int, rate, clip float32) {
	p := t.p
	m := t.m
	beta := o.MuonMomentum
	u := nn.NewMat(p.Rows, p.Cols)
	for i, x := range p.Grad {
		x *= clip
		m[i] = beta*m[i] + (1-beta)*x
		u.Data[i] = beta*m[i] + (1-beta)*x
	}
	if o.ortho[worker] == nil {
		o.ortho[worker] = newOrthogonalizer()
	}
	u = o.ortho[worker].run(u)
	lr := o.MuonRate * rate
	keep := 1 - lr*o.MuonDecay
	step := lr * float32(math.Sqrt(max(1, float64(p.Rows)/float64(p.Cols))))
	for i, x := range u.Data {
		p.Data[i] = p.Data[i]*keep - step*x
	}
}
