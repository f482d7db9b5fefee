package simd

import (
	"math"
	"slices"
	"sort"
	"testing"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/kernels/num"
	"pgregory.net/rapid"
)

// atLevels runs a test at every level this processor has.
func atLevels(t *testing.T, f func(t *testing.T)) {
	for _, l := range cpu.Levels() {
		t.Run(l.String(), func(t *testing.T) {
			defer cpu.Use(l)()
			f(t)
		})
	}
}

func floats(n int) *rapid.Generator[[]float32] {
	return rapid.SliceOfN(rapid.Float32Range(-8, 8), n, n)
}

// few draws from few values, so that ties are common, with infinities and NaNs.
func few(n int) *rapid.Generator[[]float32] {
	v := rapid.SampledFrom([]float32{-2, -1, 0, float32(math.Copysign(0, -1)), 1, 2, 3, inf, negInf, float32(math.NaN())})
	return rapid.SliceOfN(v, n, n)
}

func TestArgMaxAndTopKAgainstSorting(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.OneOf(rapid.IntRange(0, 80), rapid.IntRange(0, 3000)).Draw(t, "n")
			gen := floats(n)
			if rapid.Bool().Draw(t, "ties") {
				gen = few(n)
			}
			x := gen.Draw(t, "x")
			order := make([]int32, n)
			for i := range order {
				order[i] = int32(i)
			}
			sort.SliceStable(order, func(i, j int) bool {
				a, b := x[order[i]], x[order[j]]
				return a > b || a == a && b != b
			})
			want := -1
			if n > 0 && x[order[0]] == x[order[0]] {
				want = int(order[0])
			}
			if got := ArgMax(x); got != want {
				t.Fatalf("ArgMax = %d, want %d", got, want)
			}
			k := rapid.OneOf(rapid.IntRange(0, 70), rapid.IntRange(0, n+2)).Draw(t, "k")
			idx, val := make([]int32, k), make([]float32, k)
			if got := TopK(x, idx, val); got != min(k, n) {
				t.Fatalf("TopK wrote %d of %d, want %d", got, n, min(k, n))
			}
			idx = idx[:min(k, n)]
			if !slices.Equal(idx, order[:len(idx)]) {
				t.Fatalf("TopK = %v, want %v", idx, order[:len(idx)])
			}
			for i, at := range idx {
				if math.Float32bits(val[i]) != math.Float32bits(x[at]) {
					t.Fatalf("value %d is %g, want %g", i, val[i], x[at])
				}
			}
		})
	})
}

func TestTopKOfAVocabulary(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		const n = 151936
		x := make([]float32, n)
		for name, f := range map[string]func(i int) float32{
			"ascending":  func(i int) float32 { return float32(i) },
			"descending": func(i int) float32 { return float32(-i) },
			"equal":      func(i int) float32 { return 1 },
			"mixed":      func(i int) float32 { return float32(i * 7919 % 10007) },
		} {
			for i := range x {
				x[i] = f(i)
			}
			best := slices.Max(x)
			if i := ArgMax(x); i != slices.Index(x, best) {
				t.Errorf("%s: ArgMax = %d", name, i)
			}
			idx, val := make([]int32, 64), make([]float32, 64)
			TopK(x, idx, val)
			for i := range idx {
				if val[i] != x[idx[i]] || i > 0 && (val[i] > val[i-1] || val[i] == val[i-1] && idx[i] < idx[i-1]) {
					t.Fatalf("%s: entry %d is x[%d] = %g after x[%d] = %g", name, i, idx[i], val[i], idx[max(i-1, 0)], val[max(i-1, 0)])
				}
			}
			in := 0
			for _, v := range x {
				if v > val[63] {
					in++
				}
			}
			if in > 63 {
				t.Errorf("%s: %d entries are larger than the last of 64", name, in)
			}
		}
	})
}

func TestSoftmaxOfSpecials(t *testing.T) {
	nan := float32(math.NaN())
	atLevels(t, func(t *testing.T) {
		for n := 1; n < 70; n++ {
			x := make([]float32, n)
			for i := range x {
				x[i] = negInf
			}
			Softmax(x, 0.5)
			for i, v := range x {
				if v != 0 {
					t.Fatalf("all -Inf: weight %d of %d is %g", i, n, v)
				}
				x[i] = negInf
			}
			x[n/2] = -3
			Softmax(x, 0.5)
			for i, v := range x {
				if want := float32(0); i == n/2 && v != 1 || i != n/2 && v != want {
					t.Fatalf("one finite: weight %d of %d is %g", i, n, v)
				}
			}
			for _, bad := range []float32{nan, inf} {
				x[n-1] = bad
				Softmax(x, 0.5)
				for i, v := range x {
					if v == v {
						t.Fatalf("%g among them: weight %d of %d is %g", bad, i, n, v)
					}
				}
			}
		}
		Softmax(nil, 1)
	})
}

func TestLogSumExpOfSpecials(t *testing.T) {
	nan := float32(math.NaN())
	atLevels(t, func(t *testing.T) {
		for _, c := range []struct {
			x    []float32
			want float32
		}{{nil, negInf}, {[]float32{negInf, negInf}, negInf}, {[]float32{negInf, 3}, 3}, {[]float32{1, inf}, inf},
			{[]float32{-1e30}, -1e30}, {[]float32{0}, 0}, {[]float32{1, nan}, nan}, {[]float32{negInf, nan},
				nan}, {[]float32{nan}, nan}} {
			if got := LogSumExp(c.x); got != c.want && (got == got || c.want == c.want) {
				t.Errorf("LogSumExp(%v) = %g, want %g", c.x, got, c.want)
			}
		}
	})
}

// The lanes of a sum, spelled out: element i in lane i%16, lanes 8, 4, 2, 1 apart added.
func TestSumsRunInSixteenLanes(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			x := floats(rapid.IntRange(0, 200).Draw(t, "n")).Draw(t, "x")
			mean := rapid.Float32Range(-2, 2).Draw(t, "mean")
			var l, q [16]float32
			for i, v := range x {
				l[i%16] += v
				q[i%16] = num.FMA(v-mean, v-mean, q[i%16])
			}
			fold := func(l [16]float32) float32 {
				a := func(i int) float32 { return l[i] + l[i+8] }
				b := func(i int) float32 { return a(i) + a(i+4) }
				c := func(i int) float32 { return b(i) + b(i+2) }
				return c(0) + c(1)
			}
			if got, want := sum(x), fold(l); got != want {
				t.Fatalf("sum = %g, want %g", got, want)
			}
			if got, want := sumSquares(x, mean), fold(q); got != want {
				t.Fatalf("sumSquares = %g, want %g", got, want)
			}
		})
	})
}

func TestScoresAndMixAreChains(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			rows, hd := rapid.IntRange(1, 5).Draw(t, "rows"), rapid.IntRange(0, 50).Draw(t, "hd")
			count := rapid.IntRange(0, PageRows).Draw(t, "count")
			q, page := floats(rows*hd).Draw(t, "q"), floats(hd*PageRows).Draw(t, "page")
			dst := make([]float32, rows*PageRows)
			Scores(dst, PageRows, q, hd, rows, hd, page)
			o, p := floats(rows*hd).Draw(t, "o"), floats(rows*PageRows).Draw(t, "p")
			mixed := slices.Clone(o)
			Mix(mixed, hd, p, PageRows, rows, hd, count, page)
			for r := range rows {
				for j := range PageRows {
					s := float32(0)
					for d := range hd {
						s = num.FMA(q[r*hd+d], page[d*PageRows+j], s)
					}
					if dst[r*PageRows+j] != s {
						t.Fatalf("score of row %d, position %d is %g, want %g", r, j, dst[r*PageRows+j], s)
					}
				}
				for d := range hd {
					s := o[r*hd+d]
					for j := range count {
						s = num.FMA(p[r*PageRows+j], page[j*hd+d], s)
					}
					if mixed[r*hd+d] != s {
						t.Fatalf("row %d, lane %d is %g, want %g", r, d, mixed[r*hd+d], s)
					}
				}
			}
		})
	})
}

// A row's result does not depend on the rows that are computed with it.
func TestRowsAreIndependent(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			rows := rapid.IntRange(1, 40).Draw(t, "rows")
			hd := rapid.SampledFrom([]int{1, 8, 16, 24, 40, 64, 80, 96, 128, 131}).Draw(t, "hd")
			count := rapid.IntRange(1, PageRows).Draw(t, "count")
			s := source{Rand: newRand(rapid.Uint64().Draw(t, "seed"))}
			q := s.slice(rows * hd)
			page := s.slice(hd * PageRows)
			p := s.slice(rows * count)
			one, all := make([]float32, rows*PageRows), make([]float32, rows*PageRows)
			o1 := s.slice(rows * hd)
			oAll := slices.Clone(o1)
			Scores(all, PageRows, q, hd, rows, hd, page)
			Mix(oAll, hd, p, count, rows, hd, count, page)
			for r := range rows {
				Scores(one[r*PageRows:], PageRows, q[r*hd:], hd, 1, hd, page)
				half := count / 2 // and a page mixed in two goes is the same chain
				Mix(o1[r*hd:], hd, p[r*count:], count, 1, hd, half, page)
				Mix(o1[r*hd:], hd, p[r*count+half:], count, 1, hd, count-half, page[half*hd:])
			}
			if i := firstDiff(one, all); i >= 0 {
				t.Fatalf("Scores, row %d: %s alone, %s with others", i/PageRows, bits(one[i]), bits(all[i]))
			}
			if i := firstDiff(o1, oAll); i >= 0 {
				t.Fatalf("Mix, row %d: %s alone, %s with others", i/hd, bits(o1[i]), bits(oAll[i]))
			}
		})
	})
}

// Both layouts of pairs are one rotation, which keeps lengths and undoes itself backwards.
func TestRope(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			h := rapid.IntRange(0, 70).Draw(t, "h")
			x := floats(2*h+3).Draw(t, "x")
			angle := rapid.SliceOfN(rapid.Float64Range(-7, 7), h, h).Draw(t, "angle")
			cos, sin := make([]float32, h), make([]float32, h)
			half, pairs := slices.Clone(x), slices.Clone(x)
			for i, a := range angle {
				cos[i], sin[i] = float32(math.Cos(a)), float32(math.Sin(a))
				pairs[2*i], pairs[2*i+1] = x[i], x[i+h]
			}
			RopeHalf(half, cos, sin)
			RopePairs(pairs, cos, sin)
			for i, a := range angle {
				if half[i] != pairs[2*i] || half[i+h] != pairs[2*i+1] {
					t.Fatalf("pair %d: (%g, %g) in halves, (%g, %g) in pairs", i, half[i], half[i+h], pairs[2*i], pairs[2*i+1])
				}
				u, v := float64(x[i]), float64(x[i+h])
				if math.Abs(float64(half[i])-(u*math.Cos(a)-v*math.Sin(a))) > 3e-6 ||
					math.Abs(float64(half[i+h])-(v*math.Cos(a)+u*math.Sin(a))) > 3e-6 {
					t.Fatalf("(%g, %g) by %g is (%g, %g)", u, v, a, half[i], half[i+h])
				}
			}
			if !slices.Equal(half[2*h:], x[2*h:]) {
				t.Fatalf("what is not rotated changed: %v, was %v", half[2*h:], x[2*h:])
			}
		})
	})
}

func TestNoAllocation(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		x := make([]float32, 4*128)
		w := make([]float32, 4*128)
		page := make([]float32, 32*128)
		idx := make([]int32, 9)
		n := testing.AllocsPerRun(20, func() {
			Softmax(x, 1)
			RMSNorm(x, x, w, 1e-6)
			GELU(x, w)
			TopK(w, idx, x)
			ArgMax(w)
			LogSumExp(w)
			Scores(x, 32, w, 128, 4, 128, page)
			Mix(x, 128, w, 32, 4, 128, 32, page)
		})
		if n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}
