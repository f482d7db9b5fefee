package gemm

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/internal/cpu"
	"github.com/grovellm/grove/internal/num"
)

var allTypes = []Type{F32, F16, BF16, Q8_0}

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
	case Q8_0:
		for i := range b {
			b[i] = byte(r.Uint32())
			if i%97 == 0 {
				b[i] = 0x80 // −128: no quantiser writes it, a file may hold it
			}
		}
		for i := 0; i < len(b); i += fileBlock {
			le.PutUint16(b[i:], num.ToF16(value(r, wild)/100))
		}
	}
	return b
}

// scalar is the definition of an output element, straight from the file's bytes.
func scalar(t Type, row []byte, x []float32) float32 {
	le := binary.LittleEndian
	acc := float32(0)
	switch t {
	case F32:
		for k, v := range x {
			acc = num.FMA(math.Float32frombits(le.Uint32(row[k*4:])), v, acc)
		}
	case F16:
		for k, v := range x {
			acc = num.FMA(num.F16(le.Uint16(row[k*2:])), v, acc)
		}
	case BF16:
		for k := 0; k < len(x); k += 2 {
			if k+1 < len(x) {
				acc = fmaFlushBig(num.BF16(le.Uint16(row[k*2+2:])), num.BF16(num.ToBF16(flush(x[k+1]))), acc)
			} else {
				acc = fmaFlushBig(0, 0, acc)
			}
			acc = fmaFlushBig(num.BF16(le.Uint16(row[k*2:])), num.BF16(num.ToBF16(flush(x[k]))), acc)
		}
	case Q8_0:
		for g := 0; g < len(x); g += Group {
			xg := x[g:min(g+Group, len(x))]
			top := float32(0)
			bad := false
			for _, v := range xg {
				top = max(top, float32(math.Abs(float64(v))))
				bad = bad || v-v != 0
			}
			part := float32(0)
			for b := 0; b < len(xg); b += block {
				w := row[(g+b)/block*fileBlock:]
				sum := 0
				for i, v := range xg[b : b+block] {
					if !bad && top >= 0x1p-100 {
						sum += int(int8(w[2+i])) * int(math.RoundToEven(float64(v*(127/top))))
					}
				}
				part = num.FMA(float32(sum), num.F16(le.Uint16(w)), part)
			}
			scale := top / 127
			if bad {
				scale = float32(math.NaN())
			} else if top < 0x1p-100 {
				scale = 0
			}
			acc = num.FMA(part, scale, acc)
		}
	}
	return acc
}

// fmaFlushBig is fmaFlush by exact arithmetic, where the operands are finite.
func fmaFlushBig(a, b, c float32) float32 {
	a, b, c = flush(a), flush(b), flush(c)
	plain := num.FMA(a, b, c)
	if math.Abs(float64(plain)) > 0x1p-126 || plain != plain || plain == 0 {
		return plain
	}
	x := new(big.Float).SetPrec(600).SetFloat64(float64(a))
	x.Mul(x, new(big.Float).SetFloat64(float64(b)))
	x.Add(x, new(big.Float).SetFloat64(float64(c)))
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

func pack(t testing.TB, typ Type, out, in int, src []byte) *Matrix {
	t.Helper()
	m, err := New(typ, out, in)
	if err != nil {
		t.Fatal(err)
	}
	mid := m.Panels() / 2
	m.PackPanels(src, mid, m.Panels())
	m.PackPanels(src, 0, mid)
	return m
}

func levels(t *testing.T, f func(t *testing.T, l cpu.Level)) {
	for _, l := range cpu.Levels() {
		t.Run(l.String(), func(t *testing.T) {
			defer cpu.Use(l)()
			f(t, l)
		})
	}
}

// The law: every element of a product is the scalar definition, at every level, for every
// shape and number of rows, and nothing else is written.
func TestMulIsTheDefinition(t *testing.T) {
	levels(t, func(t *testing.T, l cpu.Level) {
		r := rand.New(rand.NewPCG(uint64(l), 1))
		cases := 400
		if testing.Short() {
			cases = 100
		}
		for range cases {
			typ := allTypes[r.IntN(len(allTypes))]
			out, in, n := 1+r.IntN(100), 1+r.IntN(300), 1+r.IntN(20)
			if r.IntN(10) == 0 {
				n, in = 1+r.IntN(140), 1+r.IntN(80)
			}
			if typ == Q8_0 {
				in = (in + 31) / 32 * 32
			}
			checkMul(t, r, typ, out, in, n, r.IntN(2) == 0)
			if t.Failed() {
				return
			}
		}
	})
}

func checkMul(t *testing.T, r *rand.Rand, typ Type, out, in, n int, wild bool) {
	t.Helper()
	src := fileRows(r, typ, out, in, wild)
	m := pack(t, typ, out, in, src)
	rows := make([][]float32, n)
	var x Input
	x.Reset(typ, n, in)
	for i := range rows {
		rows[i] = make([]float32, in)
		for k := range rows[i] {
			rows[i][k] = value(r, wild)
		}
		if wild && r.IntN(30) == 0 {
			rows[i][r.IntN(in)] = []float32{float32(math.Inf(1)), float32(math.NaN()), -math.MaxFloat32}[r.IntN(3)]
		}
		x.SetRow(i, rows[i])
	}
	stride := out + r.IntN(40)
	const guard = 12345
	dst := make([]float32, n*stride)
	for i := range dst {
		dst[i] = guard
	}
	p0 := r.IntN(m.Panels())
	p1 := p0 + 1 + r.IntN(m.Panels()-p0)
	m.Mul(dst, stride, &x, p0, p1)
	row := typ.rowBytes(in)
	for i, got := range dst {
		want, o := float32(guard), i%stride
		if o >= p0*Panel && o < min(p1*Panel, out) {
			want = scalar(typ, src[o*row:][:row], rows[i/stride])
		}
		if !same(got, want) {
			t.Fatalf("%v %d×%d, %d rows, panels [%d,%d), wild %v: row %d output %d is %x (%#08x), want %x (%#08x)", typ, out, in, n, p0, p1, wild,
				i/stride, o, got, math.Float32bits(got), want, math.Float32bits(want))
		}
	}
	o := r.IntN(out)
	wide := make([]float32, in)
	m.Row(wide, o)
	for k, v := range wide {
		if want := weight(typ, src[o*row:], k); !same(v, want) {
			t.Fatalf("%v: Row(%d)[%d] = %g, want %g", typ, o, k, v, want)
		}
	}
}

func weight(t Type, row []byte, k int) float32 {
	le := binary.LittleEndian
	switch t {
	case F32:
		return math.Float32frombits(le.Uint32(row[k*4:]))
	case F16:
		return num.F16(le.Uint16(row[k*2:]))
	case BF16:
		return num.BF16(le.Uint16(row[k*2:]))
	}
	b := row[k/block*fileBlock:]
	return num.F16(le.Uint16(b)) * float32(int8(b[2+k%block]))
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		t       Type
		out, in int
	}{{numTypes, 1, 1}, {F32, 0, 1}, {F32, 1, 0}, {F32, -1, 1}, {F32, 1, -1}, {Q8_0, 1, 33}, {F32, math.MaxInt, 1}, {F32, math.MaxInt/2 + 1, math.MaxInt/2 + 1}, {Q8_0, 1 << 40, 1 << 20}} {
		if m, err := New(c.t, c.out, c.in); err == nil {
			t.Errorf("New(%v, %d, %d) = %d bytes, want an error", c.t, c.out, c.in, m.Bytes())
		}
	}
}

func TestFMAFlush(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300_000 {
		a := math.Float32frombits(r.Uint32() & 0xffff0000)
		b := math.Float32frombits(r.Uint32() & 0xffff0000)
		c := math.Float32frombits(r.Uint32())
		if r.IntN(4) > 0 { // products and sums about 2^-126
			a = math.Float32frombits(math.Float32bits(a)&0x807f0000 | uint32(30+r.IntN(70))<<23)
			b = math.Float32frombits(math.Float32bits(b)&0x807f0000 | 128<<23 - math.Float32bits(a)&0x7f800000 + uint32(r.IntN(6)-3)<<23)
			c = math.Float32frombits(math.Float32bits(c)&0x807fffff | uint32(r.IntN(4))<<23)
		}
		if r.IntN(4) == 0 {
			a, b = 0x1p-63, 0x1p-63*float32(1-r.IntN(2)*2)
			c = math.Float32frombits(uint32(0x00800000) + uint32(r.IntN(5)))
		}
		if a-a != 0 || b-b != 0 || c-c != 0 {
			continue
		}
		if got, want := fmaFlush(a, b, c), fmaFlushBig(a, b, c); !same(got, want) {
			t.Fatalf("fmaFlush(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
	}
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
