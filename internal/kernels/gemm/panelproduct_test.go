package gemm

import (
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/kernels/num"
	"pgregory.net/rapid"
)

// A product by a panel in the caller's memory, its inputs in pieces, is that of the matrix it is a
// panel of, for any rows of it, and nothing else is written.
func TestPanelProductsAreTheMatrix(t *testing.T) {
	levels(t, func(t *testing.T, l cpu.Level) {
		rapid.Check(t, func(t *rapid.T) {
			typ, in := BF16, rapid.IntRange(1, 300).Draw(t, "in")
			if rapid.Bool().Draw(t, "blocks") {
				typ, in = Q8_0, (in+block-1)/block*block
			}
			c := newCase(t, typ, rapid.IntRange(1, 100).Draw(t, "out"), in, rapid.IntRange(1, 40).Draw(t, "n"))
			var x Input
			x.Reset(typ, c.n, c.in)
			for i, row := range c.rows {
				x.SetRow(i, row)
			}
			want := make([]float32, c.n*c.out)
			c.m.Mul(want, c.out, &x, 0, c.m.Panels())

			p := rapid.IntRange(0, c.m.Panels()-1).Draw(t, "panel")
			from := rapid.IntRange(0, c.n-1).Draw(t, "from")
			to := rapid.IntRange(from, c.n).Draw(t, "to")
			total, size := steps(typ, c.in), stepBytes[typ]
			w := c.m.data[p*c.m.panel:][:c.m.panel]
			const guard = 12345
			dst := make([]float32, (to-from)*Panel+Panel)
			for i := range dst {
				dst[i] = guard
			}
			stride := Panel
			products := x.ByPanels(from, to)
			for k := 0; k < total; {
				n := rapid.IntRange(1, total-k).Draw(t, "inputs")
				if k == 0 && n == total {
					stride += rapid.IntRange(0, 20).Draw(t, "gap")
					dst = append(dst, make([]float32, (to-from)*(stride-Panel))...)
					for i := range dst {
						dst[i] = guard
					}
				}
				var next []byte
				if rapid.Bool().Draw(t, "next") {
					next = w
				}
				products.Mul(dst, stride, k*stepK[typ], w[k*size:(k+n)*size], next, k > 0)
				k += n
			}
			for i, got := range dst {
				v := float32(guard)
				r := from + i/stride
				o := p*Panel + i%stride
				if r < to && i%stride < Panel {
					if o >= c.out {
						continue
					}
					v = want[r*c.out+o]
				}
				if !same(got, v) {
					t.Fatalf("at %v: result %d, row %d, output %d is %x, want %x", l, i, r, o, got, v)
				}
			}
		})
	})
}

// An element of weight 0 changes no sum, wherever it stands: what rows do not see may lie among what they do.
func TestZeroWeightsAreNothing(t *testing.T) {
	levels(t, func(t *testing.T, l cpu.Level) {
		rapid.Check(t, func(t *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
			in := rapid.IntRange(1, 60).Draw(t, "inputs")
			wild := rapid.Bool().Draw(t, "wild")
			product := func(ks []int, w [][]float32, x []float32) [Panel]float32 {
				panel := make([]byte, (len(ks)+1)/2*Panel*4)
				row := make([]float32, (len(ks)+1)&^1)
				for i, k := range ks {
					j := i ^ 1 // the higher half goes first
					row[j] = x[k]
					for o := range Panel {
						u := num.ToBF16(w[k][o])
						panel[(i/2*Panel+o)*4+j%2*2], panel[(i/2*Panel+o)*4+j%2*2+1] = byte(u), byte(u>>8)
					}
				}
				var in Input
				in.Reset(BF16, 1, len(row))
				in.SetRow(0, row)
				var dst [Panel]float32
				products := in.ByPanels(0, 1)
				products.Mul(dst[:], Panel, 0, panel, nil, false)
				return dst
			}
			var all, seen []int
			x := make([]float32, in)
			w := make([][]float32, in)
			for k := range in {
				all = append(all, k)
				w[k] = make([]float32, Panel)
				for o := range w[k] {
					w[k][o] = value(r, wild)
				}
				if r.IntN(3) > 0 {
					seen = append(seen, k)
					x[k] = value(r, wild)
				}
			}
			got, want := product(all, w, x), product(seen, w, x)
			for o := range got {
				if got[o] != want[o] { // zeros of either sign are one
					t.Fatalf("at %v: output %d is %x among elements of weight 0, %x without them", l, o, got[o], want[o])
				}
			}
		})
	})
}

// Numbers are rounded to bf16 as rows of inputs are, at every level.
func TestRoundBF16(t *testing.T) {
	levels(t, func(t *testing.T, l cpu.Level) {
		r := rand.New(rand.NewPCG(uint64(l), 9))
		for n := range 70 {
			v := make([]float32, n)
			for i := range v {
				v[i] = value(r, true)
			}
			got := make([]uint16, n)
			RoundBF16(got, v)
			for i, u := range got {
				if u != toBF16(v[i]) {
					t.Fatalf("at %v: %x of %d is rounded to %#x, want %#x", l, v[i], n, u, toBF16(v[i]))
				}
			}
		}
	})
}

// Several panels at once are one after the other, for any number of rows and panels, from zero or going on.
func TestPanelProductsTogether(t *testing.T) {
	levels(t, func(t *testing.T, l cpu.Level) {
		rapid.Check(t, func(t *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
			wild := rapid.Bool().Draw(t, "wild")
			n := rapid.IntRange(1, 5).Draw(t, "rows")
			panels := rapid.IntRange(0, 9).Draw(t, "panels")
			steps := rapid.IntRange(1, 40).Draw(t, "steps")
			at := 2 * rapid.IntRange(0, 3).Draw(t, "at")
			row := make([]float32, at+2*steps)
			var x Input
			x.Reset(BF16, n, len(row))
			for i := range n {
				for k := range row {
					row[k] = value(r, wild)
				}
				x.SetRow(i, row)
			}
			ws, nexts := make([][]byte, panels), make([][]byte, panels)
			for p := range ws {
				ws[p] = make([]byte, steps*Panel*4)
				for i := 0; i < len(ws[p]); i += 2 {
					u := num.ToBF16(value(r, wild))
					ws[p][i], ws[p][i+1] = byte(u), byte(u>>8)
				}
				if r.IntN(2) == 0 {
					nexts[p] = ws[r.IntN(p+1)]
				}
			}
			add := rapid.Bool().Draw(t, "add")
			stride, apart := Panel, n*Panel+rapid.IntRange(0, 9).Draw(t, "gap")
			if !add && rapid.Bool().Draw(t, "side by side") {
				stride, apart = panels*Panel+rapid.IntRange(0, 9).Draw(t, "more"), Panel
				stride = max(stride, Panel)
			}
			got := make([]float32, panels*apart+n*stride+Panel)
			for i := range got {
				got[i] = value(r, false)
			}
			want := append([]float32(nil), got...)
			from := rapid.IntRange(0, n-1).Draw(t, "from")
			products := x.ByPanels(from, n)
			products.MulAll(got, apart, stride, at, ws, nexts, add)
			for p := range ws {
				products.Mul(want[p*apart:], stride, at, ws[p], nil, add)
			}
			for i := range want {
				if !same(got[i], want[i]) {
					t.Fatalf("at %v: result %d is %x, want %x", l, i, got[i], want[i])
				}
			}
		})
	})
}
