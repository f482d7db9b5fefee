// Package onepass drafts with a network of which one pass gives the distributions of all depths,
// and makes a tree of them: JetSpec's, DDTree's or a chain. Which network that is, is a Model's
// affair: a block head's (package jet) is one. A row is the same below every node of a depth,
// though it was computed for one path (JetSpec, appendix A.4). The modifier +text ranks its
// candidates anew at every node (package textrank), and goes on by the text beyond the block.
//
// Above temperature 0 candidates are drawn with the noise of the target's own choice instead of
// being the most probable, which is what they are at temperature 0. For rejection sampling they are
// drawn with noise of their own, below every node anew.
//
// The drafter keeps, for each sequence, the keys and values that the network makes of committed
// rows (the context), and computes of every row only what is new. The block's own rows last for one
// proposal. The context is a window of as many rows as the network was made for (sequence.Text).
package onepass

import (
	"cmp"
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// Model computes blocks: rows below a text of which each gives the distribution of one depth. One
// goroutine uses it at a time.
type Model interface {
	Block() Block
	Taps() []int                // layers of the target that it reads; see draft.Drafter
	Pages() nn.Pages            // of the contexts
	Text() sequence.TextOptions // of a sequence

	// LayOut makes t a block of so many rows, the first of which is of the anchor, the last
	// committed token.
	LayOut(t *tree.Tree, anchor int32, rows int)

	// Read leaves keys and values of rows of text in the forest's caches, pending: tokens and taps
	// (rows × all taps) of their entries (sequence.Text.Todo).
	Read(e *nn.Exec, f *nn.Forest, tokens []int32, taps nn.Mat)

	// Run computes blocks, in a Hold of e, and leaves in x (rows × width) what Output reads. first[i] is the row of
	// the i-th block's anchor. Where entries are made Ahead, row i of taps has those of the token
	// before it.
	Run(e *nn.Exec, f *nn.Forest, tokens, first []int32, taps, x nn.Mat)

	// Output makes logits of states: Head·Norm(x). tokens are the target's for each logit; nil: the
	// same.
	Output() (norm *nn.Norm, head *nn.Linear, tokens []int32)
}

// Heads is a Model whose depths may have an output matrix each.
type Heads interface {
	Model
	Heads() []nn.Linear // of each depth; none: that of Output is all depths'
}

// Corrector is a Model whose scores of a token depend on the tokens before it in the block.
type Corrector interface {
	Model

	// Candidates is how many tokens of a row, the best by its own logits, are scored anew below every node.
	Candidates() int

	// Prepare is told the states of the rows that are wanted, as Output reads them.
	Prepare(e *nn.Exec, rows nn.Mat)

	// Follow adds to the scores of tokens of a row and depth what they owe to the path before them,
	// whose last token is given. before is the state of the path without that token, nil at the root.
	// It returns the state with it, and whether the row is worth any children there.
	Follow(e *nn.Exec, row, depth int, token int32, before []float32, tokens []int32,
		scores []float32) (after []float32, ok bool)
}

// Block is the layout of a Model's blocks.
type Block struct {
	Depths int  // that a block drafts at most
	Skip   int  // rows before the one that drafts the first depth: 1 where the anchor's row drafts nothing
	Rows   int  // of a whole block; 0: Skip and one for each depth
	Causal bool // a row sees only the rows before it, so that a block may end early
}

// Config is a drafter to be made.
type Config struct {
	Model     Model
	Head      headfile.Shape // of the Model
	Shape     *Shape
	Depth     int // of nodes at most; 0: the block's, and with +text beyond it
	Modifiers registry.Modifiers
	Target    registry.Target
}

// New returns a drafter, whose head fits the target.
func New(c Config) (_ *Drafter, err error) {
	block, m := c.Model.Block(), c.Target.Model
	if c.Depth < 0 || c.Depth > block.Depths {
		return nil, fmt.Errorf("depth=%d: want 1 to %d, the tokens that a pass drafts, or 0 for all of them", c.Depth,
			block.Depths)
	}
	pages := c.Model.Pages()
	d := &Drafter{
		Config: c, block: block, whole: max(block.Rows, block.Depths+block.Skip), exec: nn.NewExec(m.Pool()),
		Shared: sequence.Shared{Pool: m.Pool(), Vocab: m.Config.Vocab, Layout: c.Model.Text(), Cache: &pages},
	}
	d.block.Depths = cmp.Or(c.Depth, block.Depths)
	if d.Weights, err = headfile.TextModel(c.Modifiers, c.Head); err != nil {
		return nil, err
	}
	if d.Weights != nil {
		d.text = &textrank.Builder{Builder: c.Shape.Builder}
	}
	if d.Samplers, err = textrank.Samplers(d.Pool, d.Vocab); err != nil {
		return nil, err
	}
	for i := range d.reach {
		d.reach[i] = newReach(d.block.Depths)
	}
	norm, head, tokens := c.Model.Output()
	if x, ok := c.Model.(Corrector); ok {
		d.corrector = x
		if d.greedy, err = sample.New(sample.Params{}, d.Vocab); err != nil {
			return nil, err
		}
	}
	d.hidden = head.W.In()
	d.outputs = head.W.Out()
	d.place = textrank.Places(tokens, d.Vocab)
	matrices := []*nn.Linear{head}
	if heads, ok := c.Model.(Heads); ok && len(heads.Heads()) > 0 {
		matrices = matrices[:0]
		for i := range heads.Heads() {
			matrices = append(matrices, &heads.Heads()[i])
		}
	}
	for _, matrix := range matrices {
		list, err := headfile.Lists(c.Modifiers, shortlist.Drafter{Head: matrix, Norm: norm, Tokens: tokens}, c.Target)
		if err != nil {
			return nil, err
		}
		if list != nil {
			d.Methods = append(d.Methods, list)
		}
	}
	return d, nil
}

// Drafter makes trees of blocks.
type Drafter struct {
	Config
	sequence.Shared
	block     Block
	whole     int               // rows of a whole block
	hidden    int               // width of a row
	outputs   int               // logits of a row
	place     []int32           // of each token its logit, -1 where it has none; nil: they are the vocabulary in order
	text      *textrank.Builder // of +text; nil without it
	byText    textrank.Builder  // of trees of the text alone
	exec      *nn.Exec
	corrector Corrector // the model, if it is one
	greedy    *sample.Sampler
	reach     [2]reach // at temperature 0 and above
	proposals []draft.Proposal

	// The computation under way.
	live            []*state
	forest          nn.Forest
	tokens          []int32
	anchors, from   []int32 // rows of the anchors, and of the blocks' rows that are wanted
	taps, x, wanted nn.Buffer
	logits, ordered nn.Buffer
	out             nn.Mat // logits, or what shortlists ask for
	tasks           []task
	path            []float32

	listing
}

// Taps are those of the model.
func (d *Drafter) Taps() []int { return d.Model.Taps() }

// Blocks is the network that it drafts with.
func (d *Drafter) Blocks() Model { return d.Model }

// Begin is a new sequence; see draft.Drafter.
func (d *Drafter) Begin(o draft.Options) (draft.State, error) {
	draw, err := d.drawer(&o)
	if err != nil {
		return nil, err
	}
	s, err := d.Shared.Begin(o)
	if err != nil {
		return nil, err
	}
	return &state{d: d, Sequence: s, drawing: drawing{draw: draw}}, nil
}

// Commit takes the rows' taps.
func (d *Drafter) Commit(rows []draft.Rows) error {
	d.live = d.live[:0]
	d.Commits.Reset()
	for i := range rows {
		s := rows[i].State.(*state)
		s.commit(&rows[i])
		if s.Due(&rows[i]) {
			d.live = append(d.live, s)
		}
	}
	d.Commits.Run(d.Pool, d.Samplers, d.Vocab)
	d.read()
	return nil
}

// Chance is what the row of the depth where the walk stopped gave to the target's choice; see
// learn.Learner.
func (d *Drafter) Chance(r *draft.Rows) (p float32, ok bool) {
	s, depth := r.State.(*state), len(r.Nodes)
	if s.draw != nil && depth <= len(s.probs) && r.Next >= 0 {
		return s.probs[depth-1][r.Next], true
	}
	if depth > len(s.said) {
		return 0, false
	}
	return learn.Chance(s.said[depth-1], r.Next)
}
