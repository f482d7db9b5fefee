package nn

import (
	"sync"

	"github.com/grovellm/grove/internal/kernels/num"
	"github.com/grovellm/grove/internal/kernels/simd"
)

// Rope is rotary position embedding (RoFormer, eq. 15) over the first 2·len(freq) dimensions
// of a head. Pairs of dimensions are rotated by position·freq.
type Rope struct {
	freq  []float64
	pairs bool    // neighbours (2i, 2i+1) form a pair; otherwise (i, i+len(freq))
	grow  float64 // a factor of the rotated dimensions

	mu    sync.Mutex
	table [][]float32 // per block of ropeBlock positions: position × (cos…, sin…)
}

const ropeBlock = 64

// NewRope returns a rotation of pairs of dimensions by the given angles per position, in radians.
// With neighbours, the pairs are (2i, 2i+1), as in GGUF files of the llama family; otherwise they
// are (i, i+len(freq)).
func NewRope(freq []float64, neighbours bool) *Rope {
	return &Rope{freq: freq, pairs: neighbours, grow: 1}
}

// NewScaledRope is NewRope with a factor that also multiplies the rotated dimensions: YaRN's
// attention factor (arXiv 2309.00071, §3.4).
func NewScaledRope(freq []float64, neighbours bool, factor float64) *Rope {
	r := NewRope(freq, neighbours)
	r.grow = factor
	return r
}

// Frequencies returns base^(−2i/dims) for i in [0, dims/2), each divided by factors[i] if factors are given.
func Frequencies(base float64, dims int, factors []float32) []float64 {
	f := num.InversePowers(base, dims/2)
	for i, factor := range factors {
		f[i] /= float64(factor)
	}
	return f
}

// prepare extends the table to position p.
func (r *Rope) prepare(p int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.table)*ropeBlock <= p {
		h := len(r.freq)
		block := make([]float32, ropeBlock*2*h)
		for i := range ropeBlock {
			pos := float64(len(r.table)*ropeBlock + i)
			for d, f := range r.freq {
				sin, cos := num.Sincos(float64(pos * f))
				block[i*2*h+d], block[i*2*h+h+d] = float32(cos*r.grow), float32(sin*r.grow)
			}
		}
		r.table = append(r.table, block)
	}
}

// view returns the table in its current state; later growth does not affect it.
func (r *Rope) view() ropeView {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ropeView{r.table, len(r.freq), r.pairs}
}

type ropeView struct {
	table [][]float32
	half  int
	pairs bool
}

// at returns the cosines and sines of position p.
func (v ropeView) at(p int) (cos, sin []float32) {
	t := v.table[p/ropeBlock][p%ropeBlock*2*v.half:]
	return t[:v.half], t[v.half : 2*v.half]
}

// turn returns the cosines and sines of a rotation by n positions, without a factor.
func (r *Rope) turn(n int) (cos, sin []float32) {
	for _, f := range r.freq {
		s, c := num.Sincos(float64(float64(n) * f))
		cos, sin = append(cos, float32(c)), append(sin, float32(s))
	}
	return cos, sin
}

// RotateBack multiplies the heads in x, of dim dimensions each, by the transpose of a position's rotation,
// as the gradient of rotated heads requires. Rows at that position must have been rotated before.
func (r *Rope) RotateBack(x []float32, dim, position int) {
	view := r.view()
	cos, sin := view.at(position)
	back := make([]float32, len(sin))
	for i, v := range sin {
		back[i] = -v
	}
	for ; len(x) > 0; x = x[dim:] {
		view.rotate(x[:dim], cos, back)
	}
}

func (v ropeView) rotate(x, cos, sin []float32) {
	if v.pairs {
		simd.RopePairs(x, cos, sin)
		return
	}
	simd.RopeHalf(x, cos, sin)
}
