// Trees from a Corrector: the candidates below a node are scored for the path to it.

package onepass

import (
	"math"

	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// corrected is a state as the treebuild.Source of a Corrector's tree.
type corrected state

// Below ranks a row's candidates by their scores after the path to the node.
func (s *corrected) Below(t *tree.Tree, node int) []sample.Candidate {
	d, depth := s.d, int(t.Depth[node])
	s.paths = append(s.paths[:node], nil)
	if depth >= s.depth {
		return nil
	}
	var before []float32
	if node > 0 {
		before = s.paths[t.Parent[node]]
	}
	level := s.levels[depth]
	tokens, scores := make([]int32, len(level)), make([]float32, len(level))
	for i, c := range level {
		tokens[i] = c.Token
		scores[i] = s.outputs[depth].Logit(c.Token)
	}
	after, ok := d.corrector.Follow(d.exec, s.first+depth, depth+1, t.Token[node], before, tokens, scores)
	s.paths[node] = after
	if !ok {
		return nil
	}
	s.History.Push(t.Token[0])
	defer s.History.Pop()
	sampler := d.Samplers[0]
	lower.SetLike(sampler, s.Sampler)
	out := textrank.Output{Logits: scores, Tokens: tokens}
	list := out.Top(sampler, make([]sample.Candidate, 0, len(tokens)), s.At+depth+1, s.History)
	if s.Warm > 0 {
		treebuild.CoupledChances(list, math.MaxInt, s.Sampler.Params().Temperature)
	}
	return list
}
