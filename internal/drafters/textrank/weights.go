// How features become probabilities: a softmax over the candidates below a node.

package textrank

import (
	"github.com/grovellm/grove/internal/drafters/calibrate"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/sample"
)

// Weights by index. Weights by class use the class of the node's longest n-gram, except seen and
// share, which use that of the candidate's own. They come in two sets: the first for nodes with a
// row, the second for nodes without.
const (
	wDrafter    = iota                                // of the drafter's log-probability, by class
	wDrafterAt  = wDrafter + matchClasses             // of the same, by class of depth
	wDrafterOff = wDrafterAt + calibrate.DepthClasses // of the same, where the path left the drafter's first candidates
	wRoot       = wDrafterOff + 1                     // of the root of the drafter's probability, by class of depth
	wNoise      = wRoot + calibrate.DepthClasses      // of the noise, by class
	wNoiseAt    = wNoise + 2*matchClasses             // of the same, by class of depth, where there is a row
	wOtherAt    = wNoiseAt + calibrate.DepthClasses   // bias of all other tokens, by class of depth
	wOff        = wOtherAt + calibrate.DepthClasses   // the same, where the path left the drafter's first candidates
	wBeyond     = wOff + 1                            // of beyond, for all others
	wLast       = wBeyond + 1                         // of last, for all others
	wSeen       = wLast + 1                           // bias of what followed an n-gram
	wShare      = wSeen + 2*matchClasses              // of share
	wShorter    = wShare + 2*matchClasses             // bias of what followed only a shorter n-gram
	wLatest     = wShorter + 2*matchClasses           // bias of what followed the latest occurrence
	wLastTwice  = wLatest + 2*matchClasses            // bias of what followed the last two
	wOther      = wLastTwice + 2*matchClasses         // bias of all other tokens
	wRank       = wOther + 2*matchClasses             // of rank, by class of depth
	wRankBeyond = wRank + calibrate.DepthClasses      // of rank, for all others

	// By the agreement with the off-path entry:
	wOffPathDrafter = wRankBeyond + 1                // of the drafter's log-probability
	wOffPath        = wOffPathDrafter + agreeAny + 1 // bias of the entry's tokens
	wOffPathFirst   = wOffPath + agreeAny + 1        // bias of its first token
	wOffPathGap     = wOffPathFirst + agreeAny + 1   // of gap
	wOffPathOther   = wOffPathGap + agreeAny + 1     // bias of all other tokens
	weightsCount    = wOffPathOther + agreeAny + 1
)

// Weights of the softmax.
type Weights [weightsCount]float32

// term is a weight's index and the number that it multiplies.
type term struct {
	weight int
	x      float32
}

// termsMost limits the terms of a logit.
const termsMost = 16

// terms returns the terms of a candidate's logit.
func (n *nodeFeatures) terms(f *features, dst []term) []term {
	class, at := n.set(), calibrate.DepthClass(n.depth)
	dst = dst[:0]
	if n.hasRow {
		dst = append(dst, term{wDrafter + int(n.class), f.drafter}, term{wDrafterAt + at, f.drafter},
			term{wRoot + at, f.root}, term{wRank + at, f.rank})
		if n.offTop {
			dst = append(dst, term{wDrafterOff, f.drafter})
		}
	}
	if f.noise != 0 {
		dst = append(dst, term{wNoise + class, f.noise})
		if n.hasRow {
			dst = append(dst, term{wNoiseAt + at, f.noise})
		}
	}
	if n.agree > 0 && n.hasRow {
		dst = append(dst, term{wOffPathDrafter + n.agree, f.drafter})
	}
	if f.offPath {
		dst = append(dst, term{wOffPath + n.agree, 1}, term{wOffPathGap + n.agree, f.gap})
		if f.first {
			dst = append(dst, term{wOffPathFirst + n.agree, 1})
		}
	}
	if f.class == 0 {
		return dst
	}
	own := int(f.class) + class - int(n.class)
	dst = append(dst, term{wSeen + own, 1}, term{wShare + own, f.share})
	if f.shorter {
		dst = append(dst, term{wShorter + class, 1})
	}
	if f.latest {
		dst = append(dst, term{wLatest + class, 1})
	}
	if f.lastTwice {
		dst = append(dst, term{wLastTwice + class, 1})
	}
	return dst
}

// otherTerms returns the terms of the joint logit of all tokens that are not candidates.
func (n *nodeFeatures) otherTerms(dst []term) []term {
	dst = append(dst[:0], term{wOther + n.set(), 1})
	if n.agree > 0 {
		dst = append(dst, term{wOffPathOther + n.agree, 1})
	}
	if n.hasRow {
		dst = append(dst, term{wOtherAt + calibrate.DepthClass(n.depth), 1}, term{wBeyond, n.beyond}, term{wLast, n.last},
			term{wRankBeyond, n.rank})
		if n.offTop {
			dst = append(dst, term{wOff, 1})
		}
	}
	return dst
}

// logit returns the sum of the terms.
func (w *Weights) logit(terms []term) (u float32) {
	for _, t := range terms {
		u += w[t.weight] * t.x
	}
	return u
}

// logits returns those of all candidates, followed by the joint logit of all other tokens.
func (w *Weights) logits(n *nodeFeatures, list []features, dst []float32) []float32 {
	var room [termsMost]term
	dst = dst[:0]
	for i := range list {
		dst = append(dst, w.logit(n.terms(&list[i], room[:0])))
	}
	return append(dst, w.logit(n.otherTerms(room[:0])))
}

// set returns the index of the weights for a node's class.
func (n *nodeFeatures) set() int {
	if n.hasRow {
		return int(n.class)
	}
	return int(n.class) + matchClasses
}

// probabilities turns features into candidates, the most probable first, as many as dst has room
// for. LogProb is the logarithm of the probability given the node. logits is scratch.
func (w *Weights) probabilities(n *nodeFeatures, list []features, dst []sample.Candidate,
	logits []float32) ([]sample.Candidate, []float32) {
	logits = w.logits(n, list, logits)
	norm := simd.LogSumExp(logits)
	dst = dst[:0]
	for i := range list {
		p, at := logits[i]-norm, len(dst)
		if at == cap(dst) {
			at--
			if p <= dst[at].LogProb {
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
