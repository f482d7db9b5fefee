package nn

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// randomHead returns a product with random weights.
func randomHead(r *rand.Rand, t gemm.Type, out, in int, bias bool) *Linear {
	types := map[gemm.Type]tensor.Type{gemm.F32: tensor.F32, gemm.F16: tensor.F16, gemm.BF16: tensor.BF16,
		gemm.Q8_0: tensor.Q8_0}
	weights, err := tensor.FromFloat32s("head", types[t], []int{out, in}, randomRow(r, out*in))
	if err != nil {
		panic(err)
	}
	w, err := gemm.New(t, out, in)
	if err != nil {
		panic(err)
	}
	w.PackPanels(weights.Data, 0, w.Panels())
	h := &Linear{W: w}
	if bias {
		h.Bias = randomRow(r, out)
	}
	if r.IntN(2) == 0 {
		h.Scale = 0.3
	}
	if r.IntN(2) == 0 {
		h.Cap = 2
	}
	return h
}

// randomBlock returns a layer, whose heads may or may not be whole panels, and its hidden size.
func randomBlock(t *rapid.T, r *rand.Rand, typ gemm.Type) (b Block, hidden int) {
	hidden = 32 * rapid.IntRange(1, 5).Draw(t, "hidden")
	a := Attention{KVHeads: rapid.IntRange(1, 3).Draw(t, "kv heads"),
		Dim: rapid.SampledFrom([]int{16, 32, 64, 128}).Draw(t, "dim")}
	a.Heads, a.Rope = 2*a.KVHeads*rapid.IntRange(1, 2).Draw(t, "group"), randomRope(a.Dim)
	if rapid.Bool().Draw(t, "normed heads") {
		a.QNorm, a.KNorm = &Norm{Weight: randomRow(r, a.Dim), Eps: 1e-5}, &Norm{Weight: randomRow(r, a.Dim), Eps: 1e-5}
	}
	bias := rapid.Bool().Draw(t, "bias")
	ffn := 32 * rapid.IntRange(1, 33).Draw(t, "ffn")
	if rapid.IntRange(0, 5).Draw(t, "wide") == 0 { // tasks of several groups of activations
		hidden, ffn = 32, 32*rapid.IntRange(128, 400).Draw(t, "wide ffn")
	}
	linear := func(out, in int) Linear { return *randomHead(r, typ, out, in, bias) }
	b = Block{
		AttnNorm: Norm{Weight: randomRow(r, hidden), Eps: 1e-5}, MLPNorm: Norm{Weight: randomRow(r, hidden), Eps: 1e-5},
		Attn: a, Out: linear(hidden, a.Heads*a.Dim), MLP: MLP{Up: linear(ffn, hidden), Down: linear(hidden, ffn)},
		Parallel: rapid.Bool().Draw(t, "parallel"),
	}
	if kv := a.KVHeads * a.Dim; rapid.Bool().Draw(t, "fused") {
		b.QKV = []Linear{linear(a.QKVCols(), hidden)}
	} else {
		b.QKV = []Linear{linear(a.Heads*a.Dim, hidden), linear(kv, hidden), linear(kv, hidden)}
	}
	if rapid.Bool().Draw(t, "gated") {
		gate := linear(ffn, hidden)
		b.MLP.Gate = &gate
	}
	return b, hidden
}

// byOperations runs a layer one operation after another.
func byOperations(e *Exec, b *Block, layer int, f *Forest, x Mat) {
	n := x.Rows
	qkv, at := NewMat(n, b.Attn.QKVCols()), 0
	for i := range b.QKV {
		w := b.QKV[i].W.Out()
		e.Linear(Source{X: x, Norm: &b.AttnNorm}, Proj{Linear: &b.QKV[i], Dst: qkv.Columns(at, at+w)})
		at += w
	}
	attn, out := NewMat(n, b.Attn.Heads*b.Attn.Dim), NewMat(n, x.Cols)
	e.Attend(&b.Attn, layer, f, qkv, attn)
	e.Linear(Source{X: attn}, Proj{Linear: &b.Out, Dst: out})
	if !b.Parallel {
		e.Add(x, out)
	}
	src := Source{X: x, Norm: &b.MLPNorm}
	up, down := NewMat(n, b.MLP.Up.W.Out()), NewMat(n, x.Cols)
	e.Linear(src, Proj{Linear: &b.MLP.Up, Dst: up})
	inner := Source{X: up, Act: GELU}
	if b.MLP.Gate != nil {
		gate := NewMat(n, up.Cols)
		e.Linear(src, Proj{Linear: b.MLP.Gate, Dst: gate})
		inner = Source{X: gate, Act: SiLUMul, Up: up}
	}
	e.Linear(inner, Proj{Linear: &b.MLP.Down, Dst: down})
	if b.Parallel {
		e.Add(x, out)
	}
	e.Add(x, down)
}

// Layers planned together compute, to the bit, what their operations compute one after another, for
// any number of rows and workers.
func TestLayersAreTheirOperations(t *testing.T) {
	pools := []*par.Pool{par.New(1), par.New(3), par.New(4)}
	defer func() {
		for _, p := range pools {
			p.Close()
		}
	}()
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 21))
		b, hidden := randomBlock(t, r, rapid.SampledFrom([]gemm.Type{gemm.F32, gemm.BF16, gemm.Q8_0}).Draw(t, "type"))
		pages := &Pages{Layers: 3, Heads: b.Attn.KVHeads, Dim: b.Attn.Dim}
		defer UseStrips(rapid.Bool().Draw(t, "strips"))()
		var want [2]Mat
		first, second := rapid.IntRange(1, 70).Draw(t, "text"), rapid.IntRange(1, 70).Draw(t, "rows")
		x := []Mat{randomMat(r, first, hidden), randomMat(r, second, hidden)}
		parents := make([]int, second)
		for i := 1; i < second; i++ {
			parents[i] = r.IntN(i)
		}
		for _, together := range []bool{false, true} {
			e := NewExec(pools[rapid.IntRange(0, len(pools)-1).Draw(t, "pool")])
			c := pages.NewCache()
			defer c.Free()
			var m BlockBuffers
			for pass, tokens := range []int{first, second} {
				shape := chain(tokens)
				if pass == 1 {
					shape = tree.New(0)
					for i, p := range parents[1:] {
						shape.Append(p, int32(i), 0)
					}
				}
				var f Forest
				f.Add(c, shape, 0)
				c.Reserve(0, tokens)
				y := NewMat(tokens, hidden)
				copy(y.Data, x[pass].Data)
				if together {
					e.Hold()
				}
				for layer := range pages.Layers {
					if together {
						e.Block(&b, layer, &f, y, &m)
					} else {
						byOperations(e, &b, layer, &f, y)
					}
				}
				if together {
					e.Release()
					if !slices.Equal(y.Data, want[pass].Data) {
						t.Fatalf("pass %d of layers together is another", pass)
					}
				}
				want[pass] = y
				if pass == 0 {
					c.CommitAll()
				}
			}
		}
	})
}

// Rows that are requested again are computed again: a worker that keeps its own rows does not
// mistake them for those of the next product.
func TestProductsTogetherReadTheirOwnRows(t *testing.T) {
	pool := par.New(4)
	defer pool.Close()
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 22))
		e, width := NewExec(pool), 32*rapid.IntRange(1, 8).Draw(t, "width")
		var layers []*Linear
		for range rapid.IntRange(1, 6).Draw(t, "products") {
			layers = append(layers, randomHead(r, gemm.Q8_0, width, width, false))
		}
		x := randomMat(r, rapid.IntRange(1, 6).Draw(t, "rows"), width)
		run := func(hold bool) Mat {
			y := x
			if hold {
				e.Hold()
			}
			for _, l := range layers {
				next := NewMat(x.Rows, width)
				e.Linear(Source{X: y, Act: SiLU}, Proj{Linear: l, Dst: next})
				y = next
			}
			if hold {
				e.Release()
			}
			return y
		}
		for range 3 {
			if got, want := run(true), run(false); !slices.Equal(got.Data, want.Data) {
				t.Fatal("products planned together are others")
			}
		}
	})
}

// In a small network every layer is one strip from attention to attention. In a large network, with
// fewer rows than workers, or in training, no layer is.
func TestStrips(t *testing.T) {
	pool := par.New(3)
	defer pool.Close()
	r := rand.New(rand.NewPCG(4, 5))
	linear := func(out, in int) Linear { return *randomHead(r, gemm.BF16, out, in, false) }
	const hidden, heads, dim = 64, 2, 32
	ones := Norm{Weight: randomRow(r, hidden), Eps: 1e-5}
	b := Block{
		AttnNorm: ones, MLPNorm: ones, Attn: Attention{Heads: heads, KVHeads: heads, Dim: dim, Rope: randomRope(dim)},
		QKV: []Linear{linear(3*heads*dim, hidden)}, Out: linear(hidden, heads*dim), MLP: MLP{Up: linear(96, hidden),
			Down: linear(hidden, 96)},
	}
	phases := func(rows, layers int) (strips, others int) {
		e := NewExec(pool)
		x := NewMat(rows, hidden)
		m := new(BlockBuffers)
		pages := Pages{Layers: layers, Heads: b.Attn.KVHeads, Dim: b.Attn.Dim}
		c := pages.NewCache()
		defer c.Free()
		var f Forest
		f.Add(c, chain(rows), 0)
		c.Reserve(0, rows)
		e.Hold()
		e.Normalise(nil, x, x)
		for layer := range layers {
			e.Block(&b, layer, &f, x, m)
		}
		e.Normalise(nil, x, x)
		for _, p := range e.Planned() {
			if _, ok := p.Job.(*strip); ok {
				strips++
			} else {
				others++
			}
		}
		return strips, others
	}
	if strips, others := phases(9, 4); strips != 5 || others != 0 {
		t.Errorf("9 rows of 4 layers: %d strips and %d other phases, want 5 and none", strips, others)
	}
	if strips, others := phases(2, 4); strips != 0 || others == 0 {
		t.Errorf("2 rows, 3 workers: %d strips and %d other phases, want no strip", strips, others)
	}
	e := NewExec(pool)
	e.Hold()
	for _, c := range []struct {
		rows, bytes int
		want        bool
	}{
		{3, stripRowBytes, true}, {2, stripRowBytes, false}, {3, stripRowBytes + 1, false}, {8, 2 * stripRowBytes, true},
		{60, 20 * stripRowBytes, true}, {60, 20*stripRowBytes + 1, false}, {6000, stripMost, true},
		{6000, stripMost + 1, false},
	} {
		if got := e.strips(c.rows, c.bytes); got != c.want {
			t.Errorf("%d rows by %d bytes: strips %t, want %t", c.rows, c.bytes, got, c.want)
		}
	}
	e.Record(struct{ Recorder }{})
	if e.strips(3, stripRowBytes) {
		t.Error("strips while there is a Recorder")
	}
}

// Shares are even if possible: when two workers multiply 18 panels, neither is busier.
func TestTaskPanels(t *testing.T) {
	if got := taskPanels(18, 18*30<<10, 8, 2); longestShare(18, got, 2) != 9 {
		t.Errorf("18 panels, 2 workers: tasks of %d, so that one multiplies %d", got, longestShare(18, got, 2))
	}
	rapid.Check(t, func(t *rapid.T) {
		panels, threads := rapid.IntRange(1, 3000).Draw(t, "panels"), rapid.IntRange(1, 64).Draw(t, "threads")
		rows, each := rapid.IntRange(1, 600).Draw(t, "rows"), rapid.IntRange(1, 1<<18).Draw(t, "bytes of a panel")
		chunk, share := taskPanels(panels, panels*each, rows, threads), (panels+threads-1)/threads
		if chunk < 1 || chunk > share {
			t.Fatalf("tasks of %d panels, %d of %d to a worker", chunk, share, panels)
		}
	})
}

// Blocks are as large as possible, unless smaller ones give the busiest worker less to do.
func TestBlockRows(t *testing.T) {
	for _, c := range []struct{ rows, heads, threads, most, want int }{
		{1, 3, 2, 21, 1}, {4, 3, 2, 21, 4}, {8, 3, 2, 21, 4}, {16, 3, 2, 21, 8}, {8, 8, 2, 64, 8}, {8, 8, 16, 64, 4},
		{0, 3, 2, 21, 21},
	} {
		if got := blockRows(c.rows, c.heads, c.threads, c.most); got != c.want {
			t.Errorf("%d rows, %d heads, %d workers: blocks of %d rows, want %d", c.rows, c.heads, c.threads, got, c.want)
		}
	}
}
