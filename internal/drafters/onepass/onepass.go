// Package onepass drafts with a network that gives the distributions of all depths in one pass, and
// builds a tree from them: JetSpec's, DDTree's or a chain. A Model provides the network, such as a
// block head (package jet). A row is the same below every node of a depth, though it was computed for
// one path (JetSpec, appendix A.4). The modifier +text ranks the candidates again at every node
// (package textrank), and extends the tree by the text beyond the block.
//
// At temperature 0 candidates are the most probable tokens. Above, they are drawn with the noise of
// the target's own choice. For rejection sampling they are drawn with independent noise, anew below
// every node.
//
// For each sequence the drafter keeps the network's keys and values of committed rows (the context),
// and computes only new rows. The block's own rows last for one proposal. The context is a window of
// as many rows as the network was made for (sequence.Text).
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

// Model computes blocks: rows below a text, each of which gives the distribution of one depth. One
// goroutine uses it at a time.
type Model interface {
	Block() Block
	Pages() nn.Pages            // of the contexts
	Text() sequence.TextOptions // of a sequence

	// LayOut makes t a block of so many rows. The first row is that of the anchor, the last committed
	// token.
	LayOut(t *tree.Tree, anchor int32, rows int)

	// Read puts keys and values of rows of text into the forest's caches, uncommitted. tokens and taps
	// (rows × all taps) are those of the rows' entries (sequence.Text.Todo).
	Read(e *nn.Exec, f *nn.Forest, tokens []int32, taps nn.Mat)

	// Run computes blocks, in a Hold of e, and puts the states that Output reads into x (rows × width). first[i] is
	// the row of the i-th block's anchor. If entries are made Ahead, row i of taps has the taps of the
	// token before it.
	Run(e *nn.Exec, f *nn.Forest, tokens, first []int32, taps, x nn.Mat)

	// Output makes logits from states: Head·Norm(x). tokens has the target's token for each logit;
	// nil: they are the same.
	Output() (norm *nn.Norm, head *nn.Linear, tokens []int32)
}

// Heads is a Model whose depths may each have an output matrix.
type Heads interface {
	Model
	Heads() []nn.Linear // of each depth; none: all depths use Output's
}

// Corrector is a Model whose scores of a token depend on the tokens before it in the block.
type Corrector interface {
	Model

	// Candidates returns how many of a row's best tokens, by its own logits, are scored again below every node.
	Candidates() int

	// Prepare receives the states of the wanted rows, as Output reads them.
	Prepare(e *nn.Exec, rows nn.Mat)

	// Follow adds the effect of the path to the scores of tokens of a row and depth. token is the
	// path's last. before is the state of the path without that token, nil at the root. Follow
	// returns the state with it, and whether the row is worth any children there.
	Follow(e *nn.Exec, row, depth int, token int32, before []float32, tokens []int32,
		scores []float32) (after []float32, ok bool)
}

// Block is the layout of a Model's blocks.
type Block struct {
	Depths int  // most depths that a block drafts
	Skip   int  // rows before the one that drafts the first depth: 1 if the anchor's row drafts nothing
	Rows   int  // of a whole block; 0: Skip and one for each depth
	Causal bool // a row sees only the rows before it, so that a block may end early
}

// Config describes a drafter to make.
type Config struct {
	Model     Model
	Head      headfile.Shape // of the Model
	Shape     *Shape
	Depth     int // greatest depth of nodes; 0: the block's, and with +text beyond it
	Modifiers registry.Modifiers
	Target    registry.Target
}

// New returns a drafter. Its head must fit the target.
func New(c Config) (_ *Drafter, err error) {
	block, m := c.Model.Block(), c.Target.Model
	if c.Depth < 0 || c.Depth > block.Depths {
		return nil, fmt.Errorf("depth=%d: want 1 to %d, the tokens that a pass drafts, or 0 for all of them", c.Depth,
			block.Depths)
	}
	d := &Drafter{
		Config: c, block: block, whole: max(block.Rows, block.Depths+block.Skip), exec: nn.NewExec(m.Pool()),
		Shared: sequence.Shared{Pool: m.Pool(), Vocab: m.Config.Vocab, Layout: c.Model.Text(), Cache: new(c.Model.Pages())},
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

// Drafter builds trees from blocks.
type Drafter struct {
	Config
	sequence.Shared
	block     Block
	whole     int               // rows of a whole block
	hidden    int               // width of a row
	outputs   int               // logits of a row
	place     []int32           // each token's logit, -1 if it has none; nil: logits are the vocabulary in order
	text      *textrank.Builder // of +text; nil without it
	byText    textrank.Builder  // of trees from the text only
	exec      *nn.Exec
	corrector Corrector // the model, if it is one
	greedy    *sample.Sampler
	reach     [2]reach // at temperature 0 and above
	proposals []draft.Proposal

	// The current computation.
	live            []*state
	forest          nn.Forest
	tokens          []int32
	anchors, from   []int32 // rows of the anchors, and the wanted rows of blocks
	taps, x, wanted nn.Buffer
	logits, ordered nn.Buffer
	out             nn.Mat // logits: all, or those in shortlists
	tasks           []task
	path            []float32

	listing
}

// Taps returns the model's taps.
func (d *Drafter) Taps() []int { return d.Head.Common().Taps }

// Blocks returns the network that it drafts with.
func (d *Drafter) Blocks() Model { return d.Model }

// Begin returns a new sequence's state; see draft.Drafter.
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

// Chance returns the probability that the row of the depth where the walk stopped gave to the
// target's choice; see learn.Learner.
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
