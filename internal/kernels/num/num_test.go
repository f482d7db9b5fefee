package num

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func exactFMA(a, b, c float32) float32 {
	x := new(big.Float).SetPrec(600).SetMode(big.ToNearestEven).SetFloat64(float64(a))
	x.Mul(x, new(big.Float).SetFloat64(float64(b)))
	x.Add(x, new(big.Float).SetFloat64(float64(c)))
	f, _ := x.Float32()
	return f
}

// Random operands rarely land on a tie; half the cases are built to: c's last bit is
// worth twice the product's leading bit, give or take a few places, plus a tail.
func TestFMARoundsOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 2_000_000 {
		a := math.Float32frombits(r.Uint32())
		b := math.Float32frombits(r.Uint32())
		c := math.Float32frombits(r.Uint32())
		if i%2 == 0 {
			a = 1 + float32(r.IntN(8))*0x1p-23
			b = float32(math.Ldexp(1+float64(r.IntN(4))*0x1p-23, r.IntN(60)-30-24))
			c = float32(math.Ldexp(1+float64(r.IntN(1<<23))*0x1p-23, r.IntN(60)-30))
		}
		if i%8 == 1 { // subnormal results
			a, b = a*0x1p-60, b*0x1p-60
			c *= 0x1p-100
		}
		p := float64(a) * float64(b)
		if math.IsNaN(p) || math.IsInf(p, 0) || c != c || math.IsInf(float64(c), 0) {
			continue
		}
		if got, want := FMA(a, b, c), exactFMA(a, b, c); got != want {
			t.Fatalf("FMA(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
	}
}

func TestHalfRoundTrip(t *testing.T) {
	for h := range 1 << 16 {
		if f := F16(uint16(h)); f == f && ToF16(f) != uint16(h) {
			t.Fatalf("F16 %#04x -> %g -> %#04x", h, f, ToF16(f))
		}
		if f := BF16(uint16(h)); f == f && ToBF16(f) != uint16(h) {
			t.Fatalf("BF16 %#04x -> %g -> %#04x", h, f, ToBF16(f))
		}
	}
}

// A rounding is right when no other half is nearer, and on a tie the even one is taken.
func TestToF16Nearest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1_000_000 {
		f := math.Float32frombits(r.Uint32())
		if f != f {
			continue
		}
		if r.IntN(2) == 0 { // the neighbourhood of ties
			f = (F16(uint16(r.IntN(0x7bff))) + F16(uint16(r.IntN(0x7bff)))) / 2
		}
		h := ToF16(f)
		if h&0x7fff == 0x7c00 {
			if math.Abs(float64(f)) < 65520 {
				t.Fatalf("%g rounds to infinity", f)
			}
			continue
		}
		d := math.Abs(float64(F16(h)) - float64(f))
		for _, n := range []uint16{h - 1, h + 1} {
			if (n^h)&0x8000 != 0 || n&0x7c00 == 0x7c00 {
				continue
			}
			if dn := math.Abs(float64(F16(n)) - float64(f)); dn < d || dn == d && h&1 == 1 {
				t.Fatalf("ToF16(%x) = %#04x, but %#04x is as near", f, h, n)
			}
		}
	}
}
