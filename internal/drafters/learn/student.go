package learn

import (
	"errors"
	"fmt"
	"math"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
)

// Student is a second copy of a head's weights, which learns while the first one drafts. It computes
// on its own workers. Only one goroutine may use it at a time.
type Student struct {
	head   Head // over params
	first  Head // the original head
	kinds  kinds
	params *autograd.Params
	byName map[string]*autograd.Param
	slots  []*slot

	pool *par.Pool
	exec *nn.Exec
	tape *autograd.Tape
	list list
}

// slot is a parameter with the optimiser's state.
type slot struct {
	*autograd.Param
	m, v  []float32
	mean  []float32 // mean of the values after the steps so far, to draft with
	steps int
	last  bool
}

// Study says how a batch is learned.
type Study struct {
	Last bool // only the last part learns
	// learn only from rejected places; otherwise from all that the drafter looked at and whose next token is known
	Rejected bool
	Keep     float32 // weight of the divergence from the original head: KL(now ‖ first), SpecBlock §3.4
	Gamma    float64 // the k-th place below a root has the weight exp(−(k−1)/Gamma); 0: all have the same
	// drafts use the mean of the weights after each step, where the k-th before the last has the
	// weight Mean^k; 0: they use the last
	Mean float32
	autograd.AdamW
}

// clip is the largest norm of a gradient.
const clip = 1

// NewStudent makes a student of a head, with so many workers.
func NewStudent(h Head, threads int) (*Student, error) {
	s := &Student{first: h, kinds: kindsOf(h), params: autograd.NewParams(gemm.F32), byName: map[string]*autograd.Param{},
		pool: par.New(threads)}
	if err := s.begin(); err != nil {
		s.pool.Close()
		return nil, fmt.Errorf("a second copy of the head: %w", err)
	}
	return s, nil
}

// Close ends the student's workers.
func (s *Student) Close() { s.pool.Close() }

func (s *Student) begin() error {
	h := s.first
	var err error
	if s.head, err = h.Rebuild(trained{s.params, s.kinds}); err != nil {
		return err
	}
	for _, p := range s.params.All() {
		s.byName[p.Name] = p
		s.slots = append(s.slots, &slot{Param: p, m: make([]float32, len(p.Data)), v: make([]float32, len(p.Data)),
			mean: make([]float32, len(p.Data)), last: h.Last(p.Name)})
	}
	if err := s.fill(); err != nil {
		return err
	}
	s.exec = nn.NewExec(s.pool)
	s.tape = autograd.NewTape(s.exec, s.params)
	s.tape.Detach()
	s.pack()
	return nil
}

// fill sets the weights to the head's original ones.
func (s *Student) fill() error {
	if err := fill(s.byName, s.first); err != nil {
		return err
	}
	for _, p := range s.slots {
		copy(p.mean, p.Data)
	}
	return nil
}

func (s *Student) pack() { s.params.Pack(s.tape.Products()) }

// ErrDiverged is the error of a step whose gradient is not a finite number. The weights are
// unchanged.
var ErrDiverged = errors.New("the gradient is not a finite number")

// Learn takes a step of the optimiser on a batch.
func (s *Student) Learn(b *Batch, o Study) error {
	if b.Len() == 0 {
		return nil
	}
	s.params.ZeroGrad()
	if err := s.gradient(b, o); err != nil {
		return err
	}
	norm := 0.0
	for _, p := range s.slots {
		for _, g := range p.Grad {
			norm += float64(g) * float64(g)
		}
	}
	norm = math.Sqrt(norm)
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return ErrDiverged
	}
	shrink := float32(min(1, clip/max(norm, 1e-30)))
	for _, p := range s.slots {
		if o.Last && !p.last {
			continue
		}
		p.steps++
		o.Step(p.Param, p.m, p.v, p.steps, 1, shrink)
	}
	for _, p := range s.slots {
		for i, x := range p.Data {
			p.mean[i] = x + o.Mean*(p.mean[i]-x)
		}
	}
	s.pack()
	return nil
}

// gradient runs the batch under the tape: forward divergence from the target's distribution, and
// reverse divergence from the original head's, both over the tokens of a list.
func (s *Student) gradient(b *Batch, o Study) error {
	b.learns = true
	s.list.reset(s.first, b)
	if err := s.list.pack(s.tape); err != nil {
		return err
	}
	var kept autograd.Soft
	if o.Keep > 0 {
		b.tape = nil
		x, _ := s.first.Run(s.exec, b)
		norm, _, _ := s.first.Output()
		kept = autograd.Soft{Divergence: autograd.ReverseKL, Temperature: 1}
		kept.Reset(x.Rows, len(s.list.tokens))
		kept.Fill(s.exec, 0, nn.Source{X: x, Norm: norm}, &s.list.head)
	}
	s.tape.Reset()
	b.tape, b.last = s.tape, o.Last
	if !o.Last {
		s.tape.Attach()
	}
	x, rows := s.head.Run(s.exec, b)
	s.tape.Attach()
	defer s.tape.Detach()
	norm, _, _ := s.head.Output()
	src := nn.Source{X: x, Norm: norm}
	targets, weight := s.list.targets(b, rows, o)
	if weight == 0 {
		return nil
	}
	s.tape.CrossEntropy(src, &s.list.head, targets, 1/weight)
	if o.Keep > 0 {
		for i := range rows {
			kept.Row = append(kept.Row, int32(i))
		}
		targets.Teacher, targets.Soft = nil, &kept
		s.tape.CrossEntropy(src, &s.list.head, targets, o.Keep/weight)
	}
	s.tape.Backward()
	return nil
}

// Score returns, for every round of the batch, the number of tokens that it is expected to commit
// with a head, bonus token included. It grows with the probabilities that the head gives to the
// target's tokens, so it shows small changes that the acceptance of a few rounds would not. Two heads
// are compared on the same batch, so that most differences between rounds are the same for both.
func (s *Student) Score(h Head, b *Batch) ([]float64, error) {
	if b.Len() == 0 {
		return nil, nil
	}
	s.list.reset(s.first, b)
	if err := s.list.pack(s.tape); err != nil {
		return nil, err
	}
	b.tape, b.learns = nil, false
	x, rows := h.Run(s.exec, b)
	norm, _, _ := h.Output()
	score := s.list.lengths(s.exec, nn.Source{X: x, Norm: norm}, b, rows)
	for i := range score {
		score[i]++
	}
	return score, nil
}

// Packed returns a copy of the current head to draft with: the means.
func (s *Student) Packed() (Head, error) {
	swap := func() {
		for _, p := range s.slots {
			p.Data, p.mean = p.mean, p.Data
		}
	}
	swap()
	defer swap()
	return s.first.Rebuild(packed{s.byName, s.kinds})
}

// State is everything that a student continues from: values, their means, and the optimiser's state for each.
type State struct {
	Steps   []int // of each parameter, in order
	Weights [][]float32
	Means   [][]float32
	M, V    [][]float32
}

// largest is the largest weight that matrices of every type can hold: that of F16.
const largest = 65504

// Sound reports whether a head can be made of the state and trained on: all numbers are finite, and
// no weight is too large for a matrix of any type.
func (t *State) Sound() bool {
	within := func(lists [][]float32, most float32) bool {
		for _, v := range lists {
			for _, x := range v {
				if !(x >= -most && x <= most) {
					return false
				}
			}
		}
		return true
	}
	return within(t.Weights, largest) && within(t.Means, largest) &&
		within(t.M, math.MaxFloat32) && within(t.V, math.MaxFloat32)
}

// State returns the state in the student's memory, without a copy: Learn, Load and Reset change it.
func (s *Student) State() (t State) {
	for _, p := range s.slots {
		t.Steps = append(t.Steps, p.steps)
		t.Weights = append(t.Weights, p.Data)
		t.Means = append(t.Means, p.mean)
		t.M, t.V = append(t.M, p.m), append(t.V, p.v)
	}
	return t
}

// Save copies the state into the memory of t, which is no longer needed.
func (s *Student) Save(t State) State {
	if len(t.Weights) == 0 {
		n := len(s.slots)
		t = State{make([]int, n), make([][]float32, n), make([][]float32, n), make([][]float32, n), make([][]float32, n)}
	}
	for i, p := range s.slots {
		t.Steps[i] = p.steps
		t.Weights[i], t.Means[i] = append(t.Weights[i][:0], p.Data...), append(t.Means[i][:0], p.mean...)
		t.M[i], t.V[i] = append(t.M[i][:0], p.m...), append(t.V[i][:0], p.v...)
	}
	return t
}

// Load goes back to a state from Save.
func (s *Student) Load(t State) {
	for i, p := range s.slots {
		p.steps = t.Steps[i]
		copy(p.Data, t.Weights[i])
		copy(p.mean, t.Means[i])
		copy(p.m, t.M[i])
		copy(p.v, t.V[i])
	}
	s.pack()
}

// Reset goes back to the original head.
func (s *Student) Reset() error {
	for _, p := range s.slots {
		p.steps = 0
		clear(p.m)
		clear(p.v)
	}
	if err := s.fill(); err != nil {
		return err
	}
	s.pack()
	return nil
}

// Params lists the parameters, in the order of State.
func (s *Student) Params() []*autograd.Param { return s.params.All() }
