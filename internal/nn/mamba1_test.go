package nn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tree"
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

// A pass goes on from the state after the rows that the pass before began with, also in a fork, whatever was dropped
// since: its rows have the bits of one pass over the whole text.
func TestMamba1GoesOn(t *testing.T) {
	r := newRandomMamba1(t, rand.New(rand.NewPCG(3, 5)), 8, 12, 4, 6)
	pool := par.New(2)
	defer pool.Close()
	block := &Block{Recurrent: r, Out: r.outLinear}
	mem := &Pages{Layers: 1, Heads: 1, Dim: 4, KV: KVF32, Recurrent: []*RecurrentShape{r.Shape()}}
	run := func(c *Cache, tr *tree.Tree) Mat {
		var f Forest
		var m BlockBuffers
		f.Add(c, tr, 0)
		c.Reserve(0, tr.Len())
		x, y := NewMat(tr.Len(), 8), NewMat(tr.Len(), 8)
		for i, token := range tr.Token {
			copy(x.Row(i), normalVector(rand.New(rand.NewPCG(1, uint64(token))), 8, 0, 1))
		}
		NewExec(pool).Attention(block, 0, &f, Source{X: x}, y, &m)
		return y
	}
	cases.Check(t, 30, func(t *rapid.T) {
		c, text := mem.NewCache(), []int32{}
		defer func() { c.Free() }()
		for range rapid.IntRange(5, 40).Draw(t, "passes") {
			switch rapid.IntRange(0, 9).Draw(t, "change") {
			case 0:
				n := c.Reach(rapid.IntRange(0, c.Len()).Draw(t, "to"))
				if err := c.Truncate(n); err != nil {
					t.Fatal(err)
				}
				text = text[:n]
			case 1:
				f := c.Fork()
				if rapid.Bool().Draw(t, "the fork") {
					c, f = f, c
				}
				run(f, tree.New(99))
				f.CommitAll()
				defer f.Free()
			}
			tr := tree.New(int32(rapid.IntRange(0, 20).Draw(t, "root")))
			for i := range rapid.IntRange(0, 5).Draw(t, "nodes") {
				tr.Append(rapid.IntRange(0, i).Draw(t, "parent"), int32(21+i), 0)
			}
			all := run(c, tr)
			node := rapid.IntRange(0, tr.Len()-1).Draw(t, "node")
			path := tr.Path(node, nil)
			for _, n := range path {
				text = append(text, tr.Token[n])
			}
			whole := mem.NewCache()
			got, want := all.Row(node), run(whole, tree.Chain(text)).Row(len(text)-1)
			if !slices.Equal(got, want) {
				t.Fatalf("after %d rows, node %d of %v is %v, in one pass %v", c.Len(), node, tr.Parent, got, want)
			}
			whole.Free()
			if err := c.Commit(path); err != nil {
				t.Fatal(err)
			}
		}
	})
	if used := mem.InUse(); used != 0 {
		t.Errorf("freed caches hold %d bytes", used)
	}
	c, other := mem.NewCache(), mem.NewCache()
	for i := range 20 {
		run(c, tree.New(int32(i)))
		run(other, tree.New(int32(i)))
		c.CommitAll()
		other.CommitAll()
	}
	for i := range 19 {
		for k := range c.row(0, i)[r.width():] {
			c.row(0, i)[r.width()+k] = float32(math.NaN()) // which only the states before the latest are made from
		}
	}
	if got, want := run(c, tree.New(20)), run(other, tree.New(20)); !slices.Equal(got.Data, want.Data) {
		t.Errorf("the next row was made from rows before the latest state: %v, want %v", got.Data, want.Data)
	}
}
