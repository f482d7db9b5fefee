// Package medusa drafts with Medusa heads (arXiv 2401.10774): each has a few residual blocks and an
// output matrix over the target's last hidden state, and drafts the token of one depth. All depths
// come from one row in one pass, and a tree is built from them (package onepass): the paper's static
// tree, or one of the most probable paths.
//
// One deviation remains: above temperature 0 candidates are drawn with the noise of the target's
// own choice. In the paper they are the most probable, as they are here at temperature 0.
//
// The heads have no layers that look back: for a sequence the drafter keeps only the target's row of
// the last committed token.
package medusa

import (
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tree"
)

// Options of the drafter.
type Options struct {
	Tree  string `draft:"tree" help:"static (the template in the heads' file, or else mc_sim_7b_63), mc_sim_7b_63, best-first or chain"`
	Width int    `draft:"width" help:"for best-first: maximum children of a node (0 to 1024); 0: no limit"`
	Depth int    `draft:"depth" help:"maximum depth (0 to the number of heads); 0: that, and with best-first and +text beyond it"`
	Model string `draft:"model" help:"GGUF file or Hugging Face folder of the heads; empty: the one the model was opened with"`

	registry.Modifiers
}

// Names of trees.
const (
	Static    = "static"
	Paper     = "mc_sim_7b_63"
	BestFirst = "best-first"
	Chain     = "chain"
)

// shape returns the shape of the trees.
func (o *Options) shape(c *Config) (*onepass.Shape, error) {
	if o.Width != 0 && o.Tree != BestFirst {
		return nil, fmt.Errorf("width=%d with tree=%s: it is an option of tree=%s", o.Width, o.Tree, BestFirst)
	}
	switch {
	case o.Tree == Static && len(c.Template) > 0:
		return onepass.NewStatic(c.Template), nil
	case o.Tree == Static, o.Tree == Paper:
		return onepass.NewStatic(PaperTemplate), nil
	case o.Tree == BestFirst:
		return onepass.NewShape(onepass.DDTree, o.Width, 0)
	case o.Tree == Chain:
		return onepass.NewShape(onepass.Chain, 0, 0)
	}
	return nil, fmt.Errorf("tree=%q: want one of %s, %s, %s, %s", o.Tree, Static, Paper, BestFirst, Chain)
}

// New returns a drafter with heads that fit the target.
func New(o Options, n *Network, target registry.Target) (draft.Drafter, error) {
	shape, err := o.shape(&n.Config)
	if err != nil {
		return nil, err
	}
	h := &heads{n: n}
	d, err := onepass.New(onepass.Config{
		Model: h, Head: &n.Config, Shape: shape, Depth: o.Depth, Modifiers: o.Modifiers, Target: target,
	})
	if n.Outputs != nil { // package learn knows one output matrix
		return d, err
	}
	return &drafter{d, h}, err
}

// drafter is package onepass's over heads that can learn.
type drafter struct {
	*onepass.Drafter
	heads *heads
}

// heads has Medusa heads as a model of package onepass. A row of a block stands for a head.
type heads struct {
	n              *Network
	normed, states nn.Buffer
	rows           []int32
	bufs           Buffers
}

// Block returns a layout with a row for each head, which sees no other.
func (h *heads) Block() onepass.Block { return onepass.Block{Depths: h.n.Depths, Causal: true} }

// Pages returns pages whose rows take no memory.
func (h *heads) Pages() nn.Pages { return nn.Pages{} }

// Text returns options that keep only the last row.
func (h *heads) Text() sequence.TextOptions {
	return sequence.TextOptions{Layers: 1, Ahead: true, Rows: 1, Window: 1}
}

func (h *heads) LayOut(t *tree.Tree, anchor int32, rows int) {
	t.Reset(anchor)
	for node := range rows - 1 {
		t.AppendApart(node, anchor)
	}
}

// Read does nothing: the heads do not look back.
func (h *heads) Read(*nn.Exec, *nn.Forest, []int32, nn.Mat) {}

// Run computes the same number of heads for all sequences: the most that any of them wants.
func (h *heads) Run(e *nn.Exec, _ *nn.Forest, tokens, first []int32, taps, x nn.Mat) {
	depths := 0
	h.rows = h.rows[:0]
	for i, from := range first {
		to := int32(len(tokens))
		if i+1 < len(first) {
			to = first[i+1]
		}
		for head := range int(to - from) {
			h.rows = append(h.rows, int32(head*len(first)+i))
		}
		depths = max(depths, int(to-from))
	}
	normed, y := e.Mat(&h.normed, taps.Rows, taps.Cols), e.Mat(&h.states, depths*taps.Rows, taps.Cols)
	e.Normalise(&h.n.Norm, taps, normed)
	h.n.Run(e, normed, y, &h.bufs)
	e.Gather(y, h.rows, x)
}

// Output returns the output matrix of all heads, or the first head's; see Heads.
func (h *heads) Output() (norm *nn.Norm, head *nn.Linear, tokens []int32) {
	return nil, h.n.Matrix(0), h.n.Tokens
}

// Heads returns the output matrices of the heads, if they have one each.
func (h *heads) Heads() []nn.Linear { return h.n.Outputs }
