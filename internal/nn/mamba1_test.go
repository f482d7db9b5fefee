package nn

import (
	"math"
	"math/rand/v2"
	"testing"
)

// randomMamba1 is a layer with its matrices as rows, for the plain reference.
type randomMamba1 struct {
	*Mamba1
	in, x, step, out [][]float32
	outLinear        Linear
}

func newRandomMamba1(t *testing.T, rng *rand.Rand, hidden, width, rank, states int) *randomMamba1 {
	t.Helper()
	d := &Mamba1{States: states}
	r := &randomMamba1{Mamba1: d}
	r.in, d.In = randomMatrix(t, rng, 2*width, hidden)
	r.x, d.X = randomMatrix(t, rng, rank+2*states, width)
	r.step, d.Step = randomMatrix(t, rng, width, rank)
	r.out, r.outLinear = randomMatrix(t, rng, hidden, width)
	for range 4 {
		d.Conv.Taps = append(d.Conv.Taps, normalVector(rng, width, 0, 0.5))
	}
	d.Conv.Bias, d.Step.Bias = normalVector(rng, width, 0, 0.2), normalVector(rng, width, -1, 0.5)
	d.A, d.Skip = normalVector(rng, states*width, -1, 0.3), normalVector(rng, width, 1, 0.5)
	d.StepNorm = Norm{Weight: normalVector(rng, rank, 1, 0.1), Eps: 1e-6}
	d.BNorm = Norm{Weight: normalVector(rng, states, 1, 0.1), Eps: 1e-6}
	d.CNorm = Norm{Weight: normalVector(rng, states, 1, 0.1), Eps: 1e-6}
	return r
}

// normed returns x after a norm.
func normed(n *Norm, x []float64) (y []float32) {
	mean := 0.0
	for _, v := range x {
		mean += v * v / float64(len(x))
	}
	for i, v := range x {
		y = append(y, float32(v/math.Sqrt(mean+float64(n.Eps))*float64(n.Weight[i])))
	}
	return y
}

// reference computes the layer for a text, step by step in float64, as in the paper.
func (r *randomMamba1) reference(text [][]float32) (out [][]float64) {
	d := r.Mamba1
	width, rank := r.width(), r.rank()
	state := make([]float64, len(d.A))
	var inputs [][]float64
	for _, x := range text {
		all := multiplyRows(r.in, x)
		inputs = append(inputs, all[:width])
		mixed := d.Conv.convolved(inputs)
		narrow := make([]float32, width)
		for k, v := range mixed {
			narrow[k] = float32(v)
		}
		low := multiplyRows(r.x, narrow)
		steps := multiplyRows(r.step, normed(&d.StepNorm, low[:rank]))
		b, c := normed(&d.BNorm, low[rank:rank+d.States]), normed(&d.CNorm, low[rank+d.States:])
		y := make([]float32, width)
		for k := range y {
			step := math.Log1p(math.Exp(steps[k] + float64(d.Step.Bias[k])))
			sum := float64(d.Skip[k]) * mixed[k]
			for n := range d.States {
				s := &state[n*width+k]
				*s = math.Exp(float64(d.A[n*width+k])*step)**s + step*mixed[k]*float64(b[n])
				sum += *s * float64(c[n])
			}
			y[k] = float32(sum * siluOf(all[width+k]))
		}
		out = append(out, multiplyRows(r.out, y))
	}
	return out
}

func TestMamba1AlongTrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for _, width := range []int{20, mamba1Part + 12} { // of one task, and of two
		r := newRandomMamba1(t, rng, 24, width, 6, 10)
		checkAlongTrees(t, rng, r, r.outLinear, 24)
	}
}
