// Trees whose children are drawn from the block's distributions, for rejection sampling (JetSpec, equation 12). A row
// is the same below every node of its depth, but children are drawn anew below each.

package onepass

import (
	"math"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/sample"
)

// drawing is the state for drawn trees of a sequence. probs, logs and most have the depths of the current tree, or of
// the last one.
type drawing struct {
	draw  *sample.Sampler // draws from logs; nil: candidates are chosen
	probs [][]float32     // of each depth: the distribution of children there, over the target's vocabulary
	logs  [][]float32     // their logarithms
	most  []float32       // of each depth: the largest of probs
	below [][]float32     // of each node of the tree: the distribution of its children; nil: it has none
	worth []float32       // of each node: its chance to be accepted
}

// drawer returns the sampler that draws the trees of a sequence. It returns nil if trees are not drawn: that was not
// requested, or they depend on more than the block's distributions.
func (d *Drafter) drawer(o *draft.Options) (*sample.Sampler, error) {
	b := &d.Shape.Builder
	if !o.Sampled || d.corrector != nil || d.Weights != nil || len(d.Methods) > 0 || b.Template != nil || b.Order != nil {
		return nil, nil
	}
	o.Sampled = false // for everything else: distributions are those of the target's options
	return sample.New(sample.Params{Temperature: 1, Seed: o.Seed ^ treebuild.DrawSeed}, d.Vocab)
}

// ready makes room for the distributions of all depths.
func (s *state) ready() {
	for s.draw != nil && len(s.probs) < s.depth {
		s.probs, s.logs = append(s.probs, make([]float32, s.d.Vocab)), append(s.logs, make([]float32, s.d.Vocab))
		s.most = append(s.most, 0)
	}
}

// distribute computes the distribution of depth i+1.
func (s *state) distribute(sampler *sample.Sampler, i int) {
	p, logs := s.probs[i], s.logs[i]
	logits := s.outputs[i].Logits
	if tokens := s.outputs[i].Tokens; tokens != nil {
		for t := range logs {
			logs[t] = float32(math.Inf(-1))
		}
		for row, token := range tokens {
			logs[token] = logits[row]
		}
		logits = logs
	}
	n := min(len(p), len(logits))
	clear(p[n:])
	sampler.Probs(p[:n], logits[:n], s.History)
	s.most[i] = 0
	for t, x := range p {
		logs[t] = float32(math.Log(float64(x)))
		s.most[i] = max(s.most[i], x)
	}
}

// drawTree draws the children of the node that is likeliest to be accepted, until the budget is spent. Draws may decide
// which node that is, but not how many children a node gets.
func (s *state) drawTree() {
	t, k := s.request.Tree, s.d.Shape.Ranked(s.budget)
	s.worth, s.below = append(s.worth[:0], 1), append(s.below[:0], nil)
	drawn := make([]bool, s.budget)
	for t.Len() < s.budget {
		node := -1
		for i, w := range s.worth {
			if !drawn[i] && int(t.Depth[i]) < s.depth && (node < 0 || w > s.worth[node]) {
				node = i
			}
		}
		if node < 0 {
			break
		}
		drawn[node] = true
		depth := int(t.Depth[node])
		n := min(treebuild.DrawnBreadth(k, s.most[depth]), s.budget-t.Len())
		c := s.draw.Top(make([]sample.Candidate, 0, n), s.logs[depth], treebuild.DrawPosition(s.At, node), nil)
		for len(c) > 0 && !(s.probs[depth][c[len(c)-1].Token] > 0) {
			c = c[:len(c)-1]
		}
		treebuild.DrawnChances(c)
		for _, x := range c {
			t.Append(node, x.Token, x.LogProb)
			s.worth = append(s.worth, s.worth[node]*treebuild.Chance(s.request.Guide, depth+1, x.LogProb))
			s.below = append(s.below, nil)
			s.below[node] = s.probs[depth]
		}
	}
}

// drawn returns the distribution of a node's children in the last proposed tree; see draft.Proposal.
func (s *state) drawn(node int) []float32 {
	if node < 0 || node >= len(s.below) {
		return nil
	}
	return s.below[node]
}
