package speculate

import "github.com/grovellm/grove/internal/speculate/reject"

// Typical is Medusa's acceptance rule above temperature 0: see reject.Typical. It changes the output.
// So it is only for measurements: Options may name it, but requests may not.
const Typical = "typical"

type typical struct {
	reject.Typical
	probs []float32
	path  []int32 // accepted nodes that are not emitted yet
}

// plan chooses the path through the sequence's tree. logits returns a node's logits.
func (r *typical) plan(s *Sequence, logits func(node int) []float32) {
	r.path = r.Path(s.tree, func(node int) []float32 {
		s.nextSampler().Probs(r.probs, logits(node), s.history)
		return r.probs
	}, r.path[:0])
}

// next returns the next token of the path, and after its end the target's own.
func (r *typical) next(s *Sequence, logits []float32, nodes []int32) (int32, error) {
	if len(nodes) > 0 && len(r.path) > 0 {
		token := s.tree.Token[r.path[0]]
		r.path = r.path[1:]
		return token, nil
	}
	return coupledRule{}.next(s, logits, nodes)
}
