package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"pgregory.net/rapid"
)

// source makes the operands of one case. The same seed makes the same operands, so that a
// case can be run again at another level.
type source struct {
	*rand.Rand
	wild  bool                              // infinities, NaNs, subnormals and whatever bits there are
	exact bool                              // without NormFloat64, which rounds as the processor has it
	place func(n int, atEnd bool) []float32 // where operands lie, when not nil
	spans []span
}

type span struct{ whole, mid []float32 }

var specials = [...]float32{0, float32(math.Copysign(0, -1)), 1, -1, inf, negInf, float32(math.NaN()),
	math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1p-126, 0x1.fffffcp-127, math.MaxFloat32, -math.MaxFloat32,
	expLo, expHi, expLo - 0x1p-17, expHi + 0x1p-17, -103.5, -104.5, 88.5, 13.3, -13.3, 14, 1e-20, 0x1p-25}

// slice returns n values at an address that is a multiple of 4 and no more, between guards.
func (s *source) slice(n int) []float32 {
	off := s.IntN(17)
	whole := make([]float32, off+n+20)
	for i := range whole {
		switch {
		case !s.wild && s.exact:
			whole[i] = float32(int32(s.Uint32())) * 0x1p-28
		case !s.wild:
			whole[i] = float32(s.NormFloat64() * 3)
		case s.IntN(3) == 0:
			whole[i] = specials[s.IntN(len(specials))]
		case s.IntN(2) == 0:
			whole[i] = math.Float32frombits(s.Uint32())
		case s.exact:
			whole[i] = float32(int32(s.Uint32())) * 0x1p-24
		default:
			whole[i] = float32(s.NormFloat64() * 40)
		}
	}
	v := whole[off : off+n : off+n]
	if s.place != nil {
		v = s.place(n, s.IntN(4) > 0)
		copy(v, whole[off:])
	}
	s.spans = append(s.spans, span{whole, v})
	return v
}

// ops runs every operation with operands from s of about n elements; what it returns, and
// all that it left in the operands and around them, must be the same bits at every level.
var ops = []struct {
	name string
	run  func(s *source, n int) []float32
}{
	{"Add", func(s *source, n int) []float32 { Add(s.slice(n), s.slice(n)); return nil }},
	{"Scale", func(s *source, n int) []float32 { Scale(s.slice(n), s.slice(1)[0]); return nil }},
	{"Axpy", func(s *source, n int) []float32 { Axpy(s.slice(n), s.slice(1)[0], s.slice(n)); return nil }},
	{"sum", func(s *source, n int) []float32 { return []float32{sum(s.slice(n))} }},
	{"sumSquares", func(s *source, n int) []float32 { return []float32{sumSquares(s.slice(n), s.slice(1)[0])} }},
	{"RMSNorm", func(s *source, n int) []float32 { RMSNorm(s.slice(n), s.slice(n), s.slice(n), 1e-6); return nil }},
	{"LayerNorm", func(s *source, n int) []float32 {
		LayerNorm(s.slice(n), s.slice(n), s.slice(n), s.slice(n), 1e-5)
		LayerNorm(s.slice(n), s.slice(n), s.slice(n), nil, 1e-5)
		return nil
	}},
	{"RopeHalf", func(s *source, n int) []float32 { RopeHalf(s.slice(2*n+5), s.slice(n), s.slice(n)); return nil }},
	{"RopePairs", func(s *source, n int) []float32 { RopePairs(s.slice(2*n+5), s.slice(n), s.slice(n)); return nil }},
	{"Exp", func(s *source, n int) []float32 { Exp(s.slice(n), s.slice(n)); return nil }},
	{"Softmax", func(s *source, n int) []float32 { Softmax(s.slice(n), 0.125); return nil }},
	{"LogSumExp", func(s *source, n int) []float32 { return []float32{LogSumExp(s.slice(n))} }},
	{"sumExp", func(s *source, n int) []float32 { return []float32{sumExp(s.slice(n), s.slice(1)[0])} }},
	{"expSum", func(s *source, n int) []float32 {
		return []float32{expSum(s.slice(n), s.slice(1)[0], s.slice(1)[0])}
	}},
	{"SiLUMul", func(s *source, n int) []float32 { SiLUMul(s.slice(n), s.slice(n), s.slice(n)); return nil }},
	{"GELUMul", func(s *source, n int) []float32 { GELUMul(s.slice(n), s.slice(n), s.slice(n)); return nil }},
	{"GELU", func(s *source, n int) []float32 { GELU(s.slice(n), s.slice(n)); return nil }},
	{"inplace", func(s *source, n int) []float32 {
		x, w := s.slice(n), s.slice(n)
		Exp(x, x)
		x = s.slice(n)
		SiLUMul(x, x, w)
		GELU(w, w)
		x = s.slice(n)
		RMSNorm(x, x, w, 1e-6)
		GELU(x, x)
		Add(x, x)
		return nil
	}},
	{"ArgMax", func(s *source, n int) []float32 { return []float32{float32(ArgMax(s.slice(n)))} }},
	{"searches", func(s *source, n int) []float32 {
		x, v := s.slice(n), s.slice(1)[0]
		if n > 0 && s.IntN(4) > 0 {
			v = x[s.IntN(n)]
		}
		return []float32{float32(indexEqual(x, v)), float32(indexAbove(x, v))}
	}},
	{"TopK", func(s *source, n int) []float32 {
		k := s.IntN(n + 3)
		idx, val := make([]int32, k), s.slice(k)
		out := []float32{float32(TopK(s.slice(n), idx, val))}
		for _, i := range idx {
			out = append(out, float32(i))
		}
		return out
	}},
	{"Scores", func(s *source, n int) []float32 {
		rows, hd := s.IntN(20), n
		ds, qs := PageRows+s.IntN(9), hd+s.IntN(9)
		Scores(s.slice(rows*ds+PageRows), ds, s.slice(rows*qs+hd), qs, rows, hd, s.slice(hd*PageRows))
		return nil
	}},
	{"BlendRows", func(s *source, n int) []float32 {
		rows := s.IntN(20)
		BlendRows(s.slice(rows*n), s.slice(rows*n), s.slice(rows), s.slice(rows), n)
		return nil
	}},
	{"Mix", func(s *source, n int) []float32 {
		rows := s.IntN(20)
		hd := n
		count := s.IntN(PageRows + 1)
		os, ps := hd+s.IntN(9), count+s.IntN(9)
		Mix(s.slice(rows*os+hd), os, s.slice(rows*ps+count), ps, rows, hd, count, s.slice(PageRows*hd))
		return nil
	}},
}

func TestLevelsSameBits(t *testing.T) {
	for _, op := range ops {
		t.Run(op.name, func(t *testing.T) {
			for n := range 71 {
				for seed := range uint64(4) {
					sameBits(t, op.run, n, seed)
				}
			}
			for _, n := range []int{96, 127, 128, 129, 1000, 1024, 3001} {
				sameBits(t, op.run, n, uint64(n))
				sameBits(t, op.run, n, uint64(n)+1)
			}
		})
	}
	for _, n := range []int{8191, 8192, 8193, 40001} { // more than one block of ArgMax
		for _, op := range ops {
			if op.name == "ArgMax" || op.name == "LogSumExp" || op.name == "Softmax" {
				sameBits(t, op.run, n, 2)
				sameBits(t, op.run, n, 3)
			}
		}
	}
}

func FuzzLevelsSameBits(f *testing.F) {
	for i := range ops {
		f.Add(uint8(i), uint16(7*i), uint64(i))
	}
	f.Fuzz(func(t *testing.T, op uint8, n uint16, seed uint64) {
		sameBits(t, ops[int(op)%len(ops)].run, int(n%600), seed)
	})
}

func TestLevelsSameBitsRapid(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		op := rapid.SampledFrom(ops).Draw(rt, "op")
		sameBits(t, op.run, rapid.IntRange(0, 300).Draw(rt, "n"), rapid.Uint64().Draw(rt, "seed"))
	})
}

// sameBits runs one case at every level. Odd seeds are wild.
func sameBits(t *testing.T, run func(*source, int) []float32, n int, seed uint64) {
	t.Helper()
	var want *source
	var wantOut []float32
	for _, l := range cpu.Levels() {
		s := &source{Rand: rand.New(rand.NewPCG(seed, uint64(n))), wild: seed%2 == 1}
		restore := cpu.Use(l)
		out := run(s, n)
		restore()
		if want == nil {
			want, wantOut = s, out
			continue
		}
		if i := firstDiff(out, wantOut); i >= 0 {
			t.Fatalf("n=%d seed=%d: result %d is %s at level %v, %s portably", n, seed, i, bits(out[i]), l, bits(wantOut[i]))
		}
		for k := range s.spans {
			got, ref := s.spans[k], want.spans[k]
			if i := firstDiff(got.whole, ref.whole); i >= 0 {
				t.Fatalf("n=%d seed=%d: operand %d element %d (of %d) is %s at level %v, %s portably", n, seed, k,
					i-(len(got.whole)-20-len(got.mid)), len(got.mid), bits(got.whole[i]), l, bits(ref.whole[i]))
			}
		}
	}
}

// firstDiff is the first place where two slices differ in more than the kind of NaN, or -1.
func firstDiff(a, b []float32) int {
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	for i, v := range a {
		if math.Float32bits(v) != math.Float32bits(b[i]) && (v == v || b[i] == b[i]) {
			return i
		}
	}
	return -1
}

func bits(f float32) string { return fmt.Sprintf("%g (%#08x)", f, math.Float32bits(f)) }

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
