// The shapes of fixed breadth.

package grow

import (
	"fmt"

	"github.com/grovellm/grove/shortlist"
)

// Linear drafts a chain of K tokens, the paper's baseline of linear speculation.
type Linear struct {
	K      int    `draft:"k" help:"tokens of the chain (1 to 4095)"`
	Preset string `draft:"preset" help:"paper: options that are not given are as in DynaTree's runs on WikiText-2; empty: as listed here"`
	Model  string `draft:"model" help:"GGUF file or Hugging Face folder to draft with; empty: what the model was opened with"`

	shortlist.Options
	Raw
}

// DefaultLinear is good on grove's own models, and PaperLinear paper 002's baseline on WikiText-2.
func DefaultLinear() Linear { return Linear{K: 8} }
func PaperLinear() Linear   { return Linear{K: 8, Raw: Raw{true}} }

func (o *Linear) limits() (limits, error) {
	if o.K < 1 || o.K >= maxNodes {
		return limits{}, fmt.Errorf("linear: k is %d: want 1 to %d", o.K, maxNodes-1)
	}
	return limits{o.K + 1, o.K, 1, o.Raw.Raw}, nil
}

func (o *Linear) begin(*state)                       {}
func (o *Linear) choose(s *state)                    { s.level(always, 1) }
func (o *Linear) breadth(*state, int32, float32) int { return 1 }
func (o *Linear) floor() float32                     { return negInf }
func (o *Linear) learn(*state, int, int)             {}

// Fixed drafts a tree in which every likely node has B children, down to depth D: paper 002's baseline.
type Fixed struct {
	D     int     `draft:"d" help:"depth of the tree (1 to 4095)"`
	B     int     `draft:"b" help:"children of a node (1 to 64)"`
	Tau   float32 `draft:"tau" help:"minimum probability of a path to be expanded (0 or more, below 1)"`
	N     int     `draft:"n" help:"maximum nodes, root included (2 to 4096)"`
	Prune bool    `draft:"prune" help:"drop leaves below tau before verification"`

	Preset string `draft:"preset" help:"paper: options that are not given are as in DynaTree's runs on WikiText-2; empty: as listed here"`
	Model  string `draft:"model" help:"GGUF file or Hugging Face folder to draft with; empty: what the model was opened with"`

	shortlist.Options
	Raw
}

// DefaultFixed is what did best on grove's own models and the Go packages held out for validation, PaperFixed what did best in
// paper 002's sweep (its figure 7).
func DefaultFixed() Fixed { return Fixed{D: 12, B: 2, Tau: 0.03, N: 256} }
func PaperFixed() Fixed   { return Fixed{D: 8, B: 3, Tau: 0.1, N: 256, Raw: Raw{true}} }

func (o *Fixed) limits() (limits, error) {
	switch {
	case o.D < 1 || o.D >= maxNodes:
		return limits{}, fmt.Errorf("fixed: d is %d: want 1 to %d", o.D, maxNodes-1)
	case o.B < 1 || o.B > maxBreadth:
		return limits{}, fmt.Errorf("fixed: b is %d: want 1 to %d", o.B, maxBreadth)
	case !(o.Tau >= 0 && o.Tau < 1):
		return limits{}, fmt.Errorf("fixed: tau is %g: want 0 or more, below 1", o.Tau)
	case o.N < 2 || o.N > maxNodes:
		return limits{}, fmt.Errorf("fixed: n is %d: want 2 to %d", o.N, maxNodes)
	}
	return limits{o.N, o.D, o.B, o.Raw.Raw}, nil
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

func (o *Fixed) learn(*state, int, int) {}
