// Package jet drafts with a block head: one pass of a few small layers over the target's own hidden states gives the
// distributions of all depths at once, and a tree is made of them. A causal head is JetSpec's, one that looks both ways DFlash's;
// trees are JetSpec's, DDTree's or a chain. A head's row is the same below every node of a depth, though it was computed for one
// path (JetSpec, appendix A.4). The modifier +text ranks its candidates anew at every node (package textrank), and goes on by the text
// beyond the block.
//
// The drafters are the papers', with one deviation: above temperature 0 candidates are drawn with the noise of the target's own choice
// instead of being the most probable, which is what they are at temperature 0.
//
// The drafter keeps, for each sequence, the keys and values that the head's layers make of committed rows (the context), and
// computes of every row only what is new. The block's own rows last for one proposal. The context is a
// window of as many rows as the head was made for (draft.Text).
package jet

import (
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/internal/textrank"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/shortlist"
)

// Options of the drafter. It takes no dynaspec, whose router reads the state of a node's parent: a block head has states of depths alone.
type Options struct {
	Head   string  `draft:"head" help:"kind of head: causal (JetSpec) or bidirectional (DFlash); empty: that of the file that model names"`
	Tree   string  `draft:"tree" help:"accum-logp, ddtree, hybrid, entropy or chain"`
	Width  int     `draft:"width" help:"maximum children of a node (0 to 1024); 0: no limit with ddtree, otherwise 7"`
	Depth  int     `draft:"depth" help:"maximum depth (0 to the block's length less 1); 0: the block, and with +text beyond it"`
	Lambda float64 `draft:"lambda" help:"for hybrid: weight of a depth's entropy beside the path's log-probability (above 0)"`
	Model  string  `draft:"model" help:"GGUF file or Hugging Face folder of the head; empty: the one the model was opened with"`

	draft.Modifiers
}

// New returns a drafter with a head that fits the target.
func New(o Options, n *Network, target draft.Target) (draft.Drafter, error) {
	shape, err := NewShape(o.Tree, o.Width, o.Lambda)
	switch {
	case err != nil:
		return nil, err
	case o.Depth < 0 || o.Depth >= n.Block:
		return nil, fmt.Errorf("depth=%d: want 1 to %d, the rows of the head's block below its anchor, or 0 for all of them", o.Depth, n.Block-1)
	case target.Model == nil:
		return nil, fmt.Errorf("the target has no layers to tap: a block head needs a model of grove's")
	}
	if err := n.Fits(target.Model.Config); err != nil {
		return nil, err
	}
	lists, err := draft.Shortlists(o.List, shortlist.Drafter{Pool: target.Model.Pool(), Head: &n.Head, Norm: &n.Norm, Vocab: n.Vocab, Tokenizer: target.Model.Tokenizer}, n, target)
	if err != nil {
		return nil, err
	}
	d := &drafter{
		listing: listing{method: lists},
		n:       n, shape: shape, rows: n.Block - 1, deepest: o.Depth, pool: target.Model.Pool(),
		exec: nn.NewExec(target.Model.Pool()), pages: n.Pages(),
	}
	if o.Depth > 0 {
		d.rows = o.Depth
	}
	if o.Text {
		d.text = &textrank.Builder{Builder: shape.Builder}
		if d.model, err = textrank.NewModelFrom(n.TextWeights); err != nil {
			return nil, err
		}
	}
	d.workers = make([]*sample.Sampler, d.pool.Threads())
	for i := range d.workers {
		if d.workers[i], err = sample.New(sample.Params{}, n.Vocab); err != nil {
			return nil, err
		}
	}
	for i := range d.reach {
		d.reach[i] = newReach(d.rows)
	}
	return d, nil
}

type drafter struct {
	n         *Network
	shape     *Shape
	text      *textrank.Builder // of +text; nil without it
	byText    textrank.Builder  // of trees of the text alone
	rows      int               // of a block at most, the anchor's left out
	deepest   int               // depth of nodes at most; 0: that of rows, with +text without limit
	pool      *par.Pool
	exec      *nn.Exec
	pages     nn.Pages
	workers   []*sample.Sampler // scratch of each worker
	reach     [2]reach          // at temperature 0 and above
	first     [2]textrank.FirstPass
	proposals []draft.Proposal

	// The computation under way.
	live            []*state
	forest          nn.Forest
	tokens          []int32
	from            []int32 // rows of the blocks that are wanted
	taps, x, wanted nn.Buffer
	logits          nn.Buffer
	out             nn.Mat // logits, or what shortlists ask for
	tasks           []task
	bufs            Buffers
	path            []float32
	model           *textrank.Model  // of +text
	commits         textrank.Commits // of the Commit under way

	listing
}

func (d *drafter) Taps() []int { return d.n.Taps }

// Pages is the memory of the heads' contexts; see draft.Drafter.
func (d *drafter) Pages() []*nn.Pages { return []*nn.Pages{&d.pages} }

// Resume shares the context of another sequence; see draft.Drafter.
func (d *drafter) Resume(s draft.State, n int, from draft.State, common int) int {
	var other *draft.Text
	if from != nil {
		other = from.(*state).read
	}
	return s.(*state).read.Resume(n, other, common)
}

func (d *drafter) Begin(o draft.Options) (draft.State, error) {
	p := o.Ranking()
	sampler, err := sample.New(p, d.n.Vocab)
	if err != nil {
		return nil, err
	}
	s := &state{d: d, sampler: sampler}
	text := draft.TextOptions{Layers: len(d.n.Taps), Rows: 1, Window: d.n.Config.Context}
	s.read = draft.NewText(text, d.pages.NewCache())
	if p.Temperature > 0 {
		s.warm = 1
	}
	if d.text != nil {
		s.text = textrank.NewText(&p, d.model, o.Memory)
	}
	if d.method != nil {
		s.words = d.method.Begin(&p)
	}
	if p.Penalised() {
		s.history = sample.NewHistory(p.PenaltyLast)
	}
	return s, nil
}

// most rows of a sequence wait for the next proposal to be read: then they are read in any case. A sequence that is decoded plainly costs
// copies of its taps, and from time to time a product of so many rows.
const mostWaiting = 64

// Commit takes the rows' taps. Those of a prompt are read at once, many in a pass.
func (d *drafter) Commit(rows []draft.Rows) error {
	d.live = d.live[:0]
	d.commits.Reset()
	for i := range rows {
		s := rows[i].State.(*state)
		s.commit(&rows[i])
		if rows[i].Next < 0 || s.read.Waiting() >= mostWaiting {
			d.live = append(d.live, s)
		}
	}
	d.commits.Run(d.pool, d.workers, d.n.Vocab)
	d.read()
	return nil
}

// Learned is the weights of +text; see draft.Drafter.
func (d *drafter) Learned() [][]float32 { return d.model.Learned() }
