package num

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestSincos(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	check := func(x float64) {
		sin, cos := Sincos(x)
		wantSin, wantCos := math.Sincos(x)
		if math.Abs(sin-wantSin) > 0x1p-52 || math.Abs(cos-wantCos) > 0x1p-52 {
			t.Fatalf("the sine and cosine of %v are %v and %v, want %v and %v", x, sin, cos, wantSin, wantCos)
		}
	}
	for k := range 2000 {
		check(float64(k))
		check(float64(k) * (math.Pi / 4)) // where the quarter changes, and where a result is next to zero
		check(math.Nextafter(float64(k)*(math.Pi/4), 0))
	}
	for range 200000 {
		check(math.Exp2(r.Float64()*47 - 20))
	}
}

func TestInversePowers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		base, n := math.Exp(r.Float64()*40-10), 1+r.IntN(130)
		for i, f := range InversePowers(base, n) {
			if want := math.Pow(base, -float64(i)/float64(n)); math.Abs(f-want) > 1e-14*want {
				t.Fatalf("%v^(-%d/%d) is %v, want %v", base, i, n, f, want)
			}
		}
	}
	// Squares have exact roots, and what is no number of ours must not be computed as if it were one.
	for _, f := range [][2]float64{{4, 0.5}, {1 << 40, 1. / (1 << 20)}, {0x1p-80, 1 << 40},
		{math.SmallestNonzeroFloat64, 0x1p537}, {math.MaxFloat64, 0x1p-512}} {
		if got := InversePowers(f[0], 2)[1]; got != f[1] {
			t.Errorf("the root of 1/%v is %v, want %v", f[0], got, f[1])
		}
	}
	// They are the nearest numbers.
	for i, f := range InversePowers(1e6, 64) {
		p := power(new(big.Float).SetPrec(300).SetFloat64(f), 64) // f⁶⁴·base^i ≈ 1
		p.Mul(p, power(new(big.Float).SetPrec(300).SetInt64(1000000), max(i, 1)))
		if off, _ := p.Sub(p, big.NewFloat(1)).Float64(); i > 0 && math.Abs(off) > 64*0x1p-53 {
			t.Errorf("number %d is off by %v", i, off)
		}
	}
}

// Both are the same to the bit on every processor.
func TestAnglesOnEveryProcessor(t *testing.T) {
	h := fnv.New64a()
	put := func(x float64) { h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))) }
	for _, base := range []float64{1e4, 5e5, 1e6, 1e7, 3.25} {
		for _, f := range InversePowers(base, 64) {
			put(f)
			for x := f; x < 1<<27; x *= 3.7 {
				sin, cos := Sincos(x)
				put(sin)
				put(cos)
			}
		}
	}
	if got := h.Sum64(); got != 0x9fad65e9d380939e {
		t.Errorf("%#016x", got)
	}
}
