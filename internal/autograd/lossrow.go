package autograd

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/nn"
)

// Divergence is a measure of how far a row's distribution p is from the teacher's q.
type Divergence uint8

const (
	ForwardKL      Divergence = iota // KL(q ‖ p): p covers everything likely under q
	ReverseKL                        // KL(p ‖ q): p avoids what is unlikely under q
	TotalVariation                   // ½ Σ|p − q|: how often a draft from p is rejected by q
)

// Soft is distributions to learn from. Several rows may share one: rows of different blocks that
// predict the same place in a text, whose distribution is then computed once.
type Soft struct {
	Divergence Divergence
	// of both distributions; the divergence is multiplied by Temperature², so that its gradient stays as large
	Temperature float32
	Row         []int32 // for each row of the loss, the number of its distribution

	dist nn.Mat    // probabilities; their logarithms with ReverseKL
	self []float64 // ForwardKL: Σ q·log q
}

// plainSoft is for distributions that are passed along with their rows.
var plainSoft = Soft{Temperature: 1}

// Reset makes room for the given number of distributions over a vocabulary.
func (s *Soft) Reset(rows, vocab int) {
	if n := rows * vocab; cap(s.dist.Data) < n {
		s.dist.Data = make([]float32, n)
	}
	s.dist = nn.Mat{Rows: rows, Cols: vocab, Stride: vocab, Data: s.dist.Data[:cap(s.dist.Data)]}
	if cap(s.self) < rows {
		s.self = make([]float64, rows)
	}
	s.self = s.self[:rows]
}

// Fill makes distributions numbered from at on, one for each row of src, from the outputs of head.
func (s *Soft) Fill(e *nn.Exec, at int, src nn.Source, head *nn.Linear) {
	dst := s.dist.Slice(at, at+src.X.Rows)
	e.Linear(src, nn.Proj{Linear: head, Dst: dst})
	scratch := make([][]float32, e.Threads())
	each(e.Pool(), dst.Rows, func(worker, i int) {
		q := dst.Row(i)
		if s.Temperature != 1 {
			simd.Scale(q, 1/s.Temperature)
		}
		if s.Divergence == ReverseKL {
			lse := simd.LogSumExp(q)
			for j := range q {
				q[j] -= lse
			}
			return
		}
		scratch[worker] = grow(scratch[worker], len(q))
		s.self[at+i] = distribution(q, scratch[worker])
	})
}

// Best returns the likeliest token of distribution i.
func (s *Soft) Best(i int) int32 { return int32(simd.ArgMax(s.dist.Row(i))) }

func (s *Soft) of(row int) (q []float32, self float64) {
	i := int(s.Row[row])
	return s.dist.Row(i), s.self[i]
}

// distribution turns logits into probabilities and returns Σ q·log q. t is scratch.
func distribution(q, t []float32) float64 {
	lse := float64(simd.LogSumExp(q))
	copy(t, q)
	simd.Softmax(q, 1)
	return dot(q, t) - lse
}

// lossRow is the loss of one row. p holds its logits, and afterwards the gradient with respect to them;
// q, if there is one, the teacher's distribution in the form of soft; t is scratch of the same length.
type lossRow struct {
	p, q, t []float32
	soft    *Soft
	self    float64
	target  int32
	weight  float32
	share   float32
	scale   float32
	RowLoss
}

// run computes the loss and, if gradient is set, turns the logits into its gradient,
// weight·scale·((1−share)·(p − onehot) + share·∂divergence).
func (l *lossRow) run(gradient bool) {
	if l.target < 0 {
		clear(l.p)
		return
	}
	lse := float64(simd.LogSumExp(l.p))
	l.Correct = simd.ArgMax(l.p) == int(l.target)
	l.hard = lse - float64(l.p[l.target])
	l.Loss = l.hard
	w := l.weight * l.scale
	hard := w
	if l.soft != nil {
		hard = w * (1 - l.share)
		if l.soft.Temperature != 1 || l.soft.Divergence != ForwardKL {
			l.apart(w*l.share, hard, gradient)
			return
		}
		// KL(q ‖ p) = Σ q·log q − Σ q·logits + lse. Its gradient p − q shares p with the cross-entropy's.
		l.Divergence = l.self - dot(l.q, l.p) + lse
		l.Loss = float64(1-l.share)*l.hard + float64(l.share)*l.Divergence
	}
	if !gradient {
		return
	}
	simd.Softmax(l.p, 1)
	simd.Scale(l.p, w)
	if l.soft != nil {
		simd.Axpy(l.p, -w*l.share, l.q)
	}
	l.p[l.target] -= hard
}

// apart is run where the divergence has its own probabilities, at a temperature, or reversed. soft
// and hard are the weights of the two gradients.
func (l *lossRow) apart(soft, hard float32, gradient bool) {
	copy(l.t, l.p)
	temperature := l.soft.Temperature
	if temperature != 1 {
		simd.Scale(l.t, 1/temperature)
	}
	switch l.soft.Divergence {
	case ForwardKL:
		l.Divergence = l.self - dot(l.q, l.t) + float64(simd.LogSumExp(l.t))
		simd.Softmax(l.t, 1)
		if gradient {
			simd.Axpy(l.t, -1, l.q)
		}
	case ReverseKL:
		l.Divergence = reverseKL(l.t, l.q)
	case TotalVariation:
		l.Divergence = totalVariation(l.t, l.q)
	}
	l.Loss = float64(1-l.share)*l.hard + float64(l.share)*l.Divergence*float64(temperature)*float64(temperature)
	if !gradient {
		return
	}
	if l.share == 1 {
		clear(l.p)
	} else {
		simd.Softmax(l.p, 1)
		simd.Scale(l.p, hard)
		l.p[l.target] -= hard
	}
	// T²·∂divergence by the logits: the scaling of the logits takes one T away.
	simd.Axpy(l.p, soft*temperature, l.t)
}

// reverseKL returns KL(p ‖ q) = Σ p·(log p − log q) for logits p, and turns them into its gradient
// p·(log p − log q − KL).
func reverseKL(p, logq []float32) float64 {
	lse := simd.LogSumExp(p)
	d := make([]float32, len(p))
	for i, v := range p {
		d[i] = v - lse - logq[i]
	}
	simd.Softmax(p, 1)
	kl := dot(p, d)
	for i := range p {
		p[i] *= d[i] - float32(kl)
	}
	return kl
}

// totalVariation returns ½ Σ|p − q| of logits p, and turns them into its gradient ½ p·(s − Σ p·s), s the sign of p − q.
func totalVariation(p, q []float32) float64 {
	simd.Softmax(p, 1)
	var distance, mean float64
	for i, v := range p {
		d := float64(v - q[i])
		distance += math.Abs(d)
		mean += float64(v) * sign(d)
	}
	for i, v := range p {
		p[i] = v * float32((sign(float64(v-q[i]))-mean)/2)
	}
	return distance / 2
}

func sign(d float64) float64 {
	if d < 0 {
		return -1
	}
	return 1
}

// dot returns Σ a·b, summed in f32 within a part and in f64 overall.
func dot(a, b []float32) float64 {
	var sum float64
	for len(a) > 0 {
		n := min(256, len(a))
		x, y := a[:n], b[:n]
		var s0, s1, s2, s3 float32
		i := 0
		for ; i+4 <= n; i += 4 {
			s0 += x[i] * y[i]
			s1 += x[i+1] * y[i+1]
			s2 += x[i+2] * y[i+2]
			s3 += x[i+3] * y[i+3]
		}
		for ; i < n; i++ {
			s0 += x[i] * y[i]
		}
		sum += float64(s0+s1) + float64(s2+s3)
		a, b = a[n:], b[n:]
	}
	return sum
}
