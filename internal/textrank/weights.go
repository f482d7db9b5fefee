// How features become probabilities: a softmax over the candidates below a node, whose weights were fitted.

package textrank

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/simd"
	"github.com/grovellm/grove/sample"
)

// Weights by place. Those of a class go by the class of the node's longest n-gram, but seen and share by that of the
// candidate's own. A node with a row has the first set of those of a class, another the second.
const (
	wDrafter     = iota                            // of the drafter's log-probability, by class
	wDrafterAt   = wDrafter + matchClasses         // of the same, by class of depth
	wDrafterOff  = wDrafterAt + draft.DepthClasses // of the same, where the path left the drafter's first candidates
	wRoot        = wDrafterOff + 1                 // of the root of the drafter's probability, by class of depth
	wNoise       = wRoot + draft.DepthClasses      // of the noise, by class
	wNoiseAt     = wNoise + 2*matchClasses         // of the same, by class of depth, where there is a row
	wOtherAt     = wNoiseAt + draft.DepthClasses   // bias of all other tokens, by class of depth
	wOff         = wOtherAt + draft.DepthClasses   // the same, where the path left the drafter's first candidates
	wBeyond      = wOff + 1                        // of beyond, for all others
	wLast        = wBeyond + 1                     // of last, for all others
	wSeen        = wLast + 1                       // bias of what followed an n-gram
	wShare       = wSeen + 2*matchClasses          // of share
	wShorter     = wShare + 2*matchClasses         // bias of what followed a shorter n-gram alone
	wLatest      = wShorter + 2*matchClasses       // bias of what followed the latest occurrence
	wLastTwice   = wLatest + 2*matchClasses        // bias of what followed the last two
	wOther       = wLastTwice + 2*matchClasses     // bias of all other tokens
	wRank        = wOther + 2*matchClasses         // of rank, by class of depth
	wRankBeyond  = wRank + draft.DepthClasses      // of rank, for all others
	weightsCount = wRankBeyond + 1
)

// Weights of a temperature.
type Weights [weightsCount]float32

// Fit is weights at temperatures 0 and 1.
type Fit struct{ T0, T1 Weights }

// At is between those fitted at temperatures 0 and 1, and not far beyond.
func (f *Fit) At(temperature float32) (w Weights) {
	t := min(temperature, 1.3)
	for i := range w {
		w[i] = f.T0[i] + t*(f.T1[i]-f.T0[i])
	}
	return w
}

// logit is a candidate's.
func (w *Weights) logit(n *nodeFeatures, f *features) (u float32) {
	class, at := n.set(), draft.DepthClass(n.depth)
	if n.hasRow {
		u = w[wDrafter+int(n.class)]*f.drafter + w[wDrafterAt+at]*f.drafter + w[wRoot+at]*f.root
		if n.offTop {
			u += w[wDrafterOff] * f.drafter
		}
	}
	u += w[wRank+at] * f.rank
	if f.noise != 0 {
		u += w[wNoise+class] * f.noise
		if n.hasRow {
			u += w[wNoiseAt+at] * f.noise
		}
	}
	if f.class == 0 {
		return u
	}
	own := int(f.class) + class - int(n.class)
	u += w[wSeen+own] + w[wShare+own]*f.share
	if f.shorter {
		u += w[wShorter+class]
	}
	if f.latest {
		u += w[wLatest+class]
	}
	if f.lastTwice {
		u += w[wLastTwice+class]
	}
	return u
}

// others is the logit of all tokens together that are no candidates.
func (w *Weights) others(n *nodeFeatures) float32 {
	u := w[wOther+n.set()]
	if n.hasRow {
		u += w[wOtherAt+draft.DepthClass(n.depth)] + w[wBeyond]*n.beyond + w[wLast]*n.last + w[wRankBeyond]*n.rank
		if n.offTop {
			u += w[wOff]
		}
	}
	return u
}

// set is where the weights of a node's class are.
func (n *nodeFeatures) set() int {
	if n.hasRow {
		return int(n.class)
	}
	return int(n.class) + matchClasses
}

// probabilities makes candidates of features, the most probable first and as many as dst has room for. LogProb is the logarithm of the
// probability given the node. logits is scratch.
func (w *Weights) probabilities(n *nodeFeatures, list []features, dst []sample.Candidate, logits []float32) ([]sample.Candidate, []float32) {
	logits = logits[:0]
	for i := range list {
		logits = append(logits, w.logit(n, &list[i]))
	}
	logits = append(logits, w.others(n))
	norm := simd.LogSumExp(logits)
	dst = dst[:0]
	for i := range list {
		p, at := logits[i]-norm, len(dst)
		if at == cap(dst) {
			if at--; p <= dst[at].LogProb {
				continue
			}
		} else {
			dst = dst[:at+1]
		}
		for ; at > 0 && dst[at-1].LogProb < p; at-- {
			dst[at] = dst[at-1]
		}
		dst[at] = sample.Candidate{Token: list[i].token, LogProb: p}
	}
	return dst, logits
}
