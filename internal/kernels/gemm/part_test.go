package gemm

import (
	"math"
	"testing"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/testing/cases"
	"pgregory.net/rapid"
)

// A product in parts, of rows and of panels, is the product, to the bit, wherever the results of a
// part lie and whatever the worker was told of what comes next; and nothing else is written.
func TestPartsAreTheProduct(t *testing.T) {
	levels(t, func(t *testing.T, l cpu.Level) {
		cases.Check(t, 60, func(t *rapid.T) {
			typ := rapid.SampledFrom(allTypes).Draw(t, "type")
			c := newCase(t, typ, rapid.IntRange(1, 300).Draw(t, "out"), rapid.IntRange(1, 700).Draw(t, "in"),
				rapid.IntRange(1, 90).Draw(t, "n"))
			panels := c.m.Panels()
			var x Input
			x.Reset(typ, c.n, c.in)
			for i, row := range c.rows {
				x.SetRow(i, row)
			}
			want := make([]float32, c.n*c.out)
			c.m.Mul(want, c.out, &x, 0, panels)

			var fetched Place
			scratch := []*Scratch{nil, new(Scratch)}
			for r := 0; r < c.n; {
				to := rapid.IntRange(r+1, c.n).Draw(t, "rows")
				for p := 0; p < panels; {
					next := rapid.IntRange(p+1, panels).Draw(t, "panels")
					base := rapid.IntRange(0, p).Draw(t, "base")
					from, end := (p-base)*Panel, min(next*Panel, c.out)-base*Panel
					a := Part{X: &x, From: r, To: to, P0: p, P1: next, Base: base, Stride: end + rapid.IntRange(0, 40).Draw(t, "gap"),
						Fetched: fetched}
					a.Scratch = rapid.SampledFrom(scratch).Draw(t, "scratch")
					fetched = rapid.SampledFrom([]Place{{}, {c.m, next}, {c.m, p}}).Draw(t, "next")
					a.Next = fetched
					const guard = 12345
					a.Dst = make([]float32, (to-r)*a.Stride)
					for i := range a.Dst {
						a.Dst[i] = guard
					}
					c.m.MulPart(a)
					for i, got := range a.Dst {
						w, o := float32(guard), i%a.Stride
						if o >= from && o < end {
							w = want[(r+i/a.Stride)*c.out+base*Panel+o]
						}
						if !same(got, w) {
							t.Fatalf("%v at %v: rows from %d, panels [%d, %d) from %d: result %d is %x (%#08x), want %x", typ, l, r, p, next, base, i, got,
								math.Float32bits(got), w)
						}
					}
					p = next
				}
				r = to
			}
		})
	})
}

// A row set part by part is the row.
func TestPartsOfARow(t *testing.T) {
	levels(t, func(t *testing.T, l cpu.Level) {
		rapid.Check(t, func(t *rapid.T) {
			typ := rapid.SampledFrom(allTypes).Draw(t, "type")
			c := newCase(t, typ, rapid.IntRange(1, 70).Draw(t, "out"), rapid.IntRange(1, 700).Draw(t, "in"), 1)
			var whole, parts Input
			whole.Reset(typ, 1, c.in)
			parts.Reset(typ, 1, c.in)
			whole.SetRow(0, c.rows[0])
			for at := 0; at < c.in; {
				end := min(at+Group*rapid.IntRange(1, 3).Draw(t, "groups"), c.in)
				parts.SetPart(0, at, c.rows[0][at:end])
				at = end
			}
			want, got := make([]float32, c.out), make([]float32, c.out)
			c.m.Mul(want, c.out, &whole, 0, c.m.Panels())
			c.m.Mul(got, c.out, &parts, 0, c.m.Panels())
			for i := range want {
				if !same(got[i], want[i]) {
					t.Fatalf("%v at %v: output %d is %x, want %x", typ, l, i, got[i], want[i])
				}
			}
		})
	})
}
