package gemm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/internal/kernels/codebook"
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

// fileRows draws a matrix in its file encoding.
func fileRows(r *rand.Rand, t Type, out, in int, wild bool) []byte {
	b := make([]byte, out*t.rowBytes(in))
	le := binary.LittleEndian
	switch t {
	case F32:
		for i := 0; i < len(b); i += 4 {
			le.PutUint32(b[i:], math.Float32bits(value(r, wild)))
		}
	case F16:
		for i := 0; i < len(b); i += 2 {
			le.PutUint16(b[i:], num.ToF16(value(r, wild)))
		}
	case BF16:
		for i := 0; i < len(b); i += 2 {
			le.PutUint16(b[i:], num.ToBF16(value(r, wild)))
		}
	case MXFP4:
		for i := range b {
			b[i] = byte(r.Uint32())
			if i%17 == 0 && !wild { // the exponent of a scale
				b[i] = byte(110 + r.IntN(20))
			}
		}
	case Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL:
		for i := range b {
			b[i] = byte(r.Uint32())
			if t == Q8_0 && i%97 == 0 {
				b[i] = 0x80 // −128: no quantiser writes it, a file may hold it
			}
		}
		for i := 0; i < len(b); i += blockTypes[t].file {
			le.PutUint16(b[i:], num.ToF16(value(r, wild)/100))
			if t == Q4_1 || t == Q5_1 {
				le.PutUint16(b[i+2:], num.ToF16(value(r, wild)/10))
			}
		}
	case Q4_K, Q5_K, Q6_K, Q2_K, Q3_K:
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		size := kTypes[t].file
		for i := 0; i < len(b); i += size {
			for _, at := range map[Type][]int{Q4_K: {0, 2}, Q5_K: {0, 2}, Q6_K: {208}, Q2_K: {80, 82}, Q3_K: {108}}[t] {
				le.PutUint16(b[i+at:], num.ToF16(value(r, wild)/1000))
			}
		}
	default:
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		size := t.code().Bytes()
		if t >= Q1_0 {
			size = 18 // of several blocks
		}
		for i := 0; i < len(b); i += size {
			t.code().SetScale(b[i:], value(r, wild)/1000)
		}
	}
	return b
}

// codedElement is element k of a block of 256 as a file holds it: its integer and its factor.
func codedElement(t Type, b []byte, k int) (v int, factor float32) {
	var c codebook.Block
	t.code().Read(&c, b)
	return int(c.Q[k/8]>>(k%8*8)&255) - codebook.Zero, c.F[k/16]
}

// weight is element k of a row as the file holds it.
func weight(t Type, row []byte, k int) float32 {
	le := binary.LittleEndian
	switch t {
	case F32:
		return math.Float32frombits(le.Uint32(row[k*4:]))
	case F16:
		return num.F16(le.Uint16(row[k*2:]))
	case BF16:
		return num.BF16(le.Uint16(row[k*2:]))
	case Q4_K, Q5_K, Q6_K, Q2_K, Q3_K:
		b := row[k/super*kTypes[t].file:]
		q, scale, minimum := superElement(t, b, k%super)
		return float32(scale*float32(q)) - minimum
	}
	if t.coded() {
		v, factor := codedElement(t, row[k/super*t.code().Bytes():], k%super)
		return factor * float32(v)
	}
	q, scale, minimum := blockElement(t, row[k/block*blockTypes[t].file:], k%block)
	if t == Q4_1 || t == Q5_1 {
		return float32(scale*float32(q)) + minimum
	}
	return scale * float32(q)
}

// blockElement is element k of a block of 32 as a file holds it: its integer, its scale and its minimum.
func blockElement(t Type, b []byte, k int) (q int, scale, minimum float32) {
	half := func(b []byte) float32 { return num.F16(binary.LittleEndian.Uint16(b)) }
	nibble := func(b []byte) int { return int(b[k%16] >> (k / 16 * 4) & 15) }
	fifth := func(b []byte) int { return int(binary.LittleEndian.Uint32(b)>>k&1) * 16 }
	switch t {
	case Q4_0:
		return nibble(b[2:]) - 8, half(b), 0
	case Q4_1:
		return nibble(b[4:]), half(b), half(b[2:])
	case Q5_0:
		return nibble(b[6:]) + fifth(b[2:]) - 16, half(b), 0
	case Q5_1:
		return nibble(b[8:]) + fifth(b[4:]), half(b), half(b[2:])
	case IQ4_NL:
		return int(num.IQ4[nibble(b[2:])]), half(b), 0
	case MXFP4:
		return int(num.MXFP4[nibble(b[1:])]), float32(math.Ldexp(1, int(b[0])-128)), 0
	}
	return int(int8(b[2+k])), half(b), 0
}

// scalar is the definition of an output element, straight from the file's bytes.
func scalar(t Type, row []byte, x []float32) float32 {
	acc := float32(0)
	switch t {
	case F32, F16:
		for k, v := range x {
			acc = num.FMA(weight(t, row, k), v, acc)
		}
	case BF16:
		for k := 0; k < len(x); k += 2 {
			w1, x1 := float32(0), float32(0)
			if k+1 < len(x) {
				w1, x1 = weight(t, row, k+1), num.BF16(num.ToBF16(flush(x[k+1])))
			}
			acc = fmaFlushBig(w1, x1, acc)
			acc = fmaFlushBig(weight(t, row, k), num.BF16(num.ToBF16(flush(x[k]))), acc)
		}
	case Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4:
		for ; len(x) > 0; x, row = x[block:], row[blockTypes[t].file:] {
			xs, scale := fitted(x[:block])
			sum, all := 0, 0
			for i, v := range xs {
				q, _, _ := blockElement(t, row, i)
				sum += q * v
				all += v
			}
			_, d, m := blockElement(t, row, 0)
			acc = num.FMA(float32(sum), d*scale, acc)
			if t == Q4_1 || t == Q5_1 {
				acc = num.FMA(float32(all)*scale, m, acc)
			}
		}
	case Q4_K, Q5_K, Q6_K, Q2_K, Q3_K:
		run := 32
		if kTypes[t].halves {
			run = 16
		}
		for k := 0; k < len(x); k += Group {
			xs, scale := quantized(x[k : k+Group])
			part := float32(0)
			for i := 0; i < Group; i += run {
				sum, all := 0, 0
				for j := range run {
					q, _, _ := superElement(t, row[(k+i+j)/super*kTypes[t].file:], (k+i+j)%super)
					sum += q * xs[i+j]
					all += xs[i+j]
				}
				_, s, m := superElement(t, row[(k+i)/super*kTypes[t].file:], (k+i)%super)
				part = num.FMA(float32(sum), s, part)
				if kTypes[t].zero == 0 {
					part = num.FMA(float32(-all), m, part)
				}
			}
			acc = num.FMA(part, scale, acc)
		}
	default:
		for k := 0; k < len(x); k += Group {
			xs, scale := quantized(x[k : k+Group])
			part := float32(0)
			for i := 0; i < Group; i += 16 {
				sum, factor := 0, float32(0)
				for j := range 16 {
					var v int
					v, factor = codedElement(t, row[(k+i)/super*t.code().Bytes():], (k+i+j)%super)
					sum += v * xs[i+j]
				}
				part = num.FMA(float32(sum), factor, part)
			}
			acc = num.FMA(part, scale, acc)
		}
	}
	return acc
}

// quantized is a group of activations as integers and what they are scaled by.
func quantized(g []float32) (q []int, scale float32) {
	q = make([]int, len(g))
	top := float32(0)
	for _, v := range g {
		if a := float32(math.Abs(float64(v))); a > top || a != a {
			top = a
		}
		if v-v != 0 {
			scale = float32(math.NaN()) // an infinity or NaN
		}
	}
	if scale == 0 && top >= 0x1p-100 {
		scale = top / 127
		for i, v := range g {
			q[i] = int(math.RoundToEven(float64(v * (127 / top))))
		}
	}
	return q, scale
}

// fitted is a block of activations as integers and what they are scaled by, as a row of Q8_0 holds it.
func fitted(g []float32) (q []int, scale float32) {
	row := make([]byte, xBlock)
	quantizeRow(row, g, Q8_0)
	for _, b := range row[:block] {
		q = append(q, int(int8(b)))
	}
	return q, native(row[xScale:])
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

// superElement is element k of a block of 256 as a file holds it: its integer, its scale and its minimum.
func superElement(t Type, b []byte, k int) (q int, scale, minimum float32) {
	half := func(b []byte) float32 { return num.F16(binary.LittleEndian.Uint16(b)) }
	// as llama.cpp's dequantize_row_q6_K walks it: halves of 128, of which element l, l+32, l+64 and l+96 go together
	if t == Q6_K {
		n, l := k/128, k%32
		ql, qh := b[n*64:], b[128+n*32:]
		switch k % 128 / 32 {
		case 0:
			q = int(ql[l]&15) | int(qh[l]&3)<<4
		case 1:
			q = int(ql[l+32]&15) | int(qh[l]>>2&3)<<4
		case 2:
			q = int(ql[l]>>4) | int(qh[l]>>4&3)<<4
		case 3:
			q = int(ql[l+32]>>4) | int(qh[l]>>6)<<4
		}
		return q - 32, half(b[208:]) * float32(int8(b[192+k/16])), 0
	}
	two := func(b []byte) int { return int(b[k/128*32+k%32] >> (k / 32 % 4 * 2) & 3) }
	switch t {
	case Q2_K:
		return two(b[16:]), half(b[80:]) * float32(b[k/16]&15), half(b[82:]) * float32(b[k/16]>>4)
	case Q3_K: // as llama.cpp's dequantize_row_q3_K unpacks the scales: four words from three
		var words [4]uint32
		for i := range 3 {
			words[i] = binary.LittleEndian.Uint32(b[96+4*i:])
		}
		upper, low := words[2], words
		for i := range words {
			words[i] = low[i%2]>>(i/2*4)&0x0f0f0f0f | upper>>(2*i)&0x03030303<<4
		}
		scale := int(words[k/16/4]>>(k/16%4*8)&255) - 32
		return two(b[32:]) - 4 + int(b[k%32]>>(k/32)&1)*4, half(b[108:]) * float32(scale), 0
	}
	j := k / 32
	s, m := b[4+j%4]&63, b[8+j%4]&63
	if j >= 4 {
		s, m = b[8+j]&15|b[j]>>6<<4, b[8+j]>>4|b[4+j]>>6<<4
	}
	nibbles := b[16:]
	if t == Q5_K {
		nibbles = b[48:]
	}
	q = int(nibbles[j/2*32+k%32])
	if j%2 == 0 {
		q &= 15
	} else {
		q >>= 4
	}
	if t == Q5_K {
		q += int(b[16+k%32]>>j&1) * 16
	}
	return q, half(b) * float32(s), half(b[2:]) * float32(m)
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
