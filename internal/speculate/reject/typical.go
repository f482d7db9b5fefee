package reject

import (
	"math"

	"github.com/grovellm/grove/tree"
)

// The values of Medusa's release.
const (
	typicalEpsilon = 0.09
	typicalDelta   = 0.3
)

// Typical is Medusa's acceptance rule above temperature 0 (arXiv 2401.10774, section 2.3.1): a node
// is accepted if its token's probability there is more than min(ε, δ·e^(−H)), where H is the entropy
// of the target's distribution. The longest path of such nodes is taken, or of equally long ones the
// likeliest. The text is not distributed as the target's.
type Typical struct {
	kids       []int32
	likelihood []float64 // by node: log-probability of the path to it; −∞: it is not accepted
}

// Path appends the accepted nodes below the root to dst. probs returns the target's distribution at a
// node, which may share memory with that of the node before.
func (r *Typical) Path(t *tree.Tree, probs func(node int) []float32, dst []int32) []int32 {
	r.likelihood = append(r.likelihood[:0], 0)
	for range t.Len() - 1 {
		r.likelihood = append(r.likelihood, math.Inf(-1))
	}
	best := 0
	for node := range t.Len() {
		r.kids = t.Children(node, r.kids[:0])
		if math.IsInf(r.likelihood[node], -1) || len(r.kids) == 0 {
			continue
		}
		q := probs(node)
		least := threshold(q)
		for _, kid := range r.kids {
			p := float64(q[t.Token[kid]])
			if p <= least {
				continue
			}
			r.likelihood[kid] = r.likelihood[node] + math.Log(p)
			if d := t.Depth[kid] - t.Depth[best]; d > 0 || d == 0 && r.likelihood[kid] > r.likelihood[best] {
				best = int(kid)
			}
		}
	}
	return t.Path(best, dst)[1:]
}

// threshold returns the probability that accepted tokens must exceed.
func threshold(probs []float32) float64 {
	h := 0.0
	for _, p := range probs {
		if p > 0 {
			h -= float64(p) * math.Log(float64(p)+1e-5)
		}
	}
	return min(typicalEpsilon, typicalDelta*math.Exp(-h))
}
