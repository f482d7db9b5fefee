// Shapes of fixed breadth.

package grow

import (
	"fmt"

	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/tree"
)

// Linear drafts a chain of K tokens (Leviathan et al., arXiv 2211.17192, Algorithm 1). DynaTree's
// runs compare against K = 8.
type Linear struct {
	K     int    `draft:"k" help:"tokens of the chain (1 to 4095)"`
	Model string `draft:"model" help:"GGUF file or Hugging Face folder to draft with; empty: what the model was opened with"`
}

// DefaultLinear returns the options of DynaTree's baseline on WikiText-2.
func DefaultLinear() Linear { return Linear{K: 8} }

func (o *Linear) limits() (limits, error) { return limits{o.K + 1, o.K, 1}, option.Check(o) }

func (o *Linear) begin(*state)                       {}
func (o *Linear) choose(s *state)                    { s.level(always, 1) }
func (o *Linear) breadth(*state, int32, float32) int { return 1 }
func (o *Linear) floor() float32                     { return negInf }
func (o *Linear) learn(*state, *tree.Tree, []int32)  {}

// Fixed drafts a tree in which every node that is probable enough has B children, down to depth D:
// DynaTree's baseline. Depth counts as in DynaTree: tokens that follow the last committed one have
// depth 0.
type Fixed struct {
	D     int     `draft:"d" help:"depth of the tree, from 0 for the first drafted token (0 to 4094)"`
	B     int     `draft:"b" help:"children of a node (1 to 64)"`
	Tau   float32 `draft:"tau" help:"minimum probability of a path to be expanded (0 or more, below 1)"`
	N     int     `draft:"n" help:"maximum nodes, root included (2 to 4096)"`
	Prune bool    `draft:"prune" help:"drop leaves below tau before verification; false: keep them, but do not expand them"`

	Model string `draft:"model" help:"GGUF file or Hugging Face folder to draft with; empty: what the model was opened with"`
}

// DefaultFixed returns the fixed tree that did best in DynaTree's sweep (figure 7). To compare it
// with DynaTree's trees, which drop leaves below tau, set Prune too.
func DefaultFixed() Fixed { return Fixed{D: 8, B: 3, Tau: 0.1, N: 256} }

func (o *Fixed) limits() (limits, error) {
	if !(o.Tau >= 0 && o.Tau < 1) {
		return limits{}, fmt.Errorf("tau is %g: want 0 or more, below 1", o.Tau)
	}
	return limits{o.N, o.D + 1, o.B}, option.Check(o)
}

func (o *Fixed) begin(*state) {}

func (o *Fixed) choose(s *state) {
	least := logOf(o.Tau)
	s.level(func(s *state, node int) bool { return s.path[node] >= least }, o.B)
}

func (o *Fixed) breadth(*state, int32, float32) int { return o.B }

func (o *Fixed) floor() float32 {
	if o.Prune {
		return logOf(o.Tau)
	}
	return negInf
}

func (o *Fixed) learn(*state, *tree.Tree, []int32) {}
