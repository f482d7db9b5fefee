package simd

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
)

// Accuracy is tested on the level in use; TestLevelsSameBits carries it to the others.

var every = flag.Bool("every", false, "test the functions of one variable on every f32 (minutes)")

// sweep calls check with f32 values: all of them with -every, else those around every
// exponent and a random million in [lo, hi].
func sweep(lo, hi float32, check func(x []float32)) {
	buf := make([]float32, 0, 1<<14)
	put := func(x float32) {
		if x != x || x < lo || x > hi {
			return
		}
		buf = append(buf, x)
		if len(buf) == cap(buf) {
			check(buf)
			buf = buf[:0]
		}
	}
	if *every {
		for u := uint64(0); u < 1<<32; u++ {
			put(math.Float32frombits(uint32(u)))
		}
	} else {
		r := rand.New(rand.NewPCG(5, 6))
		for e := range uint32(1 << 9) {
			for range 200 {
				put(math.Float32frombits(e<<23 | r.Uint32()&(1<<23-1)))
			}
		}
		for range 1_000_000 {
			put(lo + (hi-lo)*r.Float32())
			put(float32(r.NormFloat64()))
		}
	}
	check(buf)
}

// ulps is the error in units of the last place of the f32 nearest the truth.
func ulps(got float32, want float64) float64 {
	ulp := math.Ldexp(1, max(math.Ilogb(want), -126)-23)
	return math.Abs(float64(got)-want) / ulp
}

func TestExpAccuracy(t *testing.T) {
	worst, at := 0.0, float32(0)
	dst := make([]float32, 1<<14)
	sweep(negInf, inf, func(x []float32) {
		Exp(dst[:len(x)], x)
		for i, v := range x {
			want := math.Exp(float64(v))
			switch {
			case want < 0x1p-126:
				if v < expLo && dst[i] != 0 || dst[i] > 0x1.00001p-126 {
					t.Fatalf("exp(%g) = %g, want 0 below the normal numbers", v, dst[i])
				}
			case float32(want) == inf:
				if dst[i] != inf {
					t.Fatalf("exp(%g) = %g, want +Inf", v, dst[i])
				}
			default:
				if u := ulps(dst[i], want); u > worst {
					worst, at = u, v
				}
			}
		}
	})
	t.Logf("worst %.3f ulp at %g", worst, at)
	if worst > 1 {
		t.Errorf("exp(%g): off by %.3f ulp", at, worst)
	}
	for _, c := range []struct{ x, want float32 }{{0, 1}, {float32(math.Copysign(0, -1)), 1}, {inf, inf}, {negInf, 0},
		{-104, 0}, {89, inf}} {
		Exp(dst[:1], []float32{c.x})
		if dst[0] != c.want {
			t.Errorf("exp(%g) = %g, want %g", c.x, dst[0], c.want)
		}
	}
	Exp(dst[:1], []float32{float32(math.NaN())})
	if dst[0] == dst[0] {
		t.Errorf("exp(NaN) = %g", dst[0])
	}
}

// The activations are within rel·|truth| + abs of the truth.
func TestActivationAccuracy(t *testing.T) {
	cases := []struct {
		name     string
		f        func(dst, x []float32)
		truth    func(x float64) float64
		rel, abs float64
		lo, hi   float32
	}{
		{"silu", func(dst, x []float32) {
			for i := range dst {
				dst[i] = 1
			}
			SiLUMul(dst, x, dst)
		}, func(x float64) float64 { return x / (1 + math.Exp(-x)) }, 3e-7, 1e-36, -200, 1e30},
		{"gelu by tanh", func(dst, x []float32) {
			for i := range dst {
				dst[i] = 1
			}
			GELUMul(dst, x, dst)
		}, func(x float64) float64 {
			return x / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
		}, 2e-5, 1e-36, -10, 1e30},
		{"gelu", GELU, func(x float64) float64 { return x * 0.5 * math.Erfc(-x/math.Sqrt2) }, 4.5e-7, 1e-36, -1e30, 1e30},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			worst := 0.0
			worstAbs := 0.0
			at := float32(0)
			dst := make([]float32, 1<<14)
			run := func(x []float32) {
				c.f(dst[:len(x)], x)
				for i, v := range x {
					want := c.truth(float64(v))
					err := math.Abs(float64(dst[i]) - want)
					if math.IsNaN(err) {
						t.Fatalf("f(%g) = %g, want %g", v, dst[i], want)
					}
					worstAbs = max(worstAbs, err/max(1, math.Abs(want)))
					if rel := (err - c.abs) / math.Abs(want); rel > worst {
						worst, at = rel, v
					}
				}
			}
			sweep(c.lo, c.hi, run)
			if !*every {
				sweep(max(c.lo, -20), 20, run)
			}
			t.Logf("worst relative error beyond %g: %.3g at %g; worst error over max(1, |truth|): %.3g", c.abs, worst, at, worstAbs)
			if worst > c.rel {
				t.Errorf("f(%g): relative error %.3g beyond %g, want <= %.3g", at, worst, c.abs, c.rel)
			}
		})
	}
}

func TestLogSumExpAccuracy(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 400 {
		x := make([]float32, 1+r.IntN(5000))
		shift, width := r.NormFloat64()*50, r.Float64()*20
		for i := range x {
			x[i] = float32(r.NormFloat64()*width + shift)
		}
		m, s := math.Inf(-1), 0.0
		for _, v := range x {
			m = max(m, float64(v))
		}
		for _, v := range x {
			s += math.Exp(float64(v) - m)
		}
		want := m + math.Log(s)
		if got := LogSumExp(x); math.Abs(float64(got)-want) > 3e-7*max(1, math.Abs(want), math.Abs(m)) {
			t.Fatalf("LogSumExp of %d = %g, want %g", len(x), got, want)
		}
	}
}

func TestSoftmaxAccuracy(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 400 {
		n, scale := 1+r.IntN(3000), float32(r.Float64()+0.01)
		x, want := make([]float32, n), make([]float64, n)
		m, s := math.Inf(-1), 0.0
		for i := range x {
			x[i] = float32(r.NormFloat64() * 5)
			m = max(m, float64(x[i])*float64(scale))
		}
		for i := range x {
			want[i] = math.Exp(float64(x[i])*float64(scale) - m)
			s += want[i]
		}
		Softmax(x, scale)
		for i := range x {
			// scale·x is rounded to f32 first: half a last place of the largest, twice.
			if err := math.Abs(float64(x[i])/(want[i]/s) - 1); err > 1e-6+2.4e-7*math.Abs(m) {
				t.Fatalf("weight %d of %d: %g, want %g", i, n, x[i], want[i]/s)
			}
		}
	}
}

func TestNormAccuracy(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 300 {
		n := 1 + r.IntN(4000)
		x := make([]float32, n)
		w := make([]float32, n)
		b := make([]float32, n)
		dst := make([]float32, n)
		mean := 0.0
		ss := 0.0
		vr := 0.0
		off := r.NormFloat64()
		for i := range x {
			x[i] = float32(r.NormFloat64() + off)
			w[i] = float32(r.NormFloat64())
			b[i] = float32(r.NormFloat64())
			mean += float64(x[i]) / float64(n)
			ss += float64(x[i]) * float64(x[i])
		}
		for _, v := range x {
			vr += (float64(v) - mean) * (float64(v) - mean) / float64(n)
		}
		check := func(name string, want func(i int) float64) {
			t.Helper()
			for i := range dst {
				if v := want(i); math.Abs(float64(dst[i])-v) > 4e-6*max(1, math.Abs(v)) {
					t.Fatalf("%s of %d: element %d is %g, want %g", name, n, i, dst[i], v)
				}
			}
		}
		RMSNorm(dst, x, w, 1e-6)
		check("RMSNorm", func(i int) float64 { return float64(x[i]) / math.Sqrt(ss/float64(n)+1e-6) * float64(w[i]) })
		norm := func(i int) float64 { return (float64(x[i]) - mean) / math.Sqrt(vr+1e-5) * float64(w[i]) }
		LayerNorm(dst, x, w, b, 1e-5)
		check("LayerNorm", func(i int) float64 { return norm(i) + float64(b[i]) })
		LayerNorm(dst, x, w, nil, 1e-5)
		check("LayerNorm without b", norm)
	}
}
