// What the rank head reads of a row's distribution, and the classes it sorts rows into.

package specblock

import "math"

const (
	// Features is how many numbers describe a distribution (paper 004, appendix B): the logarithms of the ten largest
	// probabilities, how far the first logit lies before the second, the third and the fifth, the largest probability, and the entropy.
	Features = 15

	// FeatureLogits is how many of the largest logits these are made of: the distribution is theirs alone.
	FeatureLogits = 20
)

// FeaturesOf fills dst, Features long, from the largest logits of a row, up to FeatureLogits, the largest first.
func FeaturesOf(top, dst []float32) {
	clear(dst)
	if len(top) == 0 {
		return
	}
	var p [FeatureLogits]float64 // relative to the first
	sum := 0.0
	for i, l := range top {
		p[i] = math.Exp(float64(l) - float64(top[0]))
		sum += p[i]
	}
	log := math.Log(sum)
	entropy := 0.0
	for i, l := range top {
		at := max(float64(l)-float64(top[0])-log, leastLog)
		if i < 10 {
			dst[i] = float32(at)
		}
		entropy -= p[i] / sum * at
	}
	last := dst[min(len(top), 10)-1]
	for i := len(top); i < 10; i++ { // a vocabulary of less than ten tokens
		dst[i] = last
	}
	for i, rank := range []int{1, 2, 4} {
		dst[10+i] = dst[0] - dst[rank]
	}
	dst[13], dst[14] = float32(1/sum), float32(entropy)
}

// leastLog bounds features where tokens are shut out, with logits of minus infinity.
const leastLog = -30

// BucketOf is the class of a rank, counted from 1 (§3.2).
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
