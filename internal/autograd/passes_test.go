package autograd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tree"
)

// A tree whose rows come in several passes has the outputs and the gradients of one pass over the whole
// tree, through attention, norms and rotation, also if rows of an earlier attempt were overwritten.
func TestPassesGradient(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		e := nn.NewExec(par.New(rapid.IntRange(1, 3).Draw(t, "threads")))
		params := NewParams(gemm.F32)
		tape := NewTape(e, params)
		kv, dim := rapid.IntRange(1, 2).Draw(t, "kv heads"), 2*rapid.IntRange(1, 9).Draw(t, "half dim")
		a := &nn.Attention{Heads: kv * rapid.IntRange(1, 3).Draw(t, "group"), KVHeads: kv, Dim: dim, Rope: randomRope(dim)}
		if rapid.Bool().Draw(t, "norms") {
			a.QNorm, a.KNorm = &nn.Norm{Weight: params.Vector("q", dim), Eps: 0.3}, &nn.Norm{
				Weight: params.Vector("k", dim), Eps: 0.3}
			for _, p := range params.All() {
				copy(p.Data, randomRow(r, dim))
			}
		}
		var trees []*tree.Tree
		var cuts [][]int // for each tree, where passes begin
		passes := rapid.IntRange(1, 4).Draw(t, "passes")
		rows := 0
		for range rapid.IntRange(1, 3).Draw(t, "sequences") {
			tr := chain(rapid.IntRange(1, 50).Draw(t, "length"))
			for range rapid.IntRange(0, 40).Draw(t, "nodes") {
				tr.Append(r.IntN(tr.Len()), int32(tr.Len()+1000), 0)
			}
			cut := []int{0}
			for range passes - 1 {
				cut = append(cut, r.IntN(tr.Len()+1))
			}
			slices.Sort(cut)
			trees, cuts = append(trees, tr), append(cuts, append(cut, tr.Len()))
			rows += tr.Len()
		}
		mem := &nn.Pages{Layers: 1, Heads: kv, Dim: dim}
		x, weight := randomRow(r, rows*a.QKVCols()), randomRow(r, rows*a.Heads*dim)

		// run returns the gradients of a weighted sum of all outputs, in the number of passes that
		// cut gives; outputs and gradients of inputs are tree by tree.
		run := func(cut func(tree, pass int) int, passes int, again bool) (out, dx [][]float32, dw [][]float32) {
			params.ZeroGrad()
			tape.Reset()
			out, dx = make([][]float32, rows), make([][]float32, rows)
			var caches []*nn.Cache
			for _, tr := range trees {
				c := mem.NewCache()
				c.Reserve(0, tr.Len())
				caches = append(caches, c)
			}
			var ins, outs []nn.Mat
			var at [][]int // the rows of each pass
			for p := range passes {
				for try := range 2 {
					if try == 0 && !again {
						continue
					}
					f := new(nn.Forest)
					var which []int
					row := 0
					for i, tr := range trees {
						from, to := cut(i, p), cut(i, p+1)
						part := new(tree.Tree) // the tree's nodes so far
						part.Reset(tr.Token[0])
						for n := 1; n < to; n++ {
							part.AppendApart(int(tr.Parent[n]), tr.Token[n])
						}
						if from < to {
							f.Add(caches[i], part, from)
						}
						for n := from; n < to; n++ {
							which = append(which, row+n)
						}
						row += tr.Len()
					}
					if len(which) == 0 {
						continue
					}
					in, o := e.Mat(nil, len(which), a.QKVCols()), e.Mat(nil, len(which), a.Heads*dim)
					for i, w := range which {
						copy(in.Row(i), x[w*in.Cols:])
						if try == 0 {
							in.Row(i)[0]++ // an attempt that is overwritten has no effect
						}
					}
					e.Attend(a, 0, f, in, o)
					if try == 1 {
						ins = append(ins, in)
						outs = append(outs, o)
						at = append(at, which)
					}
				}
			}
			for p, o := range outs {
				d, _ := Grad(o)
				for i, w := range at[p] {
					out[w] = o.Row(i)
					copy(d.Row(i), weight[w*d.Cols:])
				}
			}
			tape.Backward()
			for p, in := range ins {
				d, _ := Grad(in)
				for i, w := range at[p] {
					dx[w] = slices.Clone(d.Row(i))
					out[w] = slices.Clone(out[w])
				}
			}
			for _, p := range params.All() {
				dw = append(dw, slices.Clone(p.Grad))
			}
			return out, dx, dw
		}
		out, dx, dw := run(func(i, p int) int { return p * trees[i].Len() }, 1, false)
		gotOut, gotX, gotW := run(func(i, p int) int { return cuts[i][p] }, passes, rapid.Bool().Draw(t, "again"))
		for w := range out {
			if !slices.Equal(out[w], gotOut[w]) {
				t.Fatalf("row %d is %v in %d passes, %v in one", w, gotOut[w], passes, out[w])
			}
		}
		for _, pair := range [][2][][]float32{{dx, gotX}, {dw, gotW}} {
			size := 0.0
			for _, v := range slices.Concat(pair[0]...) {
				size = max(size, math.Abs(float64(v)))
			}
			for i, want := range pair[0] {
				for j, v := range want {
					if d := math.Abs(float64(v - pair[1][i][j])); !(d <= 1e-4*size) {
						t.Fatalf("gradient %d of row %d is %g in %d passes, %g in one", j, i, pair[1][i][j], passes, v)
					}
				}
			}
		}
	})
}
