package sample

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Golden values from an independent implementation, Python integers and 60-digit decimals:
//
//	M, G = 2**64-1, 0x9e3779b97f4a7c15
//	def mix(z):
//	    z = ((z ^ z>>30) * 0xbf58476d1ce4e5b9) & M
//	    z = ((z ^ z>>27) * 0x94d049bb133111eb) & M
//	    return z ^ z>>31
//	def rotl(x, k): return (x<<k | x>>(64-k)) & M
//	def draw(seed, position, token):
//	    key = mix((mix((seed+G) & M) + rotl(mix((position+G) & M), 32)) & M)
//	    return mix((key + (token+1)*G) & M)
//	def noise(seed, position, token):
//	    u = (Decimal(draw(seed, position, token)>>12) + Decimal("0.5")) / 2**52
//	    return -((-(u.ln())).ln())
var goldenNoise = []struct {
	seed     uint64
	position int
	token    int32
	bits     uint64
	noise    float64
}{
	{0, 0, 0, 0x3d282a38b8cd2b30, -0.35888688759929793},
	{0, 0, 1, 0x6b9e8065c06c9f60, 0.14320215334831723},
	{0, 1, 0, 0x7804b83608f30663, 0.2776893906604197},
	{1, 0, 0, 0x774ff79e9e69c808, 0.26993067853387975},
	{42, 17, 151935, 0xec6e92e942094c42, 2.5317831379780849},
	{18446744073709551615, 1048576, 128255, 0x0353d59dcc4dd45d, -1.4685567652974483},
	{123456789, 2047, 8191, 0xccd752c5bf2610fd, 1.5008397965648559},
	{7, 31, 262143, 0xb1cf1bc3a060ecf7, 1.0093181522062156},
}

func TestNoiseGolden(t *testing.T) {
	for _, g := range goldenNoise {
		if b := draw(stream(g.seed, g.position), g.token); b != g.bits {
			t.Errorf("bits of (%d, %d, %d): %#x, want %#x", g.seed, g.position, g.token, b, g.bits)
		}
		if n := Noise(g.seed, g.position, g.token); math.Abs(n-g.noise) > 4e-16*max(1, math.Abs(g.noise)) {
			t.Errorf("noise of (%d, %d, %d): %.17g, want %.17g", g.seed, g.position, g.token, n, g.noise)
		}
	}
	if lo, hi := gumbel(0), gumbel(math.MaxUint64); math.Abs(lo+3.6037789929704576) > 1e-14 ||
		math.Abs(hi-36.736800569677101) > 1e-13 {
		t.Errorf("noise lies between %.17g and %.17g", lo, hi)
	}
}

// ln against the standard library's, over all sizes and near 1, where cancellation would show.
func TestLn(t *testing.T) {
	worst := 0.0
	for i := range uint64(200000) {
		h := mix(i)
		x := math.Ldexp(1+float64(h>>12)*0x1p-52, int(i%2000)-1000)
		if i%2 == 0 {
			x = 1 - math.Ldexp(1+float64(h>>12)*0x1p-52, -int(i/2%53)-1)
		}
		if x <= 0 || x == 1 {
			continue
		}
		want := math.Log(x)
		worst = max(worst, math.Abs(ln(x)-want)/math.Abs(want))
	}
	if worst > 5e-16 {
		t.Errorf("off by %g", worst)
	}
}

// The noise is that of standard Gumbel variables: u = exp(−exp(−g)) is uniform, over tokens, over
// positions and over seeds, and neighbours in each of the three are independent (16 × 16 cells).
func TestNoiseDistribution(t *testing.T) {
	const n = 1 << 18
	uniform := func(g float64) int { return int(16 * math.Exp(-math.Exp(-g))) }
	at := map[string]func(i int) float64{
		"token":    func(i int) float64 { return Noise(9, 1000, int32(i)) },
		"position": func(i int) float64 { return Noise(9, i, 77) },
		"seed":     func(i int) float64 { return Noise(uint64(i), 1000, 77) },
	}
	for name, f := range at {
		var cells [256]int
		for i := range n {
			cells[uniform(f(2*i))<<4|uniform(f(2*i+1))]++
		}
		if x := chiSquare(cells[:], nil, n); x > 351 { // 255 degrees of freedom: 1 in 20000
			t.Errorf("neighbouring %ss: chi-square %g", name, x)
		}
	}
	var cells [256]int
	for i := range n { // the same token at neighbouring positions and seeds
		cells[uniform(Noise(uint64(i), i, int32(i%1000)))<<4|uniform(Noise(uint64(i), i+1, int32(i%1000)+1))]++
	}
	if x := chiSquare(cells[:], nil, n); x > 351 {
		t.Errorf("diagonal neighbours: chi-square %g", x)
	}
}

// chiSquare of counts against probabilities (nil: all equal).
func chiSquare(count []int, p []float64, n int) (x float64) {
	for i, c := range count {
		want := float64(n) / float64(len(count))
		if p != nil {
			want = p[i] * float64(n)
		}
		if want > 0 {
			x += (float64(c) - want) * (float64(c) - want) / want
		}
	}
	return x
}

// Sample draws from the softmax of the processed logits: exactly, so at a fixed seed a chi-square test over
// positions, and one over seeds, must pass. Pairs of neighbouring positions are independent.
func TestSampleDistribution(t *testing.T) {
	logits := []float32{2, 1.5, 1, .5, 0, 0, -1, negInf, -2, 3, 1.25, -.5}
	const n = 60000
	for _, p := range []Params{
		{Temperature: 1}, {Temperature: .7}, {Temperature: 2, TopK: 6}, {Temperature: 1,
			TopP: .8}, {Temperature: 1.3, MinP: .15},
	} {
		prob := make([]float32, len(logits))
		s, _ := New(p, len(logits))
		s.Probs(prob, logits, nil)
		want := make([]float64, len(prob))
		free := -1.0
		for i, q := range prob {
			want[i] = float64(q)
			if q > 0 {
				free++
			}
		}
		limit := free + 5*math.Sqrt(2*free)
		count := make([]int, len(prob))
		pairs, pairWant := make([]int, len(prob)*len(prob)), make([]float64, len(prob)*len(prob))
		last := int32(0)
		for i := range n {
			tok := s.Sample(logits, i, nil)
			count[tok]++
			if i%2 == 1 {
				pairs[int(last)*len(prob)+int(tok)]++
			}
			last = tok
		}
		overSeeds := 0.0
		for position := range 20 {
			seeds := make([]int, len(prob))
			for i := range n / 10 {
				s.p.Seed = uint64(i)
				seeds[s.Sample(logits, position, nil)]++
			}
			overSeeds += chiSquare(seeds, want, n/10)
		}
		for i, q := range want {
			for j, r := range want {
				pairWant[i*len(want)+j] = q * r
			}
			if q == 0 && count[i] > 0 {
				t.Errorf("%+v: token %d was drawn", p, i)
			}
		}
		if x := chiSquare(count, want, n); x > limit {
			t.Errorf("%+v over positions: chi-square %g with %g degrees of freedom", p, x, free)
		}
		if overSeeds > 20*free+5*math.Sqrt(40*free) {
			t.Errorf("%+v over seeds: chi-square %g with %g degrees of freedom", p, overSeeds, 20*free)
		}
		free = (free+1)*(free+1) - 1
		if x := chiSquare(pairs, pairWant, n/2); x > free+6*math.Sqrt(2*free) {
			t.Errorf("%+v, pairs: chi-square %g with %g degrees of freedom", p, x, free)
		}
	}
}

// Tokens of appendHighNoise have the highest noise of all, and are as many as asked for on average.
func TestLoudTokensHaveTheHighestNoise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, position := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 1<<20).Draw(t, "position")
		vocab := rapid.IntRange(1, 3000).Draw(t, "vocab")
		high := appendHighNoise(nil, seed, position, vocab, rapid.IntRange(1, 200).Draw(t, "n"))
		if !slices.IsSorted(high) {
			t.Fatalf("%v", high)
		}
		least, most := math.Inf(1), math.Inf(-1)
		for token := range int32(vocab) {
			g := Noise(seed, position, token)
			if _, in := slices.BinarySearch(high, token); in {
				least = min(least, g)
			} else {
				most = max(most, g)
			}
		}
		if least < most {
			t.Fatalf("noise %g is listed, and %g is not", least, most)
		}
	})
	const n, positions, vocab = 48, 400, 16384
	var high []int32
	for position := range positions {
		high = appendHighNoise(high, 7, position, vocab, n)
	}
	if mean := float64(len(high)) / positions; math.Abs(mean-n) > 2 { // six standard deviations
		t.Errorf("%g tokens on average, want %d", mean, n)
	}
	if all := appendHighNoise(nil, 1, 1, 50, 80); len(all) != 50 {
		t.Errorf("%d of 50 tokens", len(all))
	}
}

// None of the tokens is asked for: there is none.
func TestNoHighNoise(t *testing.T) {
	for _, n := range []int{0, -1} {
		if got := appendHighNoise([]int32{7}, 1, 2, 1000, n); len(got) != 1 {
			t.Errorf("%d tokens where %d are asked for", len(got)-1, n)
		}
	}
}
