package gemm

import (
	"math"
	"testing"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"pgregory.net/rapid"
)

// The law of bands: every result is the one that Mul computes, to the bit, at the place that its run says; and
// nothing else is written, whatever the bands, the ranges of panels and the level.
func TestMulBandsIsMul(t *testing.T) {
	levels(t, func(t *testing.T, l cpu.Level) {
		rapid.Check(t, func(t *rapid.T) {
			typ := rapid.SampledFrom(allTypes).Draw(t, "type")
			n, in := rapid.IntRange(1, 90).Draw(t, "n"), rapid.IntRange(1, 130).Draw(t, "in")
			if rapid.Bool().Draw(t, "deep") { // many slices of k
				n, in = 1+n%12, 20*in
			}
			c := newCase(t, typ, rapid.IntRange(1, 300).Draw(t, "out"), in, n)
			panels := c.m.Panels()
			var x Input
			x.Reset(typ, c.n, c.in)
			for i, row := range c.rows {
				x.SetRow(i, row)
			}
			all := make([]float32, c.n*c.out)
			c.m.Mul(all, c.out, &x, 0, panels)

			bands, width := drawBands(t, c.n, panels)
			stride := width*Panel + rapid.IntRange(0, 40).Draw(t, "gap")
			const guard = 12345
			want, got := make([]float32, c.n*stride), make([]float32, c.n*stride)
			for i := range want {
				want[i], got[i] = guard, guard
			}
			for _, b := range bands {
				for r := b.From; r < b.To; r++ {
					for _, run := range b.Runs {
						for p := run.From; p < run.To; p++ {
							copy(want[r*stride+(run.At+p-run.From)*Panel:], all[r*c.out+p*Panel:r*c.out+min((p+1)*Panel, c.out)])
						}
					}
				}
			}
			for p := 0; p < panels; {
				next := rapid.IntRange(p+1, panels).Draw(t, "task")
				c.m.MulBands(got, stride, &x, bands, p, next)
				p = next
			}
			for i := range want {
				if !same(got[i], want[i]) {
					t.Fatalf("%v at %v: row %d column %d is %x (%#08x), want %x", typ, l, i/stride, i%stride, got[i],
						math.Float32bits(got[i]), want[i])
				}
			}
		})
	})
}

// drawBands draws bands of n rows over some of the panels, in runs, and the greatest number that one wants.
func drawBands(t *rapid.T, n, panels int) (bands []Band, width int) {
	for r := 0; r < n; {
		b := Band{From: r, To: rapid.IntRange(r, n).Draw(t, "rows")}
		if rapid.Bool().Draw(t, "narrow") {
			b.To = min(b.To, r+1)
		}
		at := 0
		for p := rapid.IntRange(0, panels).Draw(t, "first"); p < panels; {
			to := rapid.IntRange(p+1, min(panels, p+5)).Draw(t, "run")
			b.Runs = append(b.Runs, Run{p, to, at})
			at += to - p
			p = to + rapid.IntRange(0, 4).Draw(t, "apart")
		}
		width = max(width, at)
		r = max(b.To, r+rapid.IntRange(0, 1).Draw(t, "unwanted"))
		bands = append(bands, b)
	}
	return bands, width
}

// More bands than share a reading, each of one row.
func TestMulBandsMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCase(t, Q8_0, 200, 64, 3*abreast/2)
		var x Input
		x.Reset(c.typ, c.n, c.in)
		var bands []Band
		for i, row := range c.rows {
			x.SetRow(i, row)
			p := i % c.m.Panels()
			bands = append(bands, Band{i, i + 1, []Run{{p, p + 1, 0}}})
		}
		all, got := make([]float32, c.n*c.out), make([]float32, c.n*Panel)
		c.m.Mul(all, c.out, &x, 0, c.m.Panels())
		c.m.MulBands(got, Panel, &x, bands, 0, c.m.Panels())
		for i := range c.n {
			p := i % c.m.Panels()
			for o := range min(Panel, c.out-p*Panel) {
				if !same(got[i*Panel+o], all[i*c.out+p*Panel+o]) {
					t.Fatalf("row %d, output %d: %x, want %x", i, p*Panel+o, got[i*Panel+o], all[i*c.out+p*Panel+o])
				}
			}
		}
	})
}

func TestMulBandsAllocatesNothing(t *testing.T) {
	m, err := New(BF16, 10*Panel, 64)
	if err != nil {
		t.Fatal(err)
	}
	var x Input
	x.Reset(BF16, 3, 64)
	for i := range 3 {
		x.SetRow(i, make([]float32, 64))
	}
	dst := make([]float32, 3*4*Panel)
	bands := []Band{{0, 2, []Run{{1, 3, 0}, {5, 6, 2}}}, {2, 3, []Run{{2, 4, 0}}}}
	if n := testing.AllocsPerRun(10, func() {
		m.MulBands(dst, 4*Panel, &x, bands, 0, 10)
		m.MulBands(dst, 4*Panel, &x, bands[:1], 0, 10)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// What has no place is refused before anything is written.
func TestMulBandsRefuses(t *testing.T) {
	m, err := New(F32, 3*Panel, 8)
	if err != nil {
		t.Fatal(err)
	}
	var x Input
	x.Reset(F32, 2, 8)
	for name, b := range map[string]Band{
		"rows":    {0, 3, []Run{{0, 1, 0}}},
		"panels":  {0, 2, []Run{{2, 4, 0}}},
		"order":   {0, 2, []Run{{0, 2, 0}, {1, 3, 2}}},
		"results": {0, 2, []Run{{0, 1, 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			m.MulBands(make([]float32, 2*2*Panel), 2*Panel, &x, []Band{b}, 0, 3)
		})
	}
}

// A matrix whose rows were copied in another order is the one packed from them in that order.
func TestCopyRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(allTypes).Draw(t, "type")
		c := newCase(t, typ, rapid.IntRange(1, 70).Draw(t, "out"), rapid.IntRange(1, 200).Draw(t, "in"), 0)
		order := rapid.SliceOfN(rapid.IntRange(0, c.out-1), 1, 80).Draw(t, "order")
		m, err := New(typ, len(order), c.in)
		if err != nil {
			t.Fatal(err)
		}
		size := typ.rowBytes(c.in)
		var src []byte
		for i, o := range order {
			m.CopyRow(i, c.m, o)
			src = append(src, c.src[o*size:(o+1)*size]...)
		}
		want := pack(t, typ, len(order), c.in, src)
		got, expected := make([]float32, c.in), make([]float32, c.in)
		for i := range order {
			m.Row(got, i)
			want.Row(expected, i)
			for k := range got {
				if !same(got[k], expected[k]) {
					t.Fatalf("%v: row %d, element %d: %x, want %x", typ, i, k, got[k], expected[k])
				}
			}
		}
	})
}
