package nn

import (
	"math"
	"math/rand/v2"
	"testing"
)

// randomKimiDelta is a layer with its matrices as rows, for the plain reference.
type randomKimiDelta struct {
	*KimiDelta
	q, k, v, beta, out [][]float32
	decay, gate        [2][][]float32
}

// reference computes the layer for a text, step by step in float64, as in the paper.
func (r *randomKimiDelta) reference(text [][]float32) (out [][]float64) {
	d := r.KimiDelta
	low := func(m [2][][]float32, x []float32) []float64 {
		var between []float32
		for _, v := range multiplyRows(m[0], x) {
			between = append(between, float32(v))
		}
		return multiplyRows(m[1], between)
	}
	s := make([][]float64, d.width()) // for each channel of a key
	for a := range s {
		s[a] = make([]float64, d.Dim)
	}
	var inputs [][]float64
	for _, x := range text {
		in := append(multiplyRows(r.q, x), multiplyRows(r.k, x)...)
		inputs = append(inputs, append(in, multiplyRows(r.v, x)...))
		mixed := d.Conv.convolved(inputs)
		decay, gate := low(r.decay, x), low(r.gate, x)
		beta := multiplyRows(r.beta, x)
		var heads []float32
		for h := range d.Heads {
			at := h * d.Dim
			q := unitOf(mixed[at:][:d.Dim], 1/math.Sqrt(float64(d.Dim)))
			k := unitOf(mixed[d.width()+at:][:d.Dim], 1)
			v, o := mixed[2*d.width()+at:][:d.Dim], make([]float64, d.Dim)
			mean := 0.0
			for c := range v {
				got := 0.0
				for a := range k {
					g := float64(d.A[h]) * math.Log1p(math.Exp(decay[at+a]+float64(d.Bias[at+a])))
					s[at+a][c] *= math.Exp(g)
					got += s[at+a][c] * k[a]
				}
				for a := range k {
					s[at+a][c] += k[a] / (1 + math.Exp(-beta[h])) * (v[c] - got)
					o[c] += s[at+a][c] * q[a]
				}
				mean += o[c] * o[c] / float64(d.Dim)
			}
			for c := range o {
				y := o[c] / math.Sqrt(mean+float64(d.Norm.Eps)) * float64(d.Norm.Weight[c])
				heads = append(heads, float32(y/(1+math.Exp(-gate[at+c]))))
			}
		}
		out = append(out, multiplyRows(r.out, heads))
	}
	return out
}

func TestKimiDeltaAlongTrees(t *testing.T) {
	const hidden, heads, dim = 24, 3, 12
	rng := rand.New(rand.NewPCG(5, 6))
	for _, a := range []float64{-1, -30} { // a product of strong decays is 0
		d := &KimiDelta{Heads: heads, Dim: dim}
		r := &randomKimiDelta{KimiDelta: d}
		r.q, d.Q = randomMatrix(t, rng, d.width(), hidden)
		r.k, d.K = randomMatrix(t, rng, d.width(), hidden)
		r.v, d.V = randomMatrix(t, rng, d.width(), hidden)
		r.beta, d.Beta = randomMatrix(t, rng, heads, hidden)
		r.decay[0], d.Decay[0] = randomMatrix(t, rng, dim, hidden)
		r.decay[1], d.Decay[1] = randomMatrix(t, rng, d.width(), dim)
		r.gate[0], d.Gate[0] = randomMatrix(t, rng, dim, hidden)
		r.gate[1], d.Gate[1] = randomMatrix(t, rng, d.width(), dim)
		for range 4 {
			d.Conv.Taps = append(d.Conv.Taps, normalVector(rng, 3*d.width(), 0, 0.5))
		}
		d.A, d.Bias = normalVector(rng, heads, a, 0.2), normalVector(rng, d.width(), 0, 1)
		d.Norm = Norm{Weight: normalVector(rng, dim, 1, 0.1), Eps: 1e-5}
		out, outLinear := randomMatrix(t, rng, hidden, d.width())
		r.out = out
		checkAlongTrees(t, rng, r, outLinear, hidden)
	}
}
