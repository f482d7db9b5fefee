package control

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/testing/cases"
)

func drawExperts(t *rapid.T) Experts {
	x := Experts{Layers: rapid.IntRange(1, 40).Draw(t, "layers"), Count: rapid.IntRange(1, 200).Draw(t, "experts"),
		Bytes: rapid.IntRange(1, 1<<24).Draw(t, "bytes"), Dense: rapid.IntRange(1, 1<<30).Draw(t, "dense")}
	x.Used = rapid.IntRange(1, x.Count).Draw(t, "used")
	return x
}

// Whatever is observed, one row reads its experts, more rows read no fewer, and never more than
// there are.
func TestUnionRises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := &expertUnion{Experts: drawExperts(t)}
		for range rapid.IntRange(0, 50).Draw(t, "passes") {
			n := rapid.IntRange(1, 100).Draw(t, "rows")
			u.observe(n, rapid.IntRange(0, u.Layers*u.Count).Draw(t, "read"))
		}
		if got, want := u.distinct(1), float64(u.Layers*u.Used); math.Abs(got-want) > 1e-6*want {
			t.Fatalf("a row reads %g experts, want %g", got, want)
		}
		last := 0.0
		for n := 1; n < 200; n++ {
			d := u.distinct(n)
			if d < last*(1-1e-9) || d > float64(u.Layers*u.Count)*(1+1e-9) {
				t.Fatalf("%d rows read %g experts, %d rows %g, of %d", n, d, n-1, last, u.Layers*u.Count)
			}
			last = d
		}
	})
}

// Rows that tend to choose the same experts are predicted to do so after a few passes have shown it.
func TestUnionIsLearned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := Experts{Layers: 10, Count: 128, Used: 8}
		truth := &expertUnion{Experts: x, alike: rapid.Float64Range(0, 0.9).Draw(t, "alike")}
		u := &expertUnion{Experts: x}
		for range 40 {
			n := rapid.IntRange(1, 32).Draw(t, "rows")
			u.observe(n, int(math.Round(truth.distinct(n))))
		}
		n := rapid.IntRange(2, 32).Draw(t, "asked")
		u.observe(8, int(math.Round(truth.distinct(8))))
		if got, want := u.distinct(n), truth.distinct(n); math.Abs(got-want) > 0.05*want {
			t.Fatalf("%d rows read %g experts, want %g", n, got, want)
		}
	})
}

// If some experts are chosen more often than others, what trees of one size read predicts what
// trees of other sizes will.
func TestUnionOfPopularExperts(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		x := Experts{Layers: 6, Count: rapid.SampledFrom([]int{32, 64, 128}).Draw(t, "experts")}
		x.Used = rapid.IntRange(2, x.Count/8).Draw(t, "used")
		skew := rapid.Float64Range(0, 1.25).Draw(t, "skew")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		popularity := make([]float64, x.Layers*x.Count)
		for i := range popularity {
			popularity[i] = skew * rng.NormFloat64()
		}
		read := func(n int) (distinct int) {
			for layer := range x.Layers {
				chosen := make([]bool, x.Count)
				for range n {
					scores := make([]float64, x.Count)
					for e := range scores { // the highest of these are a draw without replacement
						scores[e] = popularity[layer*x.Count+e] - math.Log(rng.ExpFloat64())
					}
					least := slices.Sorted(slices.Values(scores))[x.Count-x.Used]
					for e, s := range scores {
						chosen[e] = chosen[e] || s >= least
					}
				}
				for _, c := range chosen {
					if c {
						distinct++
					}
				}
			}
			return distinct
		}
		u := &expertUnion{Experts: x}
		size := rapid.SampledFrom([]int{4, 8, 16}).Draw(t, "size")
		for range 16 {
			u.observe(size, read(size))
		}
		for _, n := range []int{2, 4, 8, 16} {
			mean := 0.0
			for range 16 {
				mean += float64(read(n)) / 16
			}
			if got := u.distinct(n); math.Abs(got/mean-1) > 0.15 {
				t.Fatalf("%d rows read %.1f experts, expected %.1f from passes of %d rows", n, mean, got, size)
			}
		}
	})
}

// Times that depend on the weights read are predicted between and beyond the measured counts, where
// a curve that does not know about experts is far off.
func TestTimesFollowExperts(t *testing.T) {
	x := Experts{Layers: 48, Count: 128, Used: 8, Bytes: 3 << 20, Dense: 1 << 30}
	truth := &expertUnion{Experts: x, alike: 0.3}
	seconds := func(n int) float64 { return math.Hypot(truth.bytes(n)/20e9, 0.004*float64(n)) }
	with, without := newCostCurve(rowAxis), newCostCurve(rowAxis)
	with.union = &expertUnion{Experts: x}
	for _, n := range []int{1, 1, 1, 16, 16, 16} {
		with.observeExperts(n, int(truth.distinct(n)))
		with.observe(n, seconds(n))
		without.observe(n, seconds(n))
	}
	worst, other := 0.0, 0.0
	for n := 1; n <= 32; n++ {
		worst = max(worst, math.Abs(with.at(n)/seconds(n)-1))
		other = max(other, math.Abs(without.at(n)/seconds(n)-1))
	}
	if worst > 0.05 || other < 2*worst {
		t.Errorf("predictions are off by %.0f %% at most, without experts by %.0f %%", 100*worst, 100*other)
	}
}

// A tree shrinks if each of its rows needs other experts.
func TestTreesShrinkWithExperts(t *testing.T) {
	sizes := map[bool]int{}
	for _, sparse := range []bool{false, true} {
		curve := newCostCurve(rowAxis)
		if sparse {
			curve.union = &expertUnion{Experts: Experts{Layers: 48, Count: 128, Used: 8, Bytes: 3 << 20,
				Dense: 1 << 28}}
		}
		curve.observe(1, 0.05)
		m := &masses{}
		for p := float32(0.8); p > 0.01; p *= 0.8 {
			m.chance = append(m.chance, p)
		}
		sizes[sparse] = m.size(&curve, 1, 1, 0.01)
	}
	if sizes[true] >= sizes[false] {
		t.Errorf("%d nodes with experts, %d without", sizes[true], sizes[false])
	}
}
