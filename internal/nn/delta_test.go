package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// randomDelta is a layer with its matrices as rows, for the plain reference.
type randomDelta struct {
	*DeltaNet
	hidden                   int
	qkv, z, alpha, beta, out [][]float32
	outLinear                Linear
}

// randomMatrix returns a random product and its rows.
func randomMatrix(t *testing.T, rng *rand.Rand, out, in int) ([][]float32, Linear) {
	t.Helper()
	rows := make([][]float32, out)
	flat := make([]float32, 0, out*in)
	for i := range rows {
		for range in {
			flat = append(flat, float32(rng.NormFloat64()/math.Sqrt(float64(in))))
		}
		rows[i] = flat[i*in : (i+1)*in]
	}
	weights, err := tensor.FromFloat32s("w", tensor.F32, []int{out, in}, flat)
	if err != nil {
		t.Fatal(err)
	}
	m, err := gemm.New(gemm.F32, out, in)
	if err != nil {
		t.Fatal(err)
	}
	m.PackPanels(weights.Data, 0, m.Panels())
	return rows, Linear{W: m}
}

func normalVector(rng *rand.Rand, n int, mean, std float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(mean + std*rng.NormFloat64())
	}
	return v
}

// multiplyRows returns m·x.
func multiplyRows(m [][]float32, x []float32) []float64 {
	y := make([]float64, len(m))
	for i, row := range m {
		for k, w := range row {
			y[i] += float64(w) * float64(x[k])
		}
	}
	return y
}

// convolved returns SiLU of the last input, convolved with the inputs before it.
func (c *Convolution) convolved(inputs [][]float64) []float64 {
	y := make([]float64, len(c.Taps[0]))
	for k := range y {
		if c.Bias != nil {
			y[k] = float64(c.Bias[k])
		}
		for i, tap := range c.Taps {
			if at := len(inputs) - len(c.Taps) + i; at >= 0 {
				y[k] += float64(tap[k]) * inputs[at][k]
			}
		}
		y[k] = siluOf(y[k])
	}
	return y
}

func siluOf(x float64) float64 { return x / (1 + math.Exp(-x)) }

// unitOf returns x with the length scale.
func unitOf(x []float64, scale float64) []float64 {
	sum := 1e-6
	for _, v := range x {
		sum += v * v
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v / math.Sqrt(sum) * scale
	}
	return y
}

func newRandomDelta(t *testing.T, rng *rand.Rand, hidden, keyHeads, valueHeads, dim int, grouped bool) *randomDelta {
	t.Helper()
	matrix := func(out, in int) ([][]float32, Linear) { return randomMatrix(t, rng, out, in) }
	vector := func(n int, mean, std float64) []float32 { return normalVector(rng, n, mean, std) }
	r := &randomDelta{hidden: hidden, DeltaNet: &DeltaNet{KeyHeads: keyHeads, ValueHeads: valueHeads, KeyDim: dim,
		ValueDim: dim, Grouped: grouped}}
	d := r.DeltaNet
	r.qkv, d.QKV = matrix(d.channels(), hidden)
	r.z, d.Z = matrix(d.values(), hidden)
	r.alpha, d.Alpha = matrix(valueHeads, hidden)
	r.beta, d.Beta = matrix(valueHeads, hidden)
	r.out, r.outLinear = matrix(hidden, d.values())
	for range 4 {
		d.Conv.Taps = append(d.Conv.Taps, vector(d.channels(), 0, 0.5))
	}
	d.A, d.Bias = vector(valueHeads, -1, 0.2), vector(valueHeads, 0, 0.5)
	d.Norm = Norm{Weight: vector(dim, 1, 0.1), Eps: 1e-6}
	return r
}

// reference computes the layer for a text, step by step in float64, as in the paper.
func (r *randomDelta) reference(text [][]float32) (out [][]float64) {
	d := r.DeltaNet
	states := make([][][]float64, d.ValueHeads)
	for h := range states {
		for range d.KeyDim {
			states[h] = append(states[h], make([]float64, d.ValueDim))
		}
	}
	var inputs [][]float64
	for _, x := range text {
		inputs = append(inputs, multiplyRows(r.qkv, x))
		mixed := d.Conv.convolved(inputs)
		z := multiplyRows(r.z, x)
		alpha, beta := multiplyRows(r.alpha, x), multiplyRows(r.beta, x)
		var heads []float32
		for h := range d.ValueHeads {
			key := h % d.KeyHeads
			if d.Grouped {
				key = h / (d.ValueHeads / d.KeyHeads)
			}
			q := unitOf(mixed[key*d.KeyDim:][:d.KeyDim], 1/math.Sqrt(float64(d.KeyDim)))
			k := unitOf(mixed[d.keys()+key*d.KeyDim:][:d.KeyDim], 1)
			v := mixed[2*d.keys()+h*d.ValueDim:][:d.ValueDim]
			decay := math.Exp(float64(d.A[h]) * math.Log1p(math.Exp(alpha[h]+float64(d.Bias[h]))))
			b := 1 / (1 + math.Exp(-beta[h]))
			s, o := states[h], make([]float64, d.ValueDim)
			mean := 0.0
			for c := range v {
				got := 0.0
				for a := range s {
					s[a][c] *= decay
					got += s[a][c] * k[a]
				}
				for a := range s {
					s[a][c] += k[a] * b * (v[c] - got)
					o[c] += s[a][c] * q[a]
				}
				mean += o[c] * o[c] / float64(d.ValueDim)
			}
			for c := range o {
				y := o[c] / math.Sqrt(mean+float64(d.Norm.Eps)) * float64(d.Norm.Weight[c])
				heads = append(heads, float32(y*siluOf(z[h*d.ValueDim+c])))
			}
		}
		out = append(out, multiplyRows(r.out, heads))
	}
	return out
}

func TestDeltaNetAlongTrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, grouped := range []bool{false, true} {
		r := newRandomDelta(t, rng, 24, 2, 4, 12, grouped)
		checkAlongTrees(t, rng, r, r.outLinear, r.hidden)
	}
}

// referenced is a recurrent layer with a plain reference.
type referenced interface {
	Recurrent
	reference(text [][]float32) [][]float64
}

// checkAlongTrees checks that the rows of trees over texts of several pages follow the recurrence
// along each path, and equal to the bit the path's rows computed one by one.
func checkAlongTrees(t *testing.T, rng *rand.Rand, r referenced, out Linear, hidden int) {
	t.Helper()
	pool := par.New(2)
	defer pool.Close()
	block := &Block{Recurrent: r, Out: out}
	mem := &Pages{Layers: 1, Heads: 1, Dim: 4, KV: KVF32, Recurrent: []*RecurrentShape{r.Shape()}}
	rows := make([][]float32, 150)
	for i := range rows {
		rows[i] = normalVector(rng, hidden, 0, 1)
	}
	run := func(c *Cache, tr *tree.Tree) Mat {
		var f Forest
		var m BlockBuffers
		e := NewExec(pool)
		f.Add(c, tr, 0)
		c.Reserve(0, tr.Len())
		src, dst := NewMat(tr.Len(), hidden), NewMat(tr.Len(), hidden)
		for i, token := range tr.Token {
			copy(src.Row(i), rows[token])
		}
		e.Attention(block, 0, &f, Source{X: src}, dst, &m)
		return dst
	}
	for _, base := range []int{0, 5, 31, 32, 61, 70} {
		c, alone := mem.NewCache(), mem.NewCache()
		var text [][]float32
		if base > 0 {
			chain := tree.New(0)
			for i := 1; i < base; i++ {
				chain.Append(i-1, int32(i), 0)
			}
			run(c, chain)
			c.CommitAll()
		}
		for i := range base {
			run(alone, tree.New(int32(i)))
			alone.CommitAll()
			text = append(text, rows[i])
		}
		tr := tree.New(int32(base))
		for i := 1; i < 60; i++ { // some branches pass the end of a page
			tr.Append(max(0, i-1-rng.IntN(3)), int32(base+i), 0)
		}
		got := run(c, tr)
		for node := base % 2; node < tr.Len(); node += 2 {
			path, along := alone.Fork(), append([][]float32(nil), text...)
			var last Mat
			for _, n := range tr.Path(node, nil) {
				last = run(path, tree.New(tr.Token[n]))
				path.CommitAll()
				along = append(along, rows[tr.Token[n]])
			}
			want := r.reference(along)
			for i, x := range got.Row(node) {
				if math.Float32bits(x) != math.Float32bits(last.Row(0)[i]) {
					t.Fatalf("after %d rows, node %d: element %d is %g, one by one %g", base, node, i, x, last.Row(0)[i])
				}
				if d := math.Abs(float64(x) - want[len(want)-1][i]); d > 2e-5 {
					t.Fatalf("after %d rows, node %d: element %d is %g, want %g", base, node, i, x, want[len(want)-1][i])
				}
			}
			path.Free()
		}
		c.Free()
		alone.Free()
	}
	if used := mem.InUse(); used != 0 {
		t.Errorf("freed caches hold %d bytes", used)
	}
}
