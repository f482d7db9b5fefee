package grove

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Of a vocabulary of 150,000 the small terms count: together they are half a percent here, and each is less than the
// largest one's rounding.
func TestLogprobsOfManyTokens(t *testing.T) {
	for _, gap := range []float64{15, 16, 17, 17.5, 20} {
		logits, sum := make([]float32, 150_000), 1.0
		for i := range logits[1:] {
			logits[1+i] = float32(-gap + math.Sin(float64(i))/4)
			sum += math.Exp(float64(logits[1+i]))
		}
		l := logprobs{top: 1}
		p := l.at(0, logits).Logprob.Logprob
		if want := -math.Log(sum); math.Abs(float64(p)-want) > 3e-5 {
			t.Errorf("%g below: %g, want %g", gap, p, want)
		}
	}
}

// Log-probabilities are those of the softmax in double precision, and the likeliest tokens come in the same order.
func TestLogprobsOfAnyLogits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logit := rapid.OneOf(rapid.Float32Range(-30, 30), rapid.SampledFrom([]float32{0, 7, float32(math.Inf(-1))}))
		l := logprobs{top: rapid.IntRange(0, 9).Draw(t, "top"), prompt: 1}
		vocab := rapid.IntRange(1, 300).Draw(t, "vocabulary")
		for place := range 3 {
			logits := rapid.SliceOfN(logit, vocab, vocab).Draw(t, "logits")
			token := rapid.IntRange(0, vocab-1).Draw(t, "token")
			logits[token] = rapid.Float32Range(-30, 30).Draw(t, "its logit")
			l.add(1+place, int32(token), logits)

			sum, order := 0.0, make([]int32, vocab)
			for i, x := range logits {
				order[i] = int32(i)
				sum += math.Exp(float64(x))
			}
			slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(logits[b], logits[a]) })
			check := func(got Logprob, want int32) {
				p := float64(logits[want]) - math.Log(sum)
				if got.Token != want || !(math.Abs(float64(got.Logprob)-p) < 1e-5) && !math.IsInf(p, -1) {
					t.Fatalf("%v, want token %d with %g", got, want, p)
				}
			}
			_, output := l.take()
			check(output[0].Logprob, int32(token))
			if len(output[0].Top) != min(l.top, vocab) {
				t.Fatalf("%d of %d tokens are listed, want %d", len(output[0].Top), vocab, l.top)
			}
			for i, got := range output[0].Top {
				check(got, order[i])
			}
		}
	})
}
