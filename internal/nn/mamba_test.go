package nn

import (
	"math"
	"math/rand/v2"
	"testing"
)

// randomMamba is a layer with its matrices as rows, for the plain reference.
type randomMamba struct {
	*Mamba
	in, out   [][]float32
	outLinear Linear
}

func newRandomMamba(t *testing.T, rng *rand.Rand, hidden, groups, heads, dim, state int) *randomMamba {
	t.Helper()
	r := &randomMamba{Mamba: &Mamba{Heads: heads, Groups: groups, HeadDim: dim, StateDim: state}}
	d := r.Mamba
	r.in, d.In = randomMatrix(t, rng, d.values()+d.channels()+heads, hidden)
	r.out, r.outLinear = randomMatrix(t, rng, hidden, d.values())
	for range 4 {
		d.Conv.Taps = append(d.Conv.Taps, normalVector(rng, d.channels(), 0, 0.5))
	}
	d.Conv.Bias = normalVector(rng, d.channels(), 0, 0.2)
	d.A = normalVector(rng, heads, -1, 0.2)
	d.Bias = normalVector(rng, heads, 0, 0.5)
	d.Skip = normalVector(rng, heads, 1, 0.5)
	d.Norm = Norm{Weight: normalVector(rng, d.values(), 1, 0.1), Eps: 1e-6}
	return r
}

// reference computes the layer for a text, step by step in float64, as in the paper.
func (r *randomMamba) reference(text [][]float32) (out [][]float64) {
	d := r.Mamba
	states := make([][]float64, d.Heads) // HeadDim × StateDim
	for h := range states {
		states[h] = make([]float64, d.HeadDim*d.StateDim)
	}
	var inputs [][]float64
	for _, x := range text {
		all := multiplyRows(r.in, x)
		z, dt := all[:d.values()], all[len(all)-d.Heads:]
		inputs = append(inputs, all[d.values():len(all)-d.Heads])
		mixed := d.Conv.convolved(inputs)
		y := make([]float64, d.values())
		for h, s := range states {
			step := math.Log1p(math.Exp(dt[h] + float64(d.Bias[h])))
			decay := math.Exp(float64(d.A[h]) * step)
			group := h / (d.Heads / d.Groups)
			b := mixed[d.values()+group*d.StateDim:][:d.StateDim]
			c := mixed[d.values()+(d.Groups+group)*d.StateDim:][:d.StateDim]
			for p := range d.HeadDim {
				at := h*d.HeadDim + p
				y[at] = float64(d.Skip[h]) * mixed[at]
				for n := range b {
					v := &s[p*d.StateDim+n]
					*v = decay**v + step*mixed[at]*b[n]
					y[at] += *v * c[n]
				}
				y[at] *= siluOf(z[at])
			}
		}
		normal := make([]float32, len(y))
		for size, at := len(y)/d.Groups, 0; at < len(y); at += size {
			mean := 0.0
			for _, v := range y[at : at+size] {
				mean += v * v / float64(size)
			}
			for i := at; i < at+size; i++ {
				normal[i] = float32(y[i] / math.Sqrt(mean+float64(d.Norm.Eps)) * float64(d.Norm.Weight[i]))
			}
		}
		out = append(out, multiplyRows(r.out, normal))
	}
	return out
}

func TestMambaAlongTrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, groups := range []int{1, 2} {
		r := newRandomMamba(t, rng, 24, groups, 20, 6, 10) // groups of several tasks
		checkAlongTrees(t, rng, r, r.outLinear, 24)
	}
}
