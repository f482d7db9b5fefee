package nn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tree"
)

func randomRow(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func randomMat(r *rand.Rand, rows, cols int) Mat {
	m := Mat{Rows: rows, Cols: cols, Stride: cols + r.IntN(5)} // possibly some columns of a wider matrix
	m.Data = randomRow(r, rows*m.Stride)
	return m
}

func randomRope(dim int) *Rope { return NewRope(Frequencies(10000, dim, nil), dim%4 == 0) }

// reference computes the last row's attention over a text in f64, by the definition. Queries, keys
// and values are rounded as in the cache.
func reference(a *Attention, rows [][]float32, kv KVType) []float32 {
	d, n := a.Dim, len(rows)
	if a.Rope != nil {
		a.Rope.prepare(n)
	}
	first := 0
	if a.Window > 0 {
		first = max(0, n-a.Window)
	}
	if a.Chunks {
		first = (n - 1) / a.Window * a.Window
	}
	rotated := func(row []float32, head, pos int) []float64 {
		x := append([]float32(nil), row[head*d:(head+1)*d]...)
		if a.Rope != nil {
			cos, sin := a.Rope.view().at(pos)
			a.Rope.view().rotate(x, cos, sin)
		}
		if head < a.Heads && a.Temper.Scale != 0 {
			for i := range x {
				x[i] *= 1 + a.Temper.Scale*float32(math.Log(float64(1+(pos+a.Temper.First)/a.Temper.Length)))
			}
		}
		return wide(held(kv, x))
	}
	out := make([]float32, a.Heads*d)
	for h := range a.Heads {
		q := rotated(rows[n-1], h, n-1)
		head := h / (a.Heads / a.KVHeads)
		w := make([]float64, n)
		var sum float64
		values := make([][]float64, n)
		for i, row := range rows {
			values[i] = wide(held(kv, row[(a.Heads+a.KVHeads+head)*d:][:d]))
			if i < first {
				continue
			}
			k := rotated(row, a.Heads+head, i)
			for j := range q {
				w[i] += q[j] * k[j]
			}
			w[i] *= float64(a.scale())
			if a.Cap != 0 {
				w[i] = float64(a.Cap) * math.Tanh(w[i]/float64(a.Cap))
			}
			w[i] = math.Exp(w[i])
			sum += w[i]
		}
		if a.Sinks != nil {
			sum += math.Exp(float64(a.Sinks[h]))
		}
		for j := range d {
			var o float64
			for i := range rows {
				o += w[i] / sum * values[i][j]
			}
			out[h*d+j] = float32(o)
		}
	}
	return out
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// drawParts draws the parts that only some architectures' attention has.
func drawParts(t *rapid.T, a *Attention) {
	switch rapid.IntRange(0, 5).Draw(t, "rotation") {
	case 0:
		a.Rope = nil
	case 1:
		a.Rope = NewScaledRope(Frequencies(10000, a.Dim, nil), false, 1.3)
	}
	if rapid.Bool().Draw(t, "window") {
		// a short window excludes ancestors in a tree
		a.Window = rapid.OneOf(rapid.IntRange(1, 4), rapid.IntRange(1, 90)).Draw(t, "width")
		a.Chunks = rapid.Bool().Draw(t, "chunks")
	}
	if rapid.IntRange(0, 2).Draw(t, "cap") == 0 {
		a.Cap = 2
	}
	if rapid.IntRange(0, 2).Draw(t, "scale") == 0 {
		a.Scale = 0.4
	}
	if rapid.IntRange(0, 3).Draw(t, "temper") == 0 {
		a.Temper = Temper{Scale: 0.2, Length: 7, First: rapid.IntRange(0, 1).Draw(t, "first")}
	}
	if rapid.IntRange(0, 2).Draw(t, "sinks") == 0 {
		a.Sinks = make([]float32, a.Heads)
		for i := range a.Sinks {
			a.Sinks[i] = rapid.Float32Range(-3, 3).Draw(t, "sink")
		}
	}
}

// attend runs one pass of the rows of t and returns its output.
func attend(e *Exec, a *Attention, caches []*Cache, trees []*tree.Tree, rows [][]float32) Mat {
	var f Forest
	for s, c := range caches {
		f.Add(c, trees[s], 0)
		c.Reserve(0, trees[s].Len())
	}
	var in, out Buffer
	qkv := in.Mat(len(rows), a.QKVCols())
	for i, row := range rows {
		copy(qkv.Row(i), row)
	}
	o := out.Mat(len(rows), a.Heads*a.Dim)
	e.Attend(a, 0, &f, qkv, o)
	return o
}

func chain(n int) *tree.Tree { return tree.Chain(make([]int32, n)) }

// Every node of a random tree over a random text, together with another sequence, with keys and
// values of either type, any number of workers, every level and ranges of any length, gets the bits
// that it gets when its path is run row by row. They are close to the definition's numbers.
func TestAttentionSeesItsPathAlone(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		kv := rapid.IntRange(1, 3).Draw(t, "kv heads")
		dim := 2 * rapid.IntRange(1, 20).Draw(t, "half dim")
		a := &Attention{Heads: kv * rapid.IntRange(1, 3).Draw(t, "group"), KVHeads: kv, Dim: dim, Rope: randomRope(dim)}
		drawParts(t, a)
		mem := &Pages{Layers: 1, Heads: kv, Dim: dim, KV: rapid.SampledFrom([]KVType{KVF32, KVBF16, KVQ8}).Draw(t, "type")}
		if rapid.Bool().Draw(t, "freed") {
			mem.Windows = []int{a.Window}
			defer keepRows(0)()
		}
		committed := rapid.IntRange(0, 70).Draw(t, "committed")
		defer UseRanges(rapid.SampledFrom([]int{1, 2, rangePages}).Draw(t, "pages of a range"))()
		nodes := rapid.IntRange(1, 40).Draw(t, "nodes")
		levels := cpu.Levels()
		defer cpu.Use(levels[rapid.IntRange(0, len(levels)-1).Draw(t, "level")])()

		var past [][]float32
		for range committed {
			past = append(past, randomRow(r, a.QKVCols()))
		}
		tr := tree.New(0)
		rows := [][]float32{randomRow(r, a.QKVCols())}
		bushy := rapid.Bool().Draw(t, "bushy")
		for i := 1; i < nodes; i++ {
			parent := i - 1
			if bushy || r.IntN(4) == 0 {
				parent = r.IntN(i)
			}
			tr.Append(parent, int32(i), 0)
			rows = append(rows, randomRow(r, a.QKVCols()))
		}

		pool := par.New(rapid.IntRange(1, 4).Draw(t, "threads"))
		defer pool.Close()
		e := NewExec(pool)
		c := mem.NewCache()
		if committed > 0 {
			attend(e, a, []*Cache{c}, []*tree.Tree{chain(committed)}, past)
			c.CommitAll()
		}
		mate := mem.NewCache()
		mateRows := rapid.IntRange(1, 9).Draw(t, "mate")
		all := append([][]float32(nil), rows...)
		for range mateRows {
			all = append(all, randomRow(r, a.QKVCols()))
		}
		node := r.IntN(nodes)
		path := tr.Visible(node, nil)
		if other := r.IntN(nodes); rapid.Bool().Draw(t, "wild") && !slices.Contains(path, int32(other)) {
			// Another branch's results do not affect the node.
			values := all[other][(a.Heads+a.KVHeads)*dim:]
			values[r.IntN(len(values))] = []float32{float32(math.Inf(1)), float32(math.NaN()), math.MaxFloat32}[r.IntN(3)]
		}
		got := attend(e, a, []*Cache{c, mate}, []*tree.Tree{tr, chain(mateRows)}, all)

		one := NewExec(par.New(1))
		line := append([][]float32(nil), past...)
		alone := mem.NewCache()
		var want Mat
		for _, v := range path {
			line = append(line, rows[v])
		}
		for _, row := range line {
			want = attend(one, a, []*Cache{alone}, []*tree.Tree{chain(1)}, [][]float32{row})
			alone.CommitAll()
		}
		ref, tolerance := reference(a, line, mem.KV), 2e-5
		switch mem.KV {
		case KVBF16:
			tolerance = 4 * 0x1p-8 // weights are rounded as well; values are rarely above 4
		case KVQ8:
			tolerance = 0.05 // and scales of queries are not rounded to f16
		}
		for i, w := range want.Row(0) {
			if g := got.Row(node)[i]; math.Float32bits(g) != math.Float32bits(w) {
				t.Fatalf("node %d of %d, element %d: %x in the tree, %x alone", node, nodes, i, g, w)
			}
			if math.Abs(float64(w-ref[i])) > tolerance {
				t.Fatalf("element %d is %g, by the definition %g", i, w, ref[i])
			}
		}

		// Committing the path leaves the same cache as running it row by row.
		if err := c.Commit(path); err != nil {
			t.Fatal(err)
		}
		next := randomRow(r, a.QKVCols())
		x := attend(e, a, []*Cache{c}, []*tree.Tree{chain(1)}, [][]float32{next}).Row(0)
		y := attend(one, a, []*Cache{alone}, []*tree.Tree{chain(1)}, [][]float32{next}).Row(0)
		for i := range x {
			if math.Float32bits(x[i]) != math.Float32bits(y[i]) {
				t.Fatalf("after the commit, element %d: %x, want %x", i, x[i], y[i])
			}
		}
	})
}
