package onepass

import (
	"math"
	"slices"
	"testing"

	"github.com/grovellm/grove/sample"
	"pgregory.net/rapid"
)

// For any distribution, the entropy found from its likeliest tokens is at most the true one. It
// equals the true one if the distribution is flat or all tokens are candidates.
func TestEntropyOfCandidates(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		vocab := rapid.IntRange(1, 400).Draw(r, "vocab")
		k := rapid.IntRange(1, vocab).Draw(r, "k")
		spread := rapid.SampledFrom([]float64{0, .5, 3}).Draw(r, "spread")
		logits := make([]float64, vocab)
		sum := 0.0
		for i := range logits {
			logits[i] = rapid.Float64Range(-spread, spread).Draw(r, "logit")
			sum += math.Exp(logits[i])
		}
		slices.Sort(logits)
		slices.Reverse(logits)
		truth := 0.0
		level := make([]sample.Candidate, 0, k)
		for _, l := range logits {
			log := l - math.Log(sum)
			truth -= math.Exp(log) * log
			if len(level) < k {
				level = append(level, sample.Candidate{LogProb: float32(log)})
			}
		}
		got := entropy(level)
		if got > truth+1e-3 || (spread == 0 || k == vocab) && got < truth-1e-3 {
			r.Fatalf("%d of %d tokens, spread %g: entropy %.4f, in truth %.4f", k, vocab, spread, got, truth)
		}
	})
}
