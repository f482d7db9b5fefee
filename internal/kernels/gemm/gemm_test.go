package gemm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/kernels/num"
	"github.com/grovellm/grove/internal/testing/cases"
	"pgregory.net/rapid"
)

var allTypes = []Type{F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4, Q4_K, Q5_K, Q6_K, Q2_K, Q3_K,
	IQ1_S, IQ1_M, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S, TQ1_0, TQ2_0, Q1_0, Q2_0}

// levels runs f at every level this processor has.
func levels(t *testing.T, f func(t *testing.T, l cpu.Level)) {
	for _, l := range cpu.Levels() {
		t.Run(l.String(), func(t *testing.T) {
			defer cpu.Use(l)()
			f(t, l)
		})
	}
}

// The law of this package: every element of a product is the scalar definition, at every
// level, for every shape, number of rows and range of panels, and nothing else is written.
func TestMulIsTheDefinition(t *testing.T) {
	levels(t, func(t *testing.T, l cpu.Level) {
		cases.Check(t, 60, func(t *rapid.T) {
			typ := rapid.SampledFrom(allTypes).Draw(t, "type")
			out := rapid.IntRange(1, 100).Draw(t, "out")
			in := rapid.IntRange(1, 300).Draw(t, "in")
			n := rapid.IntRange(1, 20).Draw(t, "n")
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0: // many rows: several chunks
				n, in = rapid.IntRange(1, 140).Draw(t, "rows"), 1+in%80
			case 1: // many slices of k
				in, out = 1+in*5, 1+out%40
			}
			c := newCase(t, typ, out, in, n)
			c.compare(t, func(o, r int) float32 { return scalar(typ, c.src[o*typ.rowBytes(c.in):], c.rows[r]) })
		})
	})
}

// Any tiling gives the same bits: rows one by one or together, panels in any ranges, at any
// level. (Sizes where the scalar definition would take too long.)
func TestMulTilings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(allTypes).Draw(t, "type")
		c := newCase(t, typ, rapid.IntRange(1, 200).Draw(t, "out"), rapid.IntRange(1, 1500).Draw(t, "in"),
			rapid.IntRange(1, 70).Draw(t, "n"))
		one := make([]float32, c.n*c.out)
		var x Input
		func() {
			defer cpu.Use(cpu.Levels()[min(1, len(cpu.Levels())-1)])()
			x.Reset(typ, 1, c.in)
			for r, row := range c.rows {
				x.SetRow(0, row)
				for p := range c.m.Panels() {
					c.m.Mul(one[r*c.out:][:c.out], c.out, &x, p, p+1)
				}
			}
		}()
		for _, l := range cpu.Levels() {
			if l == cpu.Portable {
				continue // the definition's own test
			}
			func() {
				defer cpu.Use(l)()
				c.compare(t, func(o, r int) float32 { return one[r*c.out+o] })
			}()
		}
	})
}

// There is a body for each number of rows, in kernels for few and for more of them: each is the portable code.
func TestEveryNumberOfRows(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	const out = 2*Panel + 5
	for _, typ := range allTypes {
		in := 3*typ.whole() + 2*Panel // of Q8_0 a group and a part of one
		in = (in + typ.whole() - 1) / typ.whole() * typ.whole()
		if !typ.integer() {
			in = 23
		}
		m := pack(t, typ, out, in, fileRows(r, typ, out, in, false))
		for n := 1; n <= 20; n++ {
			row, want := make([]float32, in), []float32(nil)
			seed := r.Uint64()
			for _, l := range cpu.Levels() {
				restore := cpu.Use(l)
				r := rand.New(rand.NewPCG(seed, 0))
				var x Input
				x.Reset(typ, n, in)
				for i := range n {
					for k := range row {
						row[k] = value(r, false)
					}
					x.SetRow(i, row)
				}
				got := make([]float32, n*out)
				m.Mul(got, out, &x, 0, m.Panels())
				restore()
				if want == nil {
					want = got
				}
				for i := range got {
					if !same(got[i], want[i]) {
						t.Fatalf("%v, %d rows, at %v: row %d output %d is %x, want %x", typ, n, l, i/out, i%out, got[i], want[i])
					}
				}
			}
		}
	}
}

// A testCase is a matrix, rows to multiply it by, and what to multiply of it.
type testCase struct {
	typ        Type
	out, in, n int
	wild       bool
	src        []byte
	m          *Matrix
	rows       [][]float32
	stride     int
	p0, p1     int
}

func newCase(t *rapid.T, typ Type, out, in, n int) *testCase {
	in = (in + typ.whole() - 1) / typ.whole() * typ.whole()
	c := &testCase{typ: typ, out: out, in: in, n: n, wild: rapid.Bool().Draw(t, "wild")}
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	c.src = fileRows(r, typ, out, in, c.wild)
	c.m = pack(t, typ, out, in, c.src)
	for range n {
		row := make([]float32, in)
		for k := range row {
			row[k] = value(r, c.wild)
		}
		if c.wild && r.IntN(30) == 0 {
			row[r.IntN(in)] = []float32{float32(math.Inf(1)), float32(math.NaN()), -math.MaxFloat32}[r.IntN(3)]
		}
		c.rows = append(c.rows, row)
	}
	c.stride = out + rapid.IntRange(0, 40).Draw(t, "gap")
	c.p0 = rapid.IntRange(0, c.m.Panels()-1).Draw(t, "p0")
	c.p1 = rapid.IntRange(c.p0+1, c.m.Panels()).Draw(t, "p1")
	return c
}

// compare multiplies at the active level and holds every element of dst against want.
func (c *testCase) compare(t *rapid.T, want func(o, r int) float32) {
	const guard = 12345
	var x Input
	x.Reset(c.typ, c.n, c.in)
	for i, row := range c.rows {
		x.SetRow(i, row)
	}
	dst := make([]float32, c.n*c.stride)
	for i := range dst {
		dst[i] = guard
	}
	c.m.Mul(dst[:(c.n-1)*c.stride+c.out], c.stride, &x, c.p0, c.p1)
	for i, got := range dst {
		w := float32(guard)
		o := i % c.stride
		r := i / c.stride
		if o >= c.p0*Panel && o < min(c.p1*Panel, c.out) {
			w = want(o, r)
		}
		if !same(got, w) {
			t.Fatalf("%v at %v: row %d output %d is %x (%#08x), want %x (%#08x)", c.typ, cpu.Active(), r, o,
				got, math.Float32bits(got), w, math.Float32bits(w))
		}
	}
}

func TestRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(allTypes).Draw(t, "type")
		c := newCase(t, typ, rapid.IntRange(1, 70).Draw(t, "out"), rapid.IntRange(1, 200).Draw(t, "in"), 0)
		o := rapid.IntRange(0, c.out-1).Draw(t, "row")
		got := make([]float32, c.in)
		c.m.Row(got, o)
		for k, v := range got {
			if want := weight(typ, c.src[o*typ.rowBytes(c.in):], k); !same(v, want) {
				t.Fatalf("%v: Row(%d)[%d] = %g, want %g", typ, o, k, v, want)
			}
		}
	})
}

// value draws an activation or weight: mostly ordinary, with zeros, outliers and, when
// wild, magnitudes down to the subnormals and up to where sums overflow.
func value(r *rand.Rand, wild bool) float32 {
	v := float32(r.NormFloat64())
	switch r.IntN(40) {
	case 0:
		return 0
	case 1:
		return float32(math.Copysign(0, -1))
	case 2:
		return v * 100
	}
	if wild {
		switch r.IntN(6) {
		case 0:
			return math.Float32frombits(r.Uint32() & 0x807fffff) // subnormal
		case 1:
			return v * float32(math.Ldexp(1, r.IntN(24)-138))
		case 2:
			return v * float32(math.Ldexp(1, r.IntN(240)-120))
		case 3:
			return v * float32(math.Ldexp(1, -60-r.IntN(8))) // products at the subnormals' edge
		}
	}
	return v
}

// The integers and the scale of a block of Q8_0 come no less near to it than those for steps of its
// largest magnitude / 127, or / 126, and no other scale would bring the integers nearer.
func TestScaleIsFitted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		g := make([]float32, block)
		for i := range g {
			g[i] = value(r, false)
		}
		if r.IntN(4) == 0 {
			g[r.IntN(block)] *= float32(math.Ldexp(1, r.IntN(40)-20))
		}
		distance := func(q []int, scale float64) (sum float64) {
			for i, v := range g {
				d := float64(v) - scale*float64(q[i])
				sum += d * d
			}
			return sum
		}
		plain, step := quantized(g)
		q, scale := fitted(g)
		if step == 0 {
			if scale != 0 {
				t.Fatalf("the scale of zeros is %g", scale)
			}
			return
		}
		narrow := make([]int, block)
		var vq, qq, vv float64
		for i, v := range g {
			narrow[i] = int(math.RoundToEven(float64(v) / float64(step) * 126 / 127))
			vq += float64(v) * float64(q[i])
			qq += float64(q[i] * q[i])
			vv += float64(v) * float64(v)
		}
		if best := vq / qq; math.Abs(float64(scale)-best) > 1e-6*best {
			t.Fatalf("the scale is %g, the best for the integers %g", scale, best)
		}
		rounding := 1e-6 * vv
		got := distance(q, float64(scale))
		if most := min(distance(plain, float64(step)), distance(narrow, float64(step)*127/126)); got > most+rounding {
			t.Fatalf("the square of the distance is %g, that of a scale not fitted %g", got, most)
		}
	})
}

// fmaFlushBig is fmaFlush by exact arithmetic, where the operands are finite.
func fmaFlushBig(a, b, c float32) float32 {
	a = flush(a)
	b = flush(b)
	c = flush(c)
	plain := num.FMA(a, b, c)
	if math.Abs(float64(plain)) > 0x1p-126 || plain != plain || plain == 0 && (a == 0 || b == 0) {
		return plain
	}
	x := new(big.Float).SetPrec(600).SetFloat64(float64(a))
	x.Mul(x, new(big.Float).SetFloat64(float64(b)))
	x.Add(x, new(big.Float).SetFloat64(float64(c)))
	if x.Sign() == 0 {
		return plain
	}
	y := new(big.Float).SetPrec(24).SetMode(big.ToNearestEven).Set(x)
	if y.Cmp(big.NewFloat(0x1p-126)) < 0 && y.Cmp(big.NewFloat(-0x1p-126)) > 0 {
		return float32(math.Copysign(0, float64(x.Sign())))
	}
	f, _ := y.Float32()
	return f
}

// same says that two results are the same bits, all NaNs being one.
func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

func pack(t interface{ Fatal(...any) }, typ Type, out, in int, src []byte) *Matrix {
	m, err := New(typ, out, in)
	if err != nil {
		t.Fatal(err)
	}
	mid := m.Panels() / 2
	m.PackPanels(src, mid, m.Panels())
	m.PackPanels(src, 0, mid)
	return m
}

// A row that counts steps of its largest magnitude / 127 is exact with one scale for all of it, which groups with
// scales of their own would round again.
func TestWholeRows(t *testing.T) {
	levels(t, func(t *testing.T, _ cpu.Level) {
		r := rand.New(rand.NewPCG(5, 6))
		for _, typ := range []Type{F32, Q8_0, Q4_K, TQ2_0} {
			const in = 512
			src := fileRows(r, typ, 1, in, false)
			v := make([]float32, in)
			sum, size := 0.0, 0.0
			for i := range v {
				v[i] = float32(r.IntN(255)-127) / 16
				if i == 300 {
					v[i] = 127.0 / 16
				}
				p := float64(v[i]) * float64(weight(typ, src, i))
				sum += p
				size += math.Abs(p)
			}
			var x Input
			x.Reset(typ, 1, in)
			x.SetWholeRow(0, v)
			y, m := make([]float32, 1), pack(t, typ, 1, in, src)
			m.Mul(y, 1, &x, 0, m.Panels())
			if d := math.Abs(float64(y[0]) - sum); !(d <= 1e-6*size) {
				t.Errorf("%v: a product is %g, want %g", typ, y[0], sum)
			}
		}
	})
}

func ExampleMatrix_Mul() {
	m, _ := New(F32, 2, 3) // [[1 2 3] [4 5 6]]
	src := make([]byte, 0, 24)
	for v := range 6 {
		src = binary.LittleEndian.AppendUint32(src, math.Float32bits(float32(v+1)))
	}
	m.PackPanels(src, 0, m.Panels())
	var x Input
	x.Reset(F32, 1, 3)
	x.SetRow(0, []float32{1, 0, -1})
	y := make([]float32, 2)
	m.Mul(y, 2, &x, 0, m.Panels())
	fmt.Println(y)
	// Output: [-2 -2]
}

// No two outputs share a byte, so that rows of a panel may be copied side by side.
func TestRowsApart(t *testing.T) {
	for _, typ := range allTypes {
		in := 3 * typ.whole()
		src := pack(t, typ, Panel, in, bytes.Repeat([]byte{0xff}, Panel*typ.rowBytes(in)))
		for i := range src.data {
			src.data[i] = 0xff
		}
		owner := make([]int, len(src.data))
		for o := range Panel {
			dst, err := New(typ, Panel, in)
			if err != nil {
				t.Fatal(err)
			}
			dst.CopyRow(o, src, Panel-1-o)
			for i, b := range dst.data {
				switch {
				case b == 0:
				case b != 0xff || owner[i] != 0:
					t.Fatalf("%v: byte %d holds bits of outputs %d and %d", typ, i, owner[i]-1, o)
				default:
					owner[i] = o + 1
				}
			}
		}
	}
}
