// Acceptance: how the target's token at a node is chosen.

package speculate

// rule is an acceptance rule. Whatever the tree, the token must be distributed as the target's own;
// the walk goes on to the children that carry it.
type rule interface {
	// next chooses the token after the sequence's text. nodes are the nodes of its tree that the walk stands on: more
	// than one if siblings carried the same token, none for the first token after the prompt.
	next(s *Sequence, logits []float32, nodes []int32) (int32, error)
}

// Acceptance rules by name.
const (
	Coupled   = "coupled"   // the noise of a token is a function of the seed, the position and the token: the default
	Rejection = "rejection" // accept or reject one candidate after the other, as the papers have it
)

// coupledRule samples the target's token exactly as plain decoding would at that position. The tree's content plays no
// part, so the tokens are those of plain decoding (sample-and-walk, exact for any tree; at temperature 0 it equals
// Merged-Tree Dual Drafting, section 6.1).
type coupledRule struct{}

func (coupledRule) next(s *Sequence, logits []float32, _ []int32) (int32, error) {
	return s.nextSampler().Sample(logits, len(s.text), s.history), nil
}
