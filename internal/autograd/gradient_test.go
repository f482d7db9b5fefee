package autograd

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tree"
)

// gradCheck is a small network: run computes its output from the parameters, with or without a tape. The
// loss is a fixed random weighting of the output, so its gradient with respect to the output is known.
type gradCheck struct {
	exec   *nn.Exec
	params *Params
	tape   *Tape
	run    func() nn.Mat
	step   float64 // of the finite differences
	weight []float32
	out    []float32 // at the last gradient
}

func newGradCheck(threads int) *gradCheck {
	g := &gradCheck{exec: nn.NewExec(par.New(threads)), params: NewParams(gemm.F32), step: 1.0 / 128}
	g.tape = NewTape(g.exec, g.params)
	return g
}

// draw fills the parameters with random numbers, vectors (norms) with numbers near one.
func (g *gradCheck) draw(r *rand.Rand) {
	for _, p := range g.params.All() {
		for i := range p.Data {
			p.Data[i] = float32(r.NormFloat64()) * 0.5
			if p.Vector {
				p.Data[i] = 1 + p.Data[i]*0.4
			}
		}
	}
	g.params.Pack(g.tape.Products())
}

// gradient runs the network on the tape, and the backward pass.
func (g *gradCheck) gradient(r *rand.Rand) {
	g.params.ZeroGrad()
	g.tape.Reset()
	g.tape.Attach()
	out := g.run()
	if g.weight == nil {
		g.weight = randomRow(r, out.Rows*out.Cols)
	}
	d, _ := Grad(out)
	for i := range out.Rows {
		copy(d.Row(i), g.weight[i*out.Cols:])
	}
	g.out = g.out[:0]
	for i := range out.Rows {
		g.out = append(g.out, out.Row(i)...)
	}
	g.tape.Backward()
}

// loss returns the weighted output, in f64.
func (g *gradCheck) loss() float64 {
	out := g.run()
	sum := 0.0
	for i := range out.Rows {
		for j, v := range out.Row(i) {
			sum += float64(v) * float64(g.weight[i*out.Cols+j])
		}
	}
	return sum
}

// check compares the gradient of the weighted output with finite differences.
func (g *gradCheck) check(t *rapid.T, r *rand.Rand) {
	t.Helper()
	g.gradient(r)
	size := 0.0
	for i, v := range g.out {
		size += math.Abs(float64(v * g.weight[i]))
	}
	g.differences(t, r, g.loss, size)
}

// differences compares the gradient, along a random direction of every parameter, with central
// differences of the loss. size is the sum of the magnitudes of the loss's terms: f32 rounds each
// of them, and these roundings, divided by the step, are noise, not errors.
func (g *gradCheck) differences(t *rapid.T, r *rand.Rand, loss func() float64, size float64) {
	t.Helper()
	noise := 6e-7 * size / g.step
	g.tape.Detach()
	for _, p := range g.params.All() {
		dir := randomRow(r, len(p.Data))
		var want, length float64
		for i, v := range dir {
			want += float64(v) * float64(p.Grad[i])
			length += float64(p.Grad[i]) * float64(p.Grad[i])
		}
		old := append([]float32(nil), p.Data...)
		at := func(h float64) float64 {
			for i := range old {
				p.Data[i] = old[i] + float32(h)*dir[i]
			}
			g.params.Pack(g.tape.Products())
			return loss()
		}
		// Two step sizes, extrapolated: the error is of fourth order. If the two results are far
		// apart, or the slopes of the two sides are, the function bends too much for the step, and
		// a shorter step decides, as long as its noise is small enough. A function that still bends
		// then has a corner, whose gradient is between the slopes of its sides.
		scale := math.Sqrt(length) + math.Abs(want)
		for h, noise := g.step, noise; ; h, noise = h/4, noise*4 {
			above, below := at(h/2), at(-h/2)
			here := at(0)
			d1, d2 := (at(h)-at(-h))/(2*h), (above-below)/h
			right, left := (above-here)/(h/2), (here-below)/(h/2)
			got := (4*d2 - d1) / 3
			if math.Abs(got-want) <= 4e-3*scale+noise {
				break
			}
			bends := max(math.Abs(d1-d2), math.Abs(right-left)) >= 5e-3*scale
			last := 4*noise > 4e-3*scale
			slack := 4e-3*scale + 2*noise
			if between := want >= min(left, right)-slack && want <= max(left, right)+slack; !bends || last && !between {
				t.Fatalf("%s (%d×%d): %g along a direction, by differences %g, by its sides %g and %g (gradient's length %g)",
					p.Name, p.Rows, p.Cols, want, got, left, right, math.Sqrt(length))
			}
			if last {
				break
			}
		}
		at(0)
	}
}

// source returns an n×cols matrix that depends on a parameter: an embedding of n tokens.
func (g *gradCheck) source(t *rapid.T, r *rand.Rand, name string, n, cols int) func() nn.Mat {
	w, err := g.params.Matrix(name, n+1, cols)
	if err != nil {
		t.Fatal(err)
	}
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(r.IntN(n + 1)) // some twice
	}
	return func() nn.Mat {
		m := g.exec.Mat(new(nn.Buffer), n, cols)
		g.exec.Embed(w, tokens, m)
		return m
	}
}

func (g *gradCheck) linear(t *rapid.T, r *rand.Rand, name string, out, in int, bias bool) nn.Linear {
	w, err := g.params.Matrix(name, out, in)
	if err != nil {
		t.Fatal(err)
	}
	l := nn.Linear{W: w}
	if bias {
		l.Bias = g.params.Vector(name+".bias", out)
	}
	return l
}

func (g *gradCheck) norm(name string, n int, center bool) *nn.Norm {
	w := &nn.Norm{Weight: g.params.Vector(name, n), Eps: 0.3, Center: center}
	if center {
		w.Bias = g.params.Vector(name+".bias", n)
	}
	return w
}

func TestLinearGradient(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		g := newGradCheck(rapid.IntRange(1, 3).Draw(t, "threads"))
		n, in := rapid.IntRange(1, 150).Draw(t, "rows"), rapid.IntRange(1, 70).Draw(t, "in")
		x := g.source(t, r, "x", n, in)
		kind := rapid.IntRange(0, 5).Draw(t, "source")
		var norm *nn.Norm
		var up func() nn.Mat
		switch kind {
		case 1, 2:
			norm = g.norm("norm", in, kind == 2)
		case 3:
			up = g.source(t, r, "up", n, in)
		}
		var ls []nn.Linear
		width := 0
		for i := range rapid.IntRange(1, 3).Draw(t, "products") {
			ls = append(ls, g.linear(t, r, string(rune('a'+i)), rapid.IntRange(1, 70).Draw(t, "out"), in,
				rapid.Bool().Draw(t, "bias")))
			width += ls[i].W.Out()
			if r.IntN(3) == 0 {
				ls[i].Scale = 0.6
			}
			if r.IntN(3) == 0 {
				ls[i].Cap = 3
			}
		}
		g.run = func() nn.Mat {
			src := nn.Source{X: x(), Norm: norm}
			switch kind {
			case 3:
				src.Act, src.Up = nn.SiLUMul, up()
			case 4:
				src.Act = nn.GELU
			case 5:
				src.Act = nn.SiLU
			}
			out := g.exec.Mat(new(nn.Buffer), n, width)
			var projs []nn.Proj
			at := 0
			for i := range ls {
				projs = append(projs, nn.Proj{Linear: &ls[i], Dst: out.Columns(at, at+ls[i].W.Out())})
				at += ls[i].W.Out()
			}
			g.exec.Linear(src, projs...)
			return out
		}
		g.draw(r)
		g.check(t, r)
	})
}

// Attention over random forests: chunks of a text, trees, and blocks of branches below a text.
func TestAttentionGradient(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		g := newGradCheck(rapid.IntRange(1, 3).Draw(t, "threads"))
		kv := rapid.IntRange(1, 2).Draw(t, "kv heads")
		dim := 2 * rapid.IntRange(1, 12).Draw(t, "half dim")
		a := &nn.Attention{Heads: kv * rapid.IntRange(1, 3).Draw(t, "group"), KVHeads: kv, Dim: dim, Rope: randomRope(dim)}
		if rapid.Bool().Draw(t, "norms") {
			a.QNorm, a.KNorm = g.norm("q", dim, false), g.norm("k", dim, false)
		}
		var trees []*tree.Tree
		var past []int // rows committed before the pass, which are constants
		rows := 0
		for range rapid.IntRange(1, 3).Draw(t, "sequences") {
			base := rapid.IntRange(1, 70).Draw(t, "length")
			tr := chain(base)
			for range rapid.IntRange(0, 5).Draw(t, "branches") {
				at := r.IntN(base)
				for range rapid.IntRange(1, 9).Draw(t, "branch") {
					at = tr.Append(at, int32(tr.Len()+1000), 0)
				}
			}
			for range rapid.IntRange(0, 9).Draw(t, "other visibility") { // block heads look in both directions
				tr.SetSees(r.IntN(tr.Len()), r.IntN(tr.Len()), r.IntN(2) == 0)
			}
			trees = append(trees, tr)
			past = append(past, rapid.IntRange(0, 40).Draw(t, "committed"))
			rows += tr.Len()
		}
		// Texts may be only keys and values, with branches whose rows attend: this is how block heads are trained.
		textRows, keysApart := 0, rapid.Bool().Draw(t, "keys apart")
		var lengths []int
		for _, tr := range trees {
			n := 0
			for keysApart && n < tr.Len() && (n == 0 || int(tr.Parent[n]) == n-1) {
				n++
			}
			lengths = append(lengths, n)
			textRows += n
		}
		if rows == textRows {
			t.Skip("no branches")
		}
		var keys func() nn.Mat
		if keysApart {
			keys = g.source(t, r, "kv", textRows, 2*kv*dim)
		}
		rows -= textRows
		x := g.source(t, r, "qkv", rows, a.QKVCols())
		mem := &nn.Pages{Layers: 1, Heads: kv, Dim: dim}
		plain, bare := nn.NewExec(par.New(1)), *a
		bare.QNorm, bare.KNorm = nil, nil // committed rows do not change with the parameters
		g.run = func() nn.Mat {
			var f, base nn.Forest
			r := rand.New(rand.NewPCG(9, 9))
			for i, tr := range trees {
				c := mem.NewCache()
				if past[i] > 0 {
					var old [][]float32
					for range past[i] {
						old = append(old, randomRow(r, a.QKVCols()))
					}
					attend(plain, &bare, c, old)
					c.CommitAll()
				}
				if keysApart {
					base.Add(c, chain(lengths[i]), 0)
				}
				f.Add(c, tr, lengths[i])
				c.Reserve(0, tr.Len())
			}
			if keysApart {
				g.exec.Keys(a, 0, &base, keys())
			}
			qkv := x()
			out := g.exec.Mat(new(nn.Buffer), rows, a.Heads*dim)
			g.exec.Attend(a, 0, &f, qkv, out)
			return out
		}
		g.draw(r)
		g.check(t, r)
	})
}

// A whole block, whose residual stream is overwritten and read again, in both layouts.
func TestBlockGradient(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 4))
		g := newGradCheck(2)
		g.step = 1.0 / 512 // two blocks are less linear than one operation
		n := rapid.IntRange(1, 40).Draw(t, "rows")
		hidden := 2 * rapid.IntRange(2, 12).Draw(t, "half hidden")
		ffn := rapid.IntRange(1, 30).Draw(t, "ffn")
		classic := rapid.Bool().Draw(t, "classic") // GPT-NeoX: LayerNorm, GELU, parallel
		dim := 4
		b := &nn.Block{Attn: nn.Attention{Heads: 2, KVHeads: 1, Dim: dim, Rope: randomRope(dim)}, Parallel: classic}
		b.AttnNorm, b.MLPNorm = *g.norm("n1", hidden, classic), *g.norm("n2", hidden, classic)
		if classic {
			b.QKV = []nn.Linear{g.linear(t, r, "qkv", 4*dim, hidden, true)}
		} else {
			b.QKV = []nn.Linear{g.linear(t, r, "q", 2*dim, hidden, false), g.linear(t, r, "k", dim, hidden, false),
				g.linear(t, r, "v", dim, hidden, false)}
			gate := g.linear(t, r, "gate", ffn, hidden, false)
			b.MLP.Gate = &gate
		}
		b.Out = g.linear(t, r, "out", hidden, 2*dim, classic)
		b.MLP.Up, b.MLP.Down = g.linear(t, r, "up", ffn, hidden, classic), g.linear(t, r, "down", hidden, ffn, classic)
		x := g.source(t, r, "x", n, hidden)
		mem := &nn.Pages{Layers: 2, Heads: 1, Dim: dim}
		var bufs nn.BlockBuffers
		g.run = func() nn.Mat {
			var f nn.Forest
			c := mem.NewCache()
			f.Add(c, chain(n), 0)
			c.Reserve(0, n)
			m := x()
			g.exec.Block(b, 0, &f, m, &bufs)
			g.exec.Block(b, 1, &f, m, &bufs) // the same weights again
			return m
		}
		g.draw(r)
		g.check(t, r)
	})
}

// attend runs a pass over rows of a text.
func attend(e *nn.Exec, a *nn.Attention, c *nn.Cache, rows [][]float32) {
	var f nn.Forest
	f.Add(c, chain(len(rows)), 0)
	c.Reserve(0, len(rows))
	qkv := nn.NewMat(len(rows), a.QKVCols())
	for i, row := range rows {
		copy(qkv.Row(i), row)
	}
	e.Attend(a, 0, &f, qkv, nn.NewMat(len(rows), a.Heads*a.Dim))
}

func randomRow(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func randomRope(dim int) *nn.Rope { return nn.NewRope(nn.Frequencies(10000, dim, nil), dim%4 == 0) }

func chain(n int) *tree.Tree { return tree.Chain(make([]int32, n)) }
