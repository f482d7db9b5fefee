// The rank head: its features of a row's distribution, the classes it sorts rows into, and its choice.

package specblock

import "math"

const (
	// Features is how many numbers describe a distribution (SpecBlock, appendix B): the logarithms
	// of the ten largest probabilities, how far the first logit exceeds the second, the third and the
	// fifth, the largest probability, and the entropy.
	Features = 15

	// FeatureLogits is how many of the largest logits these are made from: in the release the
	// distribution has no others.
	FeatureLogits = 20
)

// Beyond has the part of a distribution due to logits that are not among the largest: the sums of
// exp(l) and of l·exp(l), where l is a logit less the largest of all. Zeros leave that part out, as
// the release does.
type Beyond struct{ Mass, Moment float64 }

// BeyondOf sums a row's logits except the largest, which top lists in order.
func BeyondOf(logits, top []float32) (b Beyond) {
	if len(top) == 0 || math.IsInf(float64(top[0]), 0) {
		return b
	}
	add := func(l float32, sign float64) {
		if d := float64(l) - float64(top[0]); d > leastLog {
			e := math.Exp(d)
			b.Mass, b.Moment = b.Mass+sign*e, b.Moment+sign*d*e
		}
	}
	for _, l := range logits {
		add(l, 1)
	}
	for _, l := range top {
		add(l, -1)
	}
	return Beyond{max(b.Mass, 0), min(b.Moment, 0)}
}

// FeaturesOf fills dst, of length Features, from a row's largest logits, at most FeatureLogits and
// the largest first, and from what is beyond them.
func FeaturesOf(top []float32, b Beyond, dst []float32) {
	clear(dst)
	if len(top) == 0 {
		return
	}
	var p [FeatureLogits]float64 // relative to the first
	sum := b.Mass
	for i, l := range top {
		p[i] = math.Exp(float64(l) - float64(top[0]))
		sum += p[i]
	}
	log := math.Log(sum)
	entropy := (b.Mass*log - b.Moment) / sum
	for i, l := range top {
		at := max(float64(l)-float64(top[0])-log, leastLog)
		if i < 10 {
			dst[i] = float32(at)
		}
		entropy -= p[i] / sum * at
	}
	last := dst[min(len(top), 10)-1]
	for i := len(top); i < 10; i++ { // a vocabulary of fewer than ten tokens
		dst[i] = last
	}
	for i, rank := range []int{1, 2, 4} {
		dst[10+i] = dst[0] - dst[rank]
	}
	dst[13], dst[14] = float32(1/sum), float32(entropy)
}

// leastLog limits features if tokens are excluded by logits of minus infinity.
const leastLog = -30

// BucketOf returns the class of a rank, counted from 1 (§3.2).
func BucketOf(rank int) int {
	switch {
	case rank <= 1:
		return 0
	case rank <= 4:
		return 1
	case rank <= 10:
		return 2
	}
	return 3
}

// Chosen returns the bucket that the rank head's scores of a row choose, with a head's RankOffset.
func Chosen(scores []float32, offset *[RankBuckets]float32) int {
	best := 0
	for b, v := range scores[:RankBuckets] {
		if v+offset[b] > scores[best]+offset[best] {
			best = b
		}
	}
	return best
}
