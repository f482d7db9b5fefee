// Package onepass drafts with a network of which one pass gives the distributions of all depths,
// and makes a tree of them: JetSpec's, DDTree's or a chain. Which network that is, is a Model's
// affair: a block head's (package jet) is one. A row is the same below every node of a depth,
// though it was computed for one path (JetSpec, appendix A.4). The modifier +text ranks its
// candidates anew at every node (package textrank), and goes on by the text beyond the block.
//
// Above temperature 0 candidates are drawn with the noise of the target's own choice instead of
// being the most probable, which is what they are at temperature 0.
//
// The drafter keeps, for each sequence, the keys and values that the network makes of committed
// rows (the context), and computes of every row only what is new. The block's own rows last for one
// proposal. The context is a window of as many rows as the network was made for (draft.Text).
package onepass

import (
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/internal/learn"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/internal/textrank"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/shortlist"
	"github.com/grovellm/grove/tree"
)

// Model computes blocks: rows below a text of which each gives the distribution of one depth. One
// goroutine uses it at a time.
type Model interface {
	Block() Block
	Taps() []int             // layers of the target that it reads; see draft.Drafter
	Pages() nn.Pages         // of the contexts
	Text() draft.TextOptions // of a sequence

	// LayOut makes t a block of so many rows, the first of which is of the anchor, the last
	// committed token.
	LayOut(t *tree.Tree, anchor int32, rows int)

	// Read leaves keys and values of rows of text in the forest's caches, pending: tokens and taps
	// (rows × all taps) of their entries (draft.Text.Todo).
	Read(e *nn.Exec, f *nn.Forest, tokens []int32, taps nn.Mat)

	// Run computes blocks and leaves in x (rows × width) what Output reads. first[i] is the row of
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

// Block is the layout of a Model's blocks.
type Block struct {
	Depths int  // that a block drafts at most
	Skip   int  // rows before the one that drafts the first depth: 1 where the anchor's row drafts nothing
	Causal bool // a row sees only the rows before it, so that a block may end early
}

// Config is a drafter to be made.
type Config struct {
	Model     Model
	Head      headfile.Shape // of the Model
	Shape     *Shape
	Depth     int // of nodes at most; 0: the block's, and with +text beyond it
	Modifiers draft.Modifiers
	Target    draft.Target
}

// New returns a drafter, whose head must fit the target.
func New(c Config) (_ *Drafter, err error) {
	block, m := c.Model.Block(), c.Target.Model
	switch {
	case c.Depth < 0 || c.Depth > block.Depths:
		return nil, fmt.Errorf("depth=%d: want 1 to %d, the tokens that a pass drafts, or 0 for all of them", c.Depth,
			block.Depths)
	case m == nil:
		return nil, fmt.Errorf("the target has no layers to tap: the head needs a model of grove's")
	}
	if err := c.Head.Fits(m.Config); err != nil {
		return nil, err
	}
	d := &Drafter{
		Config: c, pool: m.Pool(), vocab: m.Config.Vocab, block: block, whole: block.Depths + block.Skip,
		exec: nn.NewExec(m.Pool()), pages: c.Model.Pages(),
	}
	if c.Depth > 0 {
		d.block.Depths = c.Depth
	}
	if d.model, err = headfile.TextModel(c.Modifiers, c.Head); err != nil {
		return nil, err
	}
	if d.model != nil {
		d.text = &textrank.Builder{Builder: c.Shape.Builder}
	}
	if d.workers, err = textrank.Samplers(d.pool, d.vocab); err != nil {
		return nil, err
	}
	for i := range d.reach {
		d.reach[i] = newReach(d.block.Depths)
	}
	norm, head, tokens := c.Model.Output()
	d.hidden, d.outputs, d.place = head.W.In(), head.W.Out(), textrank.Places(tokens, d.vocab)
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
			d.methods = append(d.methods, list)
		}
	}
	return d, nil
}

// Drafter makes trees of blocks.
type Drafter struct {
	Config
	pool      *par.Pool
	vocab     int             // of the target
	model     *textrank.Model // the weights of +text; nil without it
	block     Block
	whole     int               // rows of a whole block
	hidden    int               // width of a row
	outputs   int               // logits of a row
	place     []int32           // of each token its logit, -1 where it has none; nil: they are the vocabulary in order
	text      *textrank.Builder // of +text; nil without it
	byText    textrank.Builder  // of trees of the text alone
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
	anchors, from   []int32 // rows of the anchors, and of the blocks' rows that are wanted
	taps, x, wanted nn.Buffer
	logits, ordered nn.Buffer
	out             nn.Mat // logits, or what shortlists ask for
	tasks           []task
	path            []float32
	commits         textrank.Commits // of the Commit under way

	listing
}

// Taps are those of the model.
func (d *Drafter) Taps() []int { return d.Model.Taps() }

// Pages is the memory of the contexts; see draft.Drafter.
func (d *Drafter) Pages() []*nn.Pages { return []*nn.Pages{&d.pages} }

// Resume shares the context of another sequence; see draft.Drafter.
func (d *Drafter) Resume(s draft.State, n int, from draft.State, common int) int {
	var other *draft.Text
	if from != nil {
		other = from.(*state).read
	}
	return s.(*state).read.Resume(n, other, common)
}

func (d *Drafter) Begin(o draft.Options) (draft.State, error) {
	p := o.Ranking()
	sampler, err := sample.New(p, d.vocab)
	if err != nil {
		return nil, err
	}
	s := &state{d: d, sampler: sampler, read: draft.NewText(d.Model.Text(), d.pages.NewCache())}
	if p.Temperature > 0 {
		s.warm = 1
	}
	if d.text != nil {
		s.text = textrank.NewText(&p, d.model, o.Memory)
	}
	for _, m := range d.methods {
		s.words = append(s.words, m.Begin(&p))
	}
	if p.Penalised() {
		s.history = sample.NewHistory(p.PenaltyLast)
	}
	return s, nil
}

// most rows of a sequence wait for the next proposal to be read: then they are read in any case. A
// sequence that is decoded plainly costs copies of its taps, and from time to time a product of so
// many rows.
const mostWaiting = 64

// Commit takes the rows' taps. Those of a prompt are read at once, many in a pass.
func (d *Drafter) Commit(rows []draft.Rows) error {
	d.live = d.live[:0]
	d.commits.Reset()
	for i := range rows {
		s := rows[i].State.(*state)
		s.commit(&rows[i])
		if rows[i].Next < 0 || s.read.Waiting() >= mostWaiting {
			d.live = append(d.live, s)
		}
	}
	d.commits.Run(d.pool, d.workers, d.vocab)
	d.read()
	return nil
}

// Learned is the weights of +text; see draft.Drafter.
func (d *Drafter) Learned() [][]float32 { return d.model.Learned() }

// Chance is what the row of the depth where the walk stopped gave to the target's choice; see
// learn.Learner.
func (d *Drafter) Chance(r *draft.Rows) (p float32, ok bool) {
	s, depth := r.State.(*state), len(r.Nodes)
	if depth > len(s.levels) {
		return 0, false
	}
	return learn.Chance(s.levels[depth-1], r.Next)
}
