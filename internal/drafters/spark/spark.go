package spark

import (
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tree"
)

// Options of the drafters.
type Options struct {
	Tree       string  `draft:"tree" help:"ddtree, accum-logp or chain"`
	Width      int     `draft:"width" help:"maximum children of a node (0 to 1024); 0: no limit with ddtree, otherwise 7"`
	Depth      int     `draft:"depth" help:"maximum depth; 0: the tokens that a block drafts"`
	Confidence float64 `draft:"confidence" help:"of DSpark: nodes with less confidence get no children (0 to 1); 0: off"`
	Model      string  `draft:"model" help:"GGUF file or folder of the head; empty: the one the model was opened with"`
}

func init() {
	for _, f := range []struct{ name, called, about, paper string }{
		{dspark, "DSpark", `The head is a DFlash head with a Markov correction: the scores of a row's tokens depend on the token before. The tree has
the paths whose product of probabilities is the largest, each node's candidates scored after its own path.`,
			"DSpark, arXiv 2607.05147"},
		{dflash2, "DFlash 2", `The head is a DFlash head with convolutions around its layers, and a selector that scores a row's best tokens by
the token before. The tree has the paths whose product of the selector's probabilities is the largest.`, "DFlash 2 (z-lab, 2026)"},
		{domino, "Domino", `The head is a DFlash head whose rows are corrected by a recurrent state of the path. The tree has the paths whose product
of probabilities is the largest, each node's candidates scored after its own path.`, "Domino, arXiv 2605.29707"},
	} {
		defaults := Options{Tree: onepass.DDTree}
		family := registry.Family{
			Name: f.name, Help: fmt.Sprintf("a %s head: a tree of one pass, scored along its paths", f.called), About: f.about,
			Paper: f.paper, Needs: "a " + f.called + " head", Options: &defaults, Auto: f.name, Rank: 4,
			PaperOptions: "tree=chain",
		}
		family.New = func(text string, _ registry.Modifiers, target registry.Target) (draft.Drafter, error) {
			o := defaults
			if err := option.Parse(text, &o); err != nil {
				return nil, err
			}
			wanted := func(s headfile.Shape) bool { return s.(*Config).Variant == f.name }
			n, err := headfile.Choose(o.Model, target, &kind, f.called, wanted, Open)
			if err != nil {
				return nil, err
			}
			return New(o, n, target)
		}
		registry.Register(family)
	}
}

// New returns a drafter with a head that fits the target.
func New(o Options, n *Network, target registry.Target) (draft.Drafter, error) {
	if o.Tree == onepass.Entropy || o.Tree == onepass.Hybrid {
		return nil, fmt.Errorf("tree=%q: want ddtree, accum-logp or chain: rows alone have no entropy here", o.Tree)
	}
	shape, err := onepass.NewShape(o.Tree, o.Width, 0)
	if err != nil {
		return nil, err
	}
	b := &blocks{n: n, least: o.Confidence, places: textrank.Places(n.Base.Tokens, n.Vocab)}
	return onepass.New(onepass.Config{Model: b, Head: &n.Config, Shape: shape, Depth: o.Depth, Target: target})
}

// blocks implements a head's blocks for package onepass.
type blocks struct {
	n             *Network
	least         float64 // of DSpark's confidence
	places        []int32 // of a draft vocabulary
	states, mixed nn.Mat  // of the requested rows
	bufs          Buffers
}

// Block returns a block whose rows draft from the anchor's on, or from the one after it.
func (b *blocks) Block() onepass.Block {
	skip := 1
	if b.n.Anchor {
		skip = 0
	}
	return onepass.Block{Depths: b.n.Depths(), Skip: skip, Rows: b.n.Block, Causal: b.n.EndsEarly()}
}

func (b *blocks) Pages() nn.Pages { return b.n.Base.Pages() }
func (b *blocks) Text() sequence.TextOptions {
	return sequence.TextOptions{Layers: len(b.n.Taps), Rows: 1, Window: b.n.Context}
}

func (b *blocks) LayOut(t *tree.Tree, anchor int32, rows int) { b.n.LayOut(t, anchor, rows) }

func (b *blocks) Read(e *nn.Exec, f *nn.Forest, _ []int32, taps nn.Mat) {
	b.n.Base.Context(e, f, taps, &b.bufs.Buffers)
}

func (b *blocks) Run(e *nn.Exec, f *nn.Forest, tokens, _ []int32, _, x nn.Mat) {
	e.Release()
	b.n.Run(e, f, tokens, x, &b.bufs)
	e.Hold()
}

func (b *blocks) Output() (norm *nn.Norm, head *nn.Linear, tokens []int32) {
	return &b.n.Base.Norm, &b.n.Base.Head, b.n.Base.Tokens
}
