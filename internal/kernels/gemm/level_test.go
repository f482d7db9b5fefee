package gemm

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/kernels/num"
	"pgregory.net/rapid"
)

// The rows of an Input are the same bytes at every level that shares a format.
func TestInputLevels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]Type{BF16, Q8_0, Q4_K}).Draw(t, "type")
		in := rapid.IntRange(1, 600).Draw(t, "in")
		in = (in + typ.whole() - 1) / typ.whole() * typ.whole()
		bits := rapid.Bool().Draw(t, "any bits")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		v := make([]float32, in)
		for k := range v {
			v[k] = value(r, true)
			switch {
			case bits:
				v[k] = math.Float32frombits(r.Uint32())
			case r.IntN(500) == 0:
				v[k] = float32(math.Inf(1 - 2*r.IntN(2)))
			case r.IntN(3) == 0: // ties between bf16
				v[k] = math.Float32frombits(math.Float32bits(v[k])&0xffff0000 | 0x8000)
			}
		}
		if r.IntN(3) == 0 { // all small: about where a group's scale vanishes
			for k := range v {
				v[k] = value(r, false) * float32(math.Ldexp(1, -96-r.IntN(10)))
			}
		}
		var want []byte
		for _, l := range cpu.Levels() {
			var x Input
			x.reset(typ, 1, in, l, false)
			x.SetRow(0, v)
			got := x.buf[:xOffset(typ, steps(typ, in), false)]
			if want == nil {
				want = got
			} else if i := mismatch(want, got); i >= 0 {
				t.Fatalf("%v at %v: byte %d of %d differs: %#x, want %#x", typ, l, i, len(got), got[i&^3:i&^3+4], want[i&^3:i&^3+4])
			}
		}
	})
}

func mismatch(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}

func TestFMAFlush(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300_000 {
		a := math.Float32frombits(r.Uint32() & 0xffff0000)
		b := math.Float32frombits(r.Uint32() & 0xffff0000)
		c := math.Float32frombits(r.Uint32())
		if r.IntN(4) > 0 { // products and sums about 2^-126
			a = math.Float32frombits(math.Float32bits(a)&0x807f0000 | uint32(30+r.IntN(70))<<23)
			b = math.Float32frombits(math.Float32bits(b)&0x807f0000 | 128<<23 - math.Float32bits(a)&0x7f800000 +
				uint32(r.IntN(6)-3)<<23)
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

// Sums just under the smallest normal number are flushed after they are rounded, at every level and by every kernel.
func TestFlushIsAfterRounding(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	power := func(low, high int) float32 {
		return float32(math.Ldexp(1-2*float64(r.IntN(2)), low+r.IntN(high-low+1)))
	}
	draw := func(rows, in int) (file []byte, elements []float32) {
		for range rows {
			for k := range in {
				v := power(-79, -72) // products far below an ulp of the others'
				if k%2 == 1 {
					v = power(-63, -63)
				}
				elements = append(elements, v)
				file = binary.LittleEndian.AppendUint16(file, num.ToBF16(v))
			}
		}
		return file, elements
	}
	edge := 0
	for range 300 {
		out := 1 + r.IntN(70)
		in := 2 + r.IntN(5)
		n := 1 + r.IntN(12)
		if r.IntN(40) == 0 { // sums that walk about zero
			in += r.IntN(200)
		}
		w, ws := draw(out, in)
		x, xs := draw(n, in)
		m, a := pack(t, BF16, out, in, w), pack(t, BF16, n, in, x)
		want := make([]float32, n*out)
		for i := range want {
			want[i] = chain(BF16, ws[i%out*in:][:in], xs[i/out*in:][:in], 0)
			if math.Abs(float64(want[i])) == 0x1p-126 {
				edge++
			}
		}
		for _, l := range cpu.Levels() {
			restore := cpu.Use(l)
			var rows Input
			rows.Reset(BF16, n, in)
			for i := range n {
				rows.SetRow(i, xs[i*in:][:in])
			}
			got, packed := make([]float32, n*out), make([]float32, n*out)
			m.Mul(got, out, &rows, 0, m.Panels())
			m.MulPacked(packed, out, a, 0, a.Panels(), 0, m.Panels(), false)
			restore()
			for i, want := range want {
				if !same(got[i], want) || !same(packed[i], want) {
					t.Fatalf("%d×%d, %d rows, at %v: element %d is %x, packed %x, want %x", out, in, n, l, i, got[i], packed[i], want)
				}
			}
		}
	}
	if edge < 10000 {
		t.Errorf("%d sums at the edge", edge)
	}
}

// The sum of a read does not depend on the level, nor on where the bytes lie.
func TestReadKernel(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	p := make([]byte, 5000)
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	for range 200 {
		from := r.IntN(len(p))
		q := p[from : from+r.IntN(len(p)-from+1)]
		var want uint64
		for i, b := range q {
			want ^= uint64(b) << (i % 8 * 8)
		}
		for _, l := range cpu.Levels() {
			restore := cpu.Use(l)
			got := ReadKernel(q)
			restore()
			if got != want {
				t.Fatalf("%d bytes at level %v: %#x, want %#x", len(q), l, got, want)
			}
		}
	}
}

func TestPeakKernel(t *testing.T) {
	levels(t, func(t *testing.T, l cpu.Level) {
		for _, typ := range allTypes {
			if a, b := PeakKernel(typ, 10), PeakKernel(typ, 30); a <= 0 || b != 3*a {
				t.Errorf("%v: %d operations in 10 iterations, %d in 30", typ, a, b)
			}
		}
	})
}

// A product in steady state allocates nothing. (Under the race detector, where a pool forgets some of what it is
// given, one in four does.)
func TestNoAllocations(t *testing.T) {
	levels(t, func(t *testing.T, l cpu.Level) {
		for _, typ := range allTypes {
			const out, in, n = 70, 256, 19
			m := pack(t, typ, out, in, make([]byte, out*typ.rowBytes(in)))
			var x Input
			row, dst := make([]float32, in), make([]float32, n*out)
			x.Reset(typ, n, in)
			if got := testing.AllocsPerRun(20, func() {
				x.Reset(typ, n-1, in)
				for i := range n - 1 {
					x.SetRow(i, row)
				}
				m.Mul(dst, out, &x, 0, m.Panels())
			}); got != 0 {
				t.Errorf("%v: %v allocations", typ, got)
			}
		}
	})
}

func TestNewRefuses(t *testing.T) {
	const huge = math.MaxInt
	for _, c := range []struct {
		t       Type
		out, in int
	}{{NumTypes, 1, 1}, {F32, 0, 1}, {F32, 1, 0}, {F32, -1, 1}, {F32, 1, -1}, {Q8_0, 1, 33}, {Q5_1, 1, 80}, {Q4_K, 1, 128},
		{Q6_K, 1, 288}, {F32, huge, 1}, {F32, 1, huge}, {F32, huge/2 + 1, huge/2 + 1}, {Q8_0, huge / 64, 64}} {
		if m, err := New(c.t, c.out, c.in); err == nil {
			t.Errorf("New(%v, %d, %d) = %d bytes, want an error", c.t, c.out, c.in, m.Bytes())
		}
	}
}

// Whatever the bytes of a file and the bits of the activations, every level agrees with the
// portable one.
func FuzzMul(f *testing.F) {
	f.Add(uint8(0), uint8(3), uint8(40), []byte{0, 0, 0x80, 0x7f, 1, 0, 0, 0}, []byte{0, 0, 0x80, 0x7f, 0, 0, 0xc0, 0xff})
	f.Add(uint8(1), uint8(9), uint8(33), []byte{1, 0, 0xff, 0x83, 0, 0x7c}, []byte{1, 2, 3})
	f.Add(uint8(2), uint8(17), uint8(65), []byte{0x40, 0x20, 0x80, 0, 0x80, 0x80},
		[]byte{0, 0, 0, 0x20, 0xff, 0xff, 0x7f, 0})
	f.Add(uint8(3), uint8(5), uint8(3), []byte{0, 0x7c, 0x80, 0x80, 0x80, 0x7f}, []byte{0xff, 0xff, 0x7f, 0x7f})
	f.Add(uint8(4), uint8(5), uint8(3), []byte{0, 0x3c, 0x80, 0x80, 0x80, 0x7f}, []byte{0xff, 0xff, 0x7f, 0x7f})
	f.Add(uint8(5), uint8(6), uint8(9), []byte{0, 0x7c, 1, 0x80, 0x80, 0x7f}, []byte{0, 1, 0x80, 0x3f, 9, 8, 0x7f, 0x40})
	f.Add(uint8(6), uint8(10), uint8(33), []byte{1, 2, 3, 0x3c, 254, 77, 9}, []byte{0, 1, 0x80, 0x3f, 9, 8, 0x7f, 0xc0})
	f.Add(uint8(7), uint8(3), uint8(65), []byte{0xff, 0x3b}, []byte{0xff, 0xff, 0x7f, 0x7f, 0, 0, 0x80, 0xbf})
	f.Add(uint8(8), uint8(8), uint8(40), []byte{0, 0x7c, 0x80, 0x80, 0x80, 0x7f}, []byte{0xff, 0xff, 0x7f, 0x7f})
	f.Add(uint8(9), uint8(5), uint8(69), []byte{1, 2, 3, 255, 254, 77, 9}, []byte{0, 1, 0x80, 0x3f, 9, 8, 0x7f, 0xc0})
	f.Add(uint8(10), uint8(3), uint8(3), []byte{0xff}, []byte{0xff, 0xff, 0x7f, 0x7f, 0, 0, 0x80, 0xbf})
	f.Fuzz(func(t *testing.T, ty, n, out uint8, weights, acts []byte) {
		typ := allTypes[int(ty)%len(allTypes)]
		rows := int(n)%12 + 1
		outs := int(out)%70 + 1
		in := len(acts)/4%97 + 1
		in = (in + typ.whole() - 1) / typ.whole() * typ.whole()
		if len(weights) == 0 || len(acts) == 0 {
			return
		}
		src := make([]byte, outs*typ.rowBytes(in))
		for i := range src {
			src[i] = weights[i%len(weights)]
		}
		m := pack(t, typ, outs, in, src)
		row := make([]float32, in)
		var want []float32
		for _, l := range cpu.Levels() {
			restore := cpu.Use(l)
			var x Input
			x.Reset(typ, rows, in)
			for r := range rows {
				for k := range row {
					var b [4]byte
					for j := range b {
						b[j] = acts[((r*in+k)*4+j)%len(acts)]
					}
					row[k] = math.Float32frombits(binary.LittleEndian.Uint32(b[:]))
				}
				x.SetRow(r, row)
			}
			got := make([]float32, rows*outs)
			m.Mul(got, outs, &x, 0, m.Panels())
			restore()
			if want == nil {
				want = got
			}
			for i := range got {
				if !same(got[i], want[i]) {
					t.Fatalf("%v %d×%d, %d rows, at %v: element %d is %x, want %x", typ, outs, in, rows, l, i, got[i], want[i])
				}
			}
		}
	})
}
