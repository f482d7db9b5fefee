// Paper 001 §3: what a shortlist costs in acceptance. Lemma 1, Lemma 2 and Theorem A are claims
// about all distributions, so they are checked against generated ones.

package shortlist

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// distribution draws a distribution over n tokens: from nearly uniform to nearly certain, with zeros and ties.
func distribution(t *rapid.T, n int, label string) []float64 {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, label), 4))
	spread := rapid.SampledFrom([]float64{0, 0.1, 1, 5, 30}).Draw(t, label+" spread")
	p := make([]float64, n)
	sum := 0.0
	for i := range p {
		p[i] = math.Exp(spread * r.NormFloat64())
		switch r.IntN(6) {
		case 0:
			p[i] = 0
		case 1:
			p[i] = p[r.IntN(i+1)]
		}
		sum += p[i]
	}
	if sum == 0 {
		p[0], sum = 1, 1
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// acceptance is the chance that a token drawn from q is accepted against p: Σ min(p, q), equation
// 3.
func acceptance(p, q []float64) (sum float64) {
	for i := range p {
		sum += min(p[i], q[i])
	}
	return sum
}

func mass(p []float64, subset []int) (sum float64) {
	for _, i := range subset {
		sum += p[i]
	}
	return sum
}

// onto returns p restricted to some of the tokens and normalised, or uniform if p is zero there.
func onto(p []float64, subset []int) []float64 {
	q := make([]float64, len(p))
	m := mass(p, subset)
	for _, i := range subset {
		q[i] = 1 / float64(len(subset))
		if m > 0 {
			q[i] = p[i] / m
		}
	}
	return q
}

// top returns the k largest of p, the first of equal ones.
func top(p []float64, k int) []int {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case p[a] > p[b]:
			return -1
		case p[a] < p[b]:
			return 1
		}
		return 0
	})
	return order[:k]
}

const slack = 1e-12

// Lemma 1: drafts from a subset are accepted at most as often as the target's mass there, and the
// target normalised on the subset reaches this bound.
func TestLemma1(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "tokens")
		p := distribution(t, n, "target")
		subset := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "subset"), 5)).Perm(n)[:rapid.IntRange(1, n).Draw(t,
			"size")]
		most := mass(p, subset)
		if a := acceptance(p, onto(distribution(t, n, "drafter"), subset)); a > most+slack {
			t.Fatalf("a drafter on the subset is accepted %g of the time, and the subset has %g", a, most)
		}
		if a := acceptance(p, onto(p, subset)); math.Abs(a-most) > slack {
			t.Fatalf("the target on the subset is accepted %g of the time, and the subset has %g", a, most)
		}
	})
}

// Lemma 2: of all subsets of a size, the likeliest tokens are accepted most often. All subsets are
// tried.
func TestLemma2(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "tokens")
		k := rapid.IntRange(1, n).Draw(t, "size")
		p := distribution(t, n, "target")
		best := 0.0
		for set := range uint(1 << n) {
			if bits.OnesCount(set) == k {
				var subset []int
				for i := range n {
					if set>>i&1 == 1 {
						subset = append(subset, i)
					}
				}
				best = max(best, acceptance(p, onto(p, subset)))
			}
		}
		if h := mass(p, top(p, k)); math.Abs(h-best) > slack {
			t.Fatalf("the %d likeliest have %g, the best subset %g", k, h, best)
		}
	})
}

// Theorem A: over any contexts, each with its likeliest tokens, acceptance is at least that of one
// subset for all; it is greater if in some context the likeliest tokens are unique and the subset
// differs from them. The same holds for the tokens of a verification.
func TestTheoremA(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "tokens")
		k := rapid.IntRange(1, n).Draw(t, "size")
		contexts := rapid.IntRange(1, 6).Draw(t, "contexts")
		weights := distribution(t, contexts, "contexts")
		var ps [][]float64
		for range contexts {
			ps = append(ps, distribution(t, n, "target"))
		}
		// The static subset: a random one, or the best one for all contexts, which is the likeliest
		// tokens of their mixture.
		static := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "subset"), 6)).Perm(n)[:k]
		if rapid.Bool().Draw(t, "best") {
			mixture := make([]float64, n)
			for c, p := range ps {
				for i := range p {
					mixture[i] += weights[c] * p[i]
				}
			}
			static = top(mixture, k)
		}
		dynamic := 0.0
		fixed := 0.0
		strict := 0.0
		for c, p := range ps {
			order := top(p, n)
			own := order[:k]
			dynamic += weights[c] * acceptance(p, onto(p, own))
			fixed += weights[c] * acceptance(p, onto(p, static))
			if k < n && !slices.Equal(slices.Sorted(slices.Values(own)), slices.Sorted(slices.Values(static))) {
				strict += weights[c] * (p[order[k-1]] - p[order[k]]) // the least that one exchange loses
			}
		}
		if dynamic < fixed+strict-slack {
			t.Fatalf("acceptance %g with each context's own tokens, %g with the same for all: want %g more", dynamic,
				fixed, strict)
		}
		for length := range 9 {
			if d, f := perVerification(dynamic, length), perVerification(fixed, length); d < f-slack {
				t.Fatalf("%g tokens a verification of %d drafted, %g with the static subset", d, length, f)
			}
		}
	})
}

// perVerification is Ω(α, γ): the tokens committed per verification of γ drafted ones, each
// accepted with probability α.
func perVerification(accept float64, length int) (sum float64) {
	power := 1.0
	for range length + 1 {
		sum += power
		power *= accept
	}
	return sum
}

// None of grove's lists can exceed the oracle: the mass that any method lists is at most that of
// equally many of the likeliest tokens. The measured share of a frequency list is what its ranks
// say on the text in which they were counted.
func TestFrequencyAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 80).Draw(t, "tokens")
		p := distribution(t, n, "text")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		counts := make([]int64, n)
		text := make([]int32, 2000)
		for i := range text {
			u := r.Float64()
			for token := range p {
				u -= p[token]
				if u < 0 || token == n-1 {
					text[i] = int32(token)
					counts[token]++
					break
				}
			}
		}
		ranks := Count(n, nil, "", text)
		size := rapid.IntRange(1, n).Draw(t, "size")
		empirical := make([]float64, n)
		for i, c := range counts {
			empirical[i] = float64(c) / float64(len(text))
		}
		var subset []int
		for _, token := range ranks.First(size) {
			subset = append(subset, int(token))
		}
		if got, oracle := mass(empirical, subset), mass(empirical, top(empirical, size)); math.Abs(got-oracle) > slack {
			t.Fatalf("a list of %d covers %g of the text it was counted in, the oracle %g", size, got, oracle)
		}
		if got, oracle := mass(p, subset), mass(p, top(p, size)); got > oracle+slack {
			t.Fatalf("a list of %d covers %g, more than the oracle's %g", size, got, oracle)
		}
	})
}
