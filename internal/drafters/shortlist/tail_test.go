package shortlist

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
)

// The tail's numbers are the mean and, if it has a column for every dimension, the variance of the
// logits. Equal rows are summed exactly.
func TestTailSumsUp(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		vocab, d := rapid.IntRange(1, 300).Draw(t, "vocab"), rapid.IntRange(1, 20).Draw(t, "dimensions")
		head, w := randomHead(r, vocab, d)
		if rapid.Bool().Draw(t, "bias") {
			head.Bias = make([]float32, vocab)
			for i := range head.Bias {
				head.Bias[i] = float32(r.NormFloat64())
			}
		}
		var tokens []int32
		for i := range vocab {
			if r.IntN(3) > 0 || i == 0 {
				tokens = append(tokens, int32(i))
			}
		}
		head.Norm = &nn.Norm{Weight: make([]float32, d), Eps: 1e-6}
		for i := range head.Norm.Weight {
			head.Norm.Weight[i] = r.Float32()
		}
		tail, err := newTail(pool, head, tokens)
		if err != nil {
			t.Fatal(err)
		}
		l := new(List)
		l.end(tail, 0)
		// In a matrix as wide as the longest of several lists, a row ends with numbers that belong to no list.
		h, dst := nn.NewMat(1, d), nn.NewMat(1, l.Width()+rapid.IntRange(0, 3).Draw(t, "more"))
		for i := range dst.Data {
			dst.Data[i] = 10
		}
		for i := range h.Data {
			h.Data[i] = float32(r.NormFloat64())
		}
		new(output.Lists).Run(nn.NewExec(pool), nn.Source{X: h}, []*output.Shortlist{&l.Shortlist}, dst)
		logit := func(token int32) (sum float64) {
			for i, x := range w.Row(int(token)) {
				sum += float64(x) * float64(h.Data[i])
			}
			return sum
		}
		mean := 0.0
		variance := 0.0
		n := float64(len(tokens))
		for _, token := range tokens {
			mean += logit(token) / n
		}
		for _, token := range tokens {
			variance += (logit(token) - mean) * (logit(token) - mean) / n
		}
		if head.Bias != nil { // it moves the mean; its own spread is left out
			for _, token := range tokens {
				mean += float64(head.Bias[token]) / n
			}
		}
		if math.Abs(mean-float64(dst.Data[0])) > 1e-3 {
			t.Fatalf("mean %g, want %g", dst.Data[0], mean)
		}
		got := tail.rest
		for _, x := range dst.Data[1:l.Width()] {
			got += float64(x) * float64(x)
		}
		if math.Abs(got-variance) > 1e-3*(1+variance) {
			t.Fatalf("variance %g, want %g", got, variance)
		}
		clear(dst.Data[1:l.Width()]) // as if all rows were equal
		tail.rest = 0
		if mass := l.LogOutside(dst.Data, 1); math.Abs(mass-math.Log(n)-mean) > 1e-3 {
			t.Fatalf("mass %g outside the list, want %g", mass, math.Log(n)+mean)
		}
		some := r.IntN(len(tokens) + 1)
		l.Reset()
		l.end(tail, some)
		left := n - float64(some)
		if mass := l.LogOutside(dst.Data, 1); mass != math.Log(left)+mean && math.Abs(mass-math.Log(left)-mean) > 1e-3 {
			t.Fatalf("mass %g of %g equal tokens that are not listed, want %g", mass, left, math.Log(left)+mean)
		}
	})
}

// For normal logits with the variance of an output head's, the estimate is too large by what
// heavier tails would add, at every usual temperature. Estimates from only the mean or the largest
// token are far worse.
func TestTailEstimatesMass(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, deviation := range []float64{0.5, 1, 1.6} {
		for _, temperature := range []float32{0.5, 1, 1.3} {
			const n = 10000
			exact := math.Inf(-1)
			for range n {
				exact = logAdd(exact, deviation*r.NormFloat64()/float64(temperature))
			}
			got := (&tail{tokens: n, rest: deviation * deviation}).logMass([]float32{0}, temperature, math.Inf(1))
			s := deviation / float64(temperature)
			if d := got - exact; d < -0.3 || d > 0.3+(fatness-0.5)*s*s {
				t.Errorf("deviation %g at temperature %g: off by %g", deviation, temperature, d)
			}
		}
	}
}

// If the likeliest tokens are listed, the same holds for the rest.
func TestTailBelowTheLikeliest(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, deviation := range []float64{0.5, 1, 1.6, 2.5} {
		for _, temperature := range []float32{0.3, 0.5, 1} {
			for _, listed := range []int{100, 500, 2500} {
				const n = 10000
				logits := make([]float64, n)
				for i := range logits {
					logits[i] = deviation * math.Sqrt(2*fatness) * r.NormFloat64() // with tails as heavy as the tail assumes
				}
				slices.Sort(logits)
				exact := math.Inf(-1)
				for _, l := range logits[:n-listed] {
					exact = logAdd(exact, l/float64(temperature))
				}
				got := (&tail{tokens: n, rest: deviation * deviation}).logMass([]float32{0}, temperature,
					cutAbove(float64(listed)/n))
				if d := got - exact; math.Abs(d) > 0.35 {
					t.Errorf("deviation %g at temperature %g, %d listed: off by %g", deviation, temperature, listed, d)
				}
			}
		}
	}
}

// logAdd returns log(exp(a) + exp(b)).
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(a, 0) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}
