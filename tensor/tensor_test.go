package tensor

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/kernels/num"
)

var decoded = []Type{F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K}

// A type's name leads back to it, and a size is blocks times bytes or an error, never a wrapped number.
func TestTypes(t *testing.T) {
	for typ := range layouts {
		if back, err := ParseType(strings.ToLower(typ.String())); err != nil || back != typ {
			t.Errorf("%v parses to %v, %v", typ, back, err)
		}
		n, b := typ.Block()
		if got, err := typ.Size(3 * n); err != nil || got != 3*b {
			t.Errorf("3 blocks of %v take %d bytes, %v", typ, got, err)
		}
		if n > 1 {
			if _, err := typ.Size(n + 1); err == nil {
				t.Errorf("%v has a size for a part of a block", typ)
			}
		}
		if b > n {
			if got, err := typ.Size(math.MaxInt / n * n); err == nil {
				t.Errorf("%v: the largest size is %d, want an overflow", typ, got)
			}
		}
		if _, err := typ.Size(-n); err == nil {
			t.Errorf("%v has a negative size", typ)
		}
		if typ.Decodes() != (Dequantize(typ, nil, nil) == nil) {
			t.Errorf("%v: Decodes is %v, Dequantize says otherwise", typ, typ.Decodes())
		}
	}
	if _, err := Type(4).Size(32); err == nil {
		t.Error("type 4 was removed from ggml")
	}
	if _, err := ParseType("q9_0"); err == nil {
		t.Error("q9_0 parses")
	}
}

func TestElements(t *testing.T) {
	for _, shape := range [][]int{{0}, {3, -1}, {math.MaxInt, 2}, {1 << 20, math.MaxInt / 2}} {
		if n, err := numtype.CountElements(shape); err == nil {
			t.Errorf("shape %v has %d elements, want an error", shape, n)
		}
	}
	if n, err := numtype.CountElements(nil); n != 1 || err != nil {
		t.Errorf("a scalar has %d elements, %v", n, err)
	}
}

// Decoding a part is the part of decoding all: rows can go to different workers.
func TestRowsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(decoded).Draw(t, "type")
		n, size := typ.Block()
		rows, perRow := rapid.IntRange(1, 6).Draw(t, "rows"), rapid.IntRange(1, 3).Draw(t, "blocks per row")
		x := Tensor{Name: "x", Type: typ, Shape: []int{rows, perRow * n}}
		x.Data = rapid.SliceOfN(rapid.Byte(), rows*perRow*size, rows*perRow*size).Draw(t, "data")
		all, err := x.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		r0 := rapid.IntRange(0, rows).Draw(t, "r0")
		r1 := rapid.IntRange(r0, rows).Draw(t, "r1")
		part := make([]float32, (r1-r0)*x.Cols())
		if err := x.DequantizeRows(part, r0, r1); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(f32Bytes(part), f32Bytes(all[r0*x.Cols():r1*x.Cols()])) {
			t.Fatalf("rows %d to %d differ from the same rows of the whole", r0, r1)
		}
	})
}

// Rows that a tensor does not have are refused, and memory for others: a file has other tensors' bytes there.
func TestRowsOutside(t *testing.T) {
	inside := Tensor{Name: "x", Type: F32, Shape: []int{2, 3}, Data: make([]byte, 24)}
	inFile := Tensor{Name: "x", Type: F32, Shape: []int{2, 3}, Reader: func([]byte, int, int) error { return nil }}
	for _, x := range []Tensor{inside, inFile} {
		for _, c := range []struct{ r0, r1, bytes int }{{-1, 1, 24}, {1, 0, 0}, {2, 3, 12}, {0, 3, 36}, {0, 1, 24},
			{0, 2, 12}} {
			if err := x.ReadRows(make([]byte, c.bytes), c.r0, c.r1); err == nil || !strings.Contains(err.Error(), `tensor "x"`) {
				t.Errorf("rows %d to %d of 2, into %d bytes: %v", c.r0, c.r1, c.bytes, err)
			}
		}
		if err := x.ReadRows(make([]byte, 24), 0, 2); err != nil {
			t.Error(err)
		}
	}
}

// F32 keeps every bit, F16 and BF16 keep what they once held, types of blocks are off by at most
// half a step, and the step's rounding. Those without a minimum have one step less above zero than
// below, and the largest may be off by a whole one.
func TestQuantizeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]Type{F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1}).Draw(t, "type")
		scale := math.Ldexp(1, rapid.IntRange(-40, 12).Draw(t, "scale"))
		x := make([]float32, 64)
		for i := range x {
			x[i] = float32(rapid.Float64Range(-scale, scale).Draw(t, "x"))
		}
		q, y := coded(t, typ, []int{2, 32}, x)
		for b := 0; b < 64; b += 32 {
			var top, wide float64
			for _, v := range x[b : b+32] {
				top = max(top, math.Abs(float64(v)))
			}
			wide = float64(slices.Max(x[b:b+32]) - slices.Min(x[b:b+32]))
			half := func(step, most float64) float64 { // the step is a half too
				return step/2*1.0001 + most*max(step/2048, 1.0/(1<<25))
			}
			for i := b; i < b+32; i++ {
				diff := math.Abs(float64(x[i]) - float64(y[i]))
				var most float64
				switch typ {
				case F16:
					most = max(math.Abs(float64(x[i]))/2048, 1.0/(1<<25))
				case BF16:
					most = max(math.Abs(float64(x[i]))/256, math.Ldexp(1, -134))
				case Q8_0:
					most = half(top/127, 127)
				case Q4_0:
					most = half(2*top/8, 8)
				case Q5_0:
					most = half(2*top/16, 16)
				case Q4_1:
					most = half(wide/15, 15) + max(top/2048, 1.0/(1<<25))
				case Q5_1:
					most = half(wide/31, 31) + max(top/2048, 1.0/(1<<25))
				}
				if diff > most {
					t.Fatalf("%v: %v came back as %v", typ, x[i], y[i])
				}
			}
		}
		if n, _ := typ.Block(); n == 1 {
			again, err := FromFloat32s("x", typ, []int{2, 32}, y)
			if err != nil || !bytes.Equal(again.Data, q.Data) {
				t.Fatalf("%v: encoding what was decoded changed it (%v)", typ, err)
			}
		}
	})
}

// Every half and every bfloat16 comes back from decode and encode as it was, infinities included; NaN stays NaN.
func TestEveryHalf(t *testing.T) {
	src := make([]byte, 2<<16)
	for i := range 1 << 16 {
		src[2*i], src[2*i+1] = byte(i), byte(i>>8)
	}
	for _, typ := range []Type{F16, BF16} {
		x, back := make([]float32, 1<<16), make([]byte, 2<<16)
		if err := Dequantize(typ, src, x); err != nil {
			t.Fatal(err)
		}
		if err := Quantize(typ, x, back); err != nil {
			t.Fatal(err)
		}
		for i, v := range x {
			if v == v && (src[2*i] != back[2*i] || src[2*i+1] != back[2*i+1]) {
				t.Fatalf("%v %#04x came back as %02x%02x", typ, i, back[2*i+1], back[2*i])
			}
			if h := uint16(back[2*i]) | uint16(back[2*i+1])<<8; v != v && num.F16(h) == num.F16(h) && typ == F16 {
				t.Fatalf("%v NaN %#04x became %#04x", typ, i, h)
			}
		}
	}
}

// What a type cannot hold is an error that names the element.
func TestQuantizeRefuses(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		typ Type
		x   float32
	}{{F16, 65520}, {F16, -1e30}, {BF16, math.MaxFloat32}, {Q8_0, inf}, {Q8_0, -inf}, {Q8_0, nan}, {Q8_0, 1e7},
		{Q4_0, inf}, {Q5_0, nan}, {Q4_0, 1e6}, {Q5_0, -2e6}, {Q4_1, -inf}, {Q5_1, nan}, {Q4_1, 1e6}, {Q4_1, -65520}, {Q5_1,
			3e6}, {Q5_1, -1e5}} {
		x := make([]float32, 64)
		x[40] = c.x
		size, _ := c.typ.Size(64)
		err := Quantize(c.typ, x, make([]byte, size))
		if err == nil || !strings.Contains(err.Error(), "element 40 is") {
			t.Errorf("%v takes %v: %v", c.typ, c.x, err)
		}
	}
	for _, typ := range []Type{F32, F16, BF16} {
		size, _ := typ.Size(2)
		if err := Quantize(typ, []float32{inf, nan}, make([]byte, size)); err != nil {
			t.Errorf("%v has an infinity and a NaN: %v", typ, err)
		}
	}
	for _, typ := range []Type{Q4_K, Q5_K, Q6_K} {
		for _, v := range []float32{inf, -inf, nan, 1e12} {
			x := make([]float32, 512)
			x[300] = v
			size, _ := typ.Size(512)
			if err := Quantize(typ, x, make([]byte, size)); err == nil || !strings.Contains(err.Error(), "element 300 is") {
				t.Errorf("%v takes %v: %v", typ, v, err)
			}
		}
	}
	if err := Quantize(numtype.Q2_K, make([]float32, 256), make([]byte, 84)); err == nil || Quantize(numtype.Q2_K, nil,
		nil) == nil {
		t.Error("Q2_K is written")
	}
	if err := Quantize(Q8_0, make([]float32, 32), make([]byte, 33)); err == nil {
		t.Error("a buffer that is too short is taken")
	}
}

// roundAway is C's roundf on the range that quantising needs.
func TestRoundAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float32Range(-128, 128).Draw(t, "x")
		if rapid.Bool().Draw(t, "near a half") {
			x = float32(math.Round(float64(x))) + 0.5
			for range rapid.IntRange(0, 2).Draw(t, "steps") {
				x = math.Nextafter32(x, 0)
			}
		}
		if got, want := roundAway(x), int32(math.Round(float64(x))); got != want {
			t.Fatalf("roundAway(%v) = %d, want %d", x, got, want)
		}
	})
}

// Tiny blocks must not multiply by an infinite inverse.
func TestQ8Subnormal(t *testing.T) {
	x := make([]float32, 32)
	for _, v := range []float32{math.SmallestNonzeroFloat32, 100 * math.SmallestNonzeroFloat32, 1e-37, 1e-30} {
		x[3] = v
		q, err := FromFloat32s("x", Q8_0, []int{32}, x)
		if err != nil {
			t.Fatal(err)
		}
		for i, y := range must(q.Float32s()) {
			if y != 0 {
				t.Errorf("%v: element %d decodes to %v", v, i, y)
			}
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestBadTensors(t *testing.T) {
	for _, x := range []Tensor{
		{Name: "short", Type: F32, Shape: []int{3}, Data: make([]byte, 8)},
		{Name: "long", Type: F32, Shape: []int{1}, Data: make([]byte, 8)},
		{Name: "huge", Type: F32, Shape: []int{math.MaxInt, 3}},
		{Name: "zero", Type: F32, Shape: []int{0}},
		{Name: "row", Type: Q8_0, Shape: []int{32, 1}, Data: make([]byte, 34)},
		{Name: "unknown", Type: numtype.Unknown, Shape: []int{1}},
		{Name: "raw", Type: numtype.I64, Shape: []int{1}, Data: make([]byte, 8)},
	} {
		_, err := x.Float32s()
		if err == nil || !strings.Contains(err.Error(), x.Name) {
			t.Errorf("%s: %v", x.Name, err)
		}
	}
	x := Tensor{Name: "x", Type: F32, Shape: []int{2, 1}, Data: make([]byte, 8)}
	for _, r := range [][2]int{{-1, 1}, {1, 0}, {0, 3}} {
		if err := x.DequantizeRows(make([]float32, 4), r[0], r[1]); err == nil {
			t.Errorf("rows %v are decoded", r)
		}
	}
	if err := x.DequantizeRows(make([]float32, 1), 0, 2); err == nil {
		t.Error("a short destination is taken")
	}
}

// FuzzDequantize: no bytes of any type make decoding panic or touch more than asked.
func FuzzDequantize(f *testing.F) {
	for typ := range layouts {
		f.Add(uint32(typ), bytes.Repeat([]byte{0xa5, 0xff, 0x7c}, 240), 512)
	}
	f.Add(uint32(4), []byte{}, -1)
	f.Fuzz(func(t *testing.T, typ uint32, src []byte, n int) {
		if n < 0 || n > 1<<16 {
			n = 0
		}
		dst := make([]float32, n+1)
		dst[n] = 42
		err := Dequantize(Type(typ), src, dst[:n])
		if size, sizeErr := Type(typ).Size(n); err == nil && (sizeErr != nil || size != len(src)) {
			t.Fatalf("%v: %d elements from %d bytes", Type(typ), n, len(src))
		}
		if dst[n] != 42 {
			t.Fatal("wrote beyond the destination")
		}
	})
}

func BenchmarkDequantize(b *testing.B) {
	for _, typ := range decoded {
		b.Run(typ.String(), func(b *testing.B) {
			dst := make([]float32, 1<<16)
			size, _ := typ.Size(len(dst))
			src := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				if err := Dequantize(typ, src, dst); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(dst))*float64(b.N)/1e6/b.Elapsed().Seconds(), "Melem/s")
		})
	}
}

// coded is x encoded, and decoded again.
func coded(t interface{ Fatal(...any) }, typ Type, shape []int, x []float32) (q Tensor, y []float32) {
	q, err := FromFloat32s("x", typ, shape, x)
	if err == nil {
		y, err = q.Float32s()
	}
	if err != nil {
		t.Fatal(err)
	}
	return q, y
}

// The encoders of the K types come as close as llama.cpp's: its llama-quantize --pure (ggml 0.18.1)
// is off by 6.88, 3.48 and 1.70 % of the root mean square of evenly spread weights.
func TestKTypesAreClose(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, 256*400)
	for i := range x {
		x[i] = float32((2*r.Float64() - 1) * .02)
	}
	for typ, most := range map[Type]float64{Q4_K: .0692, Q5_K: .0350, Q6_K: .0171} {
		_, y := coded(t, typ, []int{400, 256}, x)
		var d, n float64
		for i := range x {
			d, n = d+float64(x[i]-y[i])*float64(x[i]-y[i]), n+float64(x[i])*float64(x[i])
		}
		if e := math.Sqrt(d / n); e > most {
			t.Errorf("%v is off by %.4f", typ, e)
		}
	}
}

// Blocks of few values, zeros, one sign, and tiny numbers are encoded as well as their types allow,
// and never as anything but numbers.
func TestKTypesOddBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]Type{Q4_K, Q5_K, Q6_K}).Draw(t, "type")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		kind, size := rapid.IntRange(0, 5).Draw(t, "kind"), math.Ldexp(1, rapid.IntRange(-40, 14).Draw(t, "size"))
		x := make([]float32, 256)
		for i := range x {
			switch v := r.NormFloat64() * size; kind {
			case 0: // all zeros
			case 1:
				x[i] = float32(math.Abs(v))
			case 2:
				x[i] = float32(-math.Abs(v))
			case 3:
				x[i] = float32(size)
			case 4:
				x[i] = float32(size) * float32(r.IntN(3)-1)
			default:
				x[i] = float32(v)
				if r.IntN(60) == 0 {
					x[i] *= 50
				}
			}
		}
		_, y := coded(t, typ, []int{1, 256}, x)
		top := float32(0)
		for _, v := range x {
			top = max(top, abs(v))
		}
		for i := range x {
			// half a step of a sub-block's range, and what rounding the scales adds; scales below the smallest half are lost
			if d := abs(x[i] - y[i]); !(d <= top/map[Type]float32{Q4_K: 8, Q5_K: 14, Q6_K: 20}[typ]+map[Type]float32{
				Q4_K: 4e-4, Q5_K: 4e-4, Q6_K: 2e-4}[typ]) {
				t.Fatalf("%v: %v of a block up to %v became %v", typ, x[i], top, y[i])
			}
		}
	})
}

// Rounding within bounds is math.RoundToEven, and then the bounds.
func TestRoundWithin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for i := range 10000 {
		x := float64(i%301-150) / 4
		if i > 301 {
			x = r.NormFloat64() * 30
		}
		if got, want := roundWithin(x, -32, 31), min(max(math.RoundToEven(x), -32), 31); got != want {
			t.Fatalf("%g becomes %g, want %g", x, got, want)
		}
	}
}

func BenchmarkQuantize(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, 256*64)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for _, typ := range []Type{Q8_0, Q4_0, Q5_1, Q4_K, Q5_K, Q6_K} {
		size, _ := typ.Size(len(x))
		dst := make([]byte, size)
		b.Run(typ.String(), func(b *testing.B) {
			b.SetBytes(int64(4 * len(x)))
			for b.Loop() {
				if err := Quantize(typ, x, dst); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
