// How clues become chances: a multinomial logit over the candidates below a node, whose weights were fitted.

package clues

import (
	"math"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/sample"
)

// Weights by place. Those of a class are by the class of the node's longest match, but seen and share by the class of the
// candidate's own. A node that the head has a row for has the first set of those of a class, another the second.
const (
	wHead     = iota                          // of the head's log-probability, by class
	wHeadAt   = wHead + matchClasses          // of the same, by class of depth
	wHeadLost = wHeadAt + draft.DepthClasses  // of the same, where the path left the head's first guesses
	wLean     = wHeadLost + 1                 // of the root of the head's probability, by class of depth: see draft.LeaningChances
	wNoise    = wLean + draft.DepthClasses    // of the noise, by class
	wNoiseAt  = wNoise + 2*matchClasses       // of the same, by class of depth, where the head has a row
	wOtherAt  = wNoiseAt + draft.DepthClasses // constant of all other tokens, by class of depth
	wLost     = wOtherAt + draft.DepthClasses // the same, where the path left the head's first guesses
	wBeyond   = wLost + 1                     // of beyond, for all others
	wLast     = wBeyond + 1                   // of last, for all others
	wSeen     = wLast + 1                     // constant of what followed a match
	wShare    = wSeen + 2*matchClasses        // of share
	wLonger   = wShare + 2*matchClasses       // constant of what followed a shorter match alone
	wLatest   = wLonger + 2*matchClasses      // constant of what followed the latest occurrence
	wAgreed   = wLatest + 2*matchClasses      // constant of what followed the last two
	wOther    = wAgreed + 2*matchClasses      // constant of all other tokens
	wRank     = wOther + 2*matchClasses       // of rank, by class of depth
	wRankLast = wRank + draft.DepthClasses    // of rank, for all others
	nWeights  = wRankLast + 1
)

// feature is a number that a weight is for.
type feature struct {
	weight int
	x      float32
}

// most features of a candidate.
const mostFeatures = 12

// featuresOf lists those of a candidate, or, where c is nil, of all other tokens together.
func featuresOf(dst []feature, x *spot, c *clue) []feature {
	set := 0
	if !x.headed {
		set = matchClasses
	}
	class := int(x.class) + set
	if c == nil {
		dst = append(dst, feature{wOther + class, 1})
		if x.headed {
			dst = append(dst, feature{wOtherAt + draft.DepthClass(x.at), 1}, feature{wBeyond, x.beyond}, feature{wLast, x.last})
			if x.strays {
				dst = append(dst, feature{wLost, 1})
			}
			if x.rank != 0 {
				dst = append(dst, feature{wRankLast, x.rank})
			}
		}
		return dst
	}
	if x.headed {
		at := draft.DepthClass(x.at)
		dst = append(dst, feature{wHead + int(x.class), c.head}, feature{wHeadAt + at, c.head}, feature{wLean + at, c.sure})
		if x.strays {
			dst = append(dst, feature{wHeadLost, c.head})
		}
	}
	if c.rank != 0 {
		dst = append(dst, feature{wRank + draft.DepthClass(x.at), c.rank})
	}
	if c.noise != 0 {
		dst = append(dst, feature{wNoise + class, c.noise})
		if x.headed {
			dst = append(dst, feature{wNoiseAt + draft.DepthClass(x.at), c.noise})
		}
	}
	if c.class > 0 {
		own := int(c.class) + set
		dst = append(dst, feature{wSeen + own, 1}, feature{wShare + own, c.share})
		if c.longer {
			dst = append(dst, feature{wLonger + class, 1})
		}
		if c.latest {
			dst = append(dst, feature{wLatest + class, 1})
		}
		if c.agreed {
			dst = append(dst, feature{wAgreed + class, 1})
		}
	}
	return dst
}

// Weights of a temperature.
type Weights [nWeights]float32

// Fit is weights at temperatures 0 and 1.
type Fit struct{ Cold, Hot Weights }

// At is between those fitted at temperatures 0 and 1, and not far beyond.
func (f *Fit) At(temperature float32) (w Weights) {
	t := min(temperature, 1.3)
	for i := range w {
		w[i] = f.Cold[i] + t*(f.Hot[i]-f.Cold[i])
	}
	return w
}

func (w *Weights) utility(x *spot, c *clue) float32 {
	var list [mostFeatures]feature
	u := float32(0)
	for _, f := range featuresOf(list[:0], x, c) {
		u += w[f.weight] * f.x
	}
	return u
}

// chances makes candidates of clues, the likeliest first and as many as dst has room for: LogProb is the logarithm of the
// chance given the parent. utility is scratch.
func (w *Weights) chances(x *spot, clues []clue, dst []sample.Candidate, utility []float32) ([]sample.Candidate, []float32) {
	other := w.utility(x, nil)
	most := other
	utility = utility[:0]
	for i := range clues {
		u := w.utility(x, &clues[i])
		utility = append(utility, u)
		most = max(most, u)
	}
	sum := math.Exp(float64(other - most))
	for _, u := range utility {
		sum += math.Exp(float64(u - most))
	}
	norm := most + float32(math.Log(sum))
	dst = dst[:0]
	for i, u := range utility {
		p, n := u-norm, len(dst)
		if n == cap(dst) {
			if n--; p <= dst[n].LogProb {
				continue
			}
		} else {
			dst = dst[:n+1]
		}
		for ; n > 0 && dst[n-1].LogProb < p; n-- {
			dst[n] = dst[n-1]
		}
		dst[n] = sample.Candidate{Token: clues[i].token, LogProb: p}
	}
	return dst, utility
}
