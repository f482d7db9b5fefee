// How clues become chances: a multinomial logit over the candidates below a node, whose weights were fitted.

package clues

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/simd"
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

// utility is a candidate's.
func (w *Weights) utility(x *spot, c *clue) (u float32) {
	class, at := x.set(), draft.DepthClass(x.at)
	if x.headed {
		u = w[wHead+int(x.class)]*c.head + w[wHeadAt+at]*c.head + w[wLean+at]*c.sure
		if x.strays {
			u += w[wHeadLost] * c.head
		}
	}
	u += w[wRank+at] * c.rank
	if c.noise != 0 {
		u += w[wNoise+class] * c.noise
		if x.headed {
			u += w[wNoiseAt+at] * c.noise
		}
	}
	if c.class == 0 {
		return u
	}
	own := int(c.class) + class - int(x.class)
	u += w[wSeen+own] + w[wShare+own]*c.share
	if c.longer {
		u += w[wLonger+class]
	}
	if c.latest {
		u += w[wLatest+class]
	}
	if c.agreed {
		u += w[wAgreed+class]
	}
	return u
}

// others is the utility of all tokens together that are no candidates.
func (w *Weights) others(x *spot) float32 {
	u := w[wOther+x.set()]
	if x.headed {
		u += w[wOtherAt+draft.DepthClass(x.at)] + w[wBeyond]*x.beyond + w[wLast]*x.last + w[wRankLast]*x.rank
		if x.strays {
			u += w[wLost]
		}
	}
	return u
}

// set is where the weights of a node's class are.
func (x *spot) set() int {
	if x.headed {
		return int(x.class)
	}
	return int(x.class) + matchClasses
}

// chances makes candidates of clues, the likeliest first and as many as dst has room for: LogProb is the logarithm of the
// chance given the parent. utility is scratch.
func (w *Weights) chances(x *spot, clues []clue, dst []sample.Candidate, utility []float32) ([]sample.Candidate, []float32) {
	utility = utility[:0]
	for i := range clues {
		utility = append(utility, w.utility(x, &clues[i]))
	}
	utility = append(utility, w.others(x))
	norm := simd.LogSumExp(utility)
	dst = dst[:0]
	for i := range clues {
		p, n := utility[i]-norm, len(dst)
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
