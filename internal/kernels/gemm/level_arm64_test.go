//go:build !purego

package gemm

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/grovellm/grove/internal/kernels/cpu"
)

// Where the processor has the level, every type runs its kernels, and every kernel is some number
// of rows'. Otherwise every other test here passes by testing less.
func TestEveryKernelIsReached(t *testing.T) {
	if cpu.Best() < cpu.NEON {
		t.Skip("this processor has no SDOT")
	}
	reached := map[int]bool{}
	for _, l := range []cpu.Level{cpu.NEON, cpu.I8MM} {
		for _, typ := range allTypes {
			for n := 1; n <= 20; n++ {
				e, ok := engineFor(typ, l, false)
				if !ok {
					t.Fatalf("%v has no kernel", typ)
				}
				e.forRows(n)
				if e.wide != 0 && n >= e.many {
					e = engineOf(e.wide)
				}
				reached[e.id] = true
				if e.lanes == 0 || Panel%e.lanes != 0 || e.rows == 0 || e.lanes < Panel && n == 1 && !typ.coded() {
					t.Errorf("%v, %d rows: kernel %d takes %d outputs of %d rows", typ, n, e.id, e.lanes, e.rows)
				}
			}
		}
	}
	for _, typ := range []Type{F32, BF16} {
		e, ok := packedEngine(typ, cpu.NEON)
		reached[e.id] = true
		if !ok {
			t.Errorf("packed %v has no kernel", typ)
		}
	}
	for id := 1; id < len(engines); id++ {
		if !reached[id] {
			t.Errorf("nothing calls kernel %d", id)
		}
	}
}

// Every kernel multiplies any number of rows it may be given, and goes on from sums that were put
// by, whether or not a product now asks it to.
func TestKernelsAlone(t *testing.T) {
	if cpu.Best() < cpu.NEON {
		t.Skip("this processor has no SDOT")
	}
	r := rand.New(rand.NewPCG(15, 16))
	const out = 2*Panel + 5
	for typ, ids := range map[Type][]int{
		F32: {idF32Few, idF32}, F16: {idF16Few, idF16}, BF16: {idBF16Few, idBF16}, Q8_0: {idQ8One, idQ8Few, idQ8, idWideQ8,
			idQ8FewI8MM, idQ8I8MM, idWideQ8I8MM},
		Q4_0: {idQ40One, idQ40Few, idQ40, idWide40, idWide40I8MM}, Q4_1: {idQ41One, idQ41Few, idQ41, idWide41, idWide41I8MM},
		Q5_0: {idQ50One, idQ50Few, idQ50, idWide50, idWide50I8MM}, Q5_1: {idQ51One, idQ51Few, idQ51, idWide51, idWide51I8MM},
		IQ4_NL: {idIQ4NLOne, idIQ4NLFew, idIQ4NL, idWideIQ4NL, idWideIQ4NLI8MM}, MXFP4: {idMXFP4One, idMXFP4Few, idMXFP4,
			idWideMXFP4, idWideMXFP4I8MM},
		Q4_K: {idQ4KOne, idQ4KFew, idQ4K, idWide4K, idWide4KI8MM}, Q5_K: {idQ5KOne, idQ5KFew, idQ5K, idWide5K,
			idWide5KI8MM}, Q6_K: {idQ6KOne, idQ6KFew, idQ6K, idWide6K, idWide6KI8MM},
		Q2_K: {idQ2KOne, idQ2KFew, idQ2K}, Q3_K: {idQ3KOne, idQ3KFew, idQ3K, idWide3K, idWide3KI8MM},
	} {
		for _, in := range []int{2*super - 2, sliceBytes/stepBytes[typ]*stepK[typ]*5/4 + 7} { // one slice, and two
			in = (in + typ.whole() - 1) / typ.whole() * typ.whole()
			m := pack(t, typ, out, in, fileRows(r, typ, out, in, false))
			var x Input
			const n = 13
			x.reset(typ.Activations(), n, in, cpu.NEON, false)
			row := make([]float32, in)
			for i := range n {
				for k := range row {
					row[k] = value(r, false)
				}
				x.SetRow(i, row)
			}
			want, got := make([]float32, n*out), make([]float32, n*out)
			mulPortable(m, want, out, 0, &x, 0, n, 0, 0, m.Panels())
			for _, id := range ids {
				e := engineOf(id)
				e.few, e.wide = 0, 0
				if !cpu.Has(cpu.I8MM) && (id == idQ8FewI8MM || id == idQ8I8MM || id >= idWideQ8I8MM && id <= idWide3KI8MM) {
					continue
				}
				if id >= idWideQ8 && id <= idWide3KI8MM {
					e.wide, e.many = id, 1
				}
				for rows := 1; rows <= n; rows++ {
					clear(got)
					pass{e: e, m: m, dst: got, stride: out, x: &x, r1: rows}.run(0, m.Panels())
					for i := range rows * out {
						if !same(got[i], want[i]) {
							t.Fatalf("%v × %d, kernel %d, %d rows: row %d output %d is %x, want %x", typ, in, id, rows, i/out,
								i%out, got[i], want[i])
						}
					}
					if rows > e.rows {
						continue
					}
					clear(got)
					inTwo(&e, m, &x, rows, got, out)
					for i := range rows * out {
						if w := want[i]; i%out < Panel && !same(got[i], w) {
							t.Fatalf("%v × %d, kernel %d, %d rows in two parts: row %d output %d is %x, want %x", typ, in, id, rows, i/out, i%out, got[i], w)
						}
					}
				}
			}
		}
	}
}

// inTwo multiplies the first panel by so many rows in one call of a kernel, or one for each part of
// the panel, up to somewhere, and another from there on.
func inTwo(e *engine, m *Matrix, x *Input, rows int, dst []float32, stride int) {
	var sums [8 * Panel]float32
	total := steps(m.t, m.in)
	mid := max(1, total/3)
	bytes, w := stepBytes[m.t], unsafe.Pointer(&m.data[0])
	if e.wide != 0 {
		bytes = wideStep
		if m.t < Q4_K {
			bytes = (4*blockTypes[m.t].head/(2*Panel) + block) * Panel
		}
		b := make([]byte, total*bytes+64)
		e.unpack(unsafe.Pointer(&b[0]), w, total)
		w = unsafe.Pointer(&b[0])
	}
	for i := range Panel / e.lanes {
		t := tile{
			w: unsafe.Add(w, i*partBytes(m.t, e.lanes)), scale: unsafe.Add(w, i*e.lanes*2), x: unsafe.Pointer(&x.buf[0]),
			xs: uintptr(x.stride),
			n:  uintptr(mid), rows: uintptr(rows), first: 1, out: unsafe.Pointer(&sums[i*e.lanes]), outs: Panel * 4,
			pf: uintptr(w), pfs: 64,
		}
		e.run(&t)
		t.w, t.scale = unsafe.Add(t.w, mid*bytes), unsafe.Add(t.scale, mid*bytes)
		t.x = unsafe.Add(t.x, xOffset(m.t, mid, false))
		t.n = uintptr(total - mid)
		t.first = 0
		t.acc = t.out
		t.out = unsafe.Pointer(&dst[i*e.lanes])
		t.outs = uintptr(stride * 4)
		e.run(&t)
	}
}
