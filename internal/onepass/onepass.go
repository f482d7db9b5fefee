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
	"github.com/grovellm/grove/draft"
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
	Model Model
	Shape *Shape
	Depth int // of nodes at most; 0: the block's, and with +text beyond it
	Pool  *par.Pool
	Vocab int                // of the target
	Lists []shortlist.Method // one for all depths, or of Heads one for each; none: all tokens' logits are computed
	Text  *textrank.Model    // the weights of +text; nil: without that modifier
}

// New returns a drafter.
func New(c Config) (_ *Drafter, err error) {
	d := &Drafter{
		Config: c, listing: listing{methods: c.Lists}, block: c.Model.Block(),
		exec: nn.NewExec(c.Pool), pages: c.Model.Pages(),
	}
	if c.Depth > 0 {
		d.block.Depths = min(c.Depth, d.block.Depths)
	}
	d.whole = c.Model.Block().Depths + d.block.Skip
	if c.Text != nil {
		d.text = &textrank.Builder{Builder: c.Shape.Builder}
	}
	d.workers = make([]*sample.Sampler, c.Pool.Threads())
	for i := range d.workers {
		if d.workers[i], err = sample.New(sample.Params{}, c.Vocab); err != nil {
			return nil, err
		}
	}
	for i := range d.reach {
		d.reach[i] = newReach(d.block.Depths)
	}
	_, head, tokens := c.Model.Output()
	if d.hidden, d.outputs = head.W.In(), head.W.Out(); tokens != nil {
		d.place = make([]int32, c.Vocab)
		for i := range d.place {
			d.place[i] = -1
		}
		for i, token := range tokens {
			d.place[token] = int32(i)
		}
	}
	return d, nil
}

// Drafter makes trees of blocks.
type Drafter struct {
	Config
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
	sampler, err := sample.New(p, d.Vocab)
	if err != nil {
		return nil, err
	}
	s := &state{d: d, sampler: sampler, read: draft.NewText(d.Model.Text(), d.pages.NewCache())}
	if p.Temperature > 0 {
		s.warm = 1
	}
	if d.text != nil {
		s.text = textrank.NewText(&p, d.Text, o.Memory)
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
	d.commits.Run(d.Pool, d.workers, d.Vocab)
	d.read()
	return nil
}

// Learned is the weights of +text; see draft.Drafter.
func (d *Drafter) Learned() [][]float32 { return d.Text.Learned() }

// Chance is what the row of the depth where the walk stopped gave to the target's choice; see
// learn.Learner.
func (d *Drafter) Chance(r *draft.Rows) (p float32, ok bool) {
	s, depth := r.State.(*state), len(r.Nodes)
	if depth > len(s.levels) {
		return 0, false
	}
	return learn.Chance(s.levels[depth-1], r.Next)
}
