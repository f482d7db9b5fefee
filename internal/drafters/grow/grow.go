// Package grow drafts trees that grow step by step: each step computes rows of some nodes, for all
// sequences in one batched pass, and their candidates become nodes. A tree has a shape: a chain
// (Linear), fixed breadth (Fixed), DynaTree's, EAGLE-2's dynamic tree (Dynamic), or the most
// probable nodes (BestFirst). Where rows come from, a draft model or a head on the target, is a
// Model's affair.
//
// The drafter keeps a cache over the committed text. A node is computed once, leaves never; the
// target's choice is then walked down the tree, and where drafted rows are what the text's own
// would be those of the path stay in the cache. What was committed without a row (a leaf, the bonus
// token, text that was decoded plainly) is computed at the beginning of the next tree, so a
// sequence that is not drafted for costs nothing beyond its prompt.
//
// At temperature 0 candidates are ranked by their logits. Above, they are drawn from the drafter's
// distribution without replacement, with the noise that the target's own choice will meet
// (sample.Sampler.Top): the papers draw with noise of their own, or take the most probable. The
// acceptance rule rejection draws as the papers do.
//
// With the modifier +text candidates are ranked by n-grams and off-path logits too (package textrank).
package grow

import (
	"context"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn/output"
	"github.com/grovellm/grove/tree"
)

// Model computes rows. One goroutine uses it at a time.
type Model interface {
	Taps() []int    // that it reads; see draft.Drafter
	Context() int   // rows of a text and levels of drafts at most, together; 0: any number
	Keeps() bool    // a drafted row is the row that the committed text would have
	NewText() *Text // of a sequence

	// Prepare lays out the rows of a pass, one Rows for each sequence. They and what they point to
	// stay as they are until Run.
	Prepare(rows []Rows)
	// RouterInput is what a router reads of the k-th asked row of the i-th sequence: its output, which
	// Run computes, or what it is made of besides its token. nil: no router can be used.
	RouterInput(i, k int, output bool) []float32
	// Follow has the next Run do phases between the rows' outputs and their logits. It is called where
	// there is a router.
	Follow(phases []par.Phase)
	// Run computes the rows, and Logits those of the k-th asked row of the i-th sequence: of its list if it has one.
	Run(ctx context.Context) error
	Logits(i, k int) []float32
}

// Blocks is a Model of which a pass gives the candidates of several levels. Nodes may have their logits in common.
type Blocks interface {
	// Known reports whether a row of the draft came with the candidates of its children: they take no pass.
	Known(t *Text, row int32) bool
}

// Reader is a Model whose rows read the target's cache.
type Reader interface {
	// Reads reports whether a cache has what rows below a text of so many tokens read.
	Reads(c any, tokens int) bool
}

// Text is a sequence's committed text.
type Text struct {
	*sequence.Text
	States [][]float32 // for the Model: of the rows of a draft
	More   any         // for the Model: what else it keeps of a text
}

// Rows are those of one sequence in a pass: nodes of Tree from number From on. The first Known
// nodes are text: what was committed and not read, and in a draft the root after it. Those beyond
// are drafted.
type Rows struct {
	Text  *Text
	Tree  *tree.Tree
	From  int
	Known int
	Asked []int32             // whose logits are wanted
	Lists []*output.Shortlist // of each of them; nil: all tokens
	Cache any                 // of drafts: the target's
}

// Config is a drafter to be made.
type Config struct {
	sequence.Shared // Pool, Vocab (tokens that may be drafted: the first of the target's) and Weights are to be set
	Shape           Shape
	Model           Model
	Target          int              // tokens of the target's vocabulary
	Tokens          []int32          // of each logit; nil: they are the vocabulary in order
	Lists           shortlist.Method // nil: all tokens' logits are computed
}

// New returns a drafter.
func New(c Config) (*Drafter, error) {
	l, err := c.Shape.limits()
	if err != nil {
		return nil, err
	}
	d := &Drafter{Config: c, limits: l, asked: max(l.children, rankedLeast)}
	d.Cache = c.Model.NewText().Cache.Pages()
	if d.Lists != nil {
		d.Methods = []shortlist.Method{d.Lists}
	}
	d.ranked = d.asked
	if d.Weights != nil {
		d.asked = max(d.asked, textrank.RowMost)
		d.ranked = max(d.asked, textrank.CandidatesMost)
	}
	d.rankers = make([]ranker, c.Pool.Threads())
	if d.Samplers, err = textrank.Samplers(c.Pool, c.Vocab); err != nil {
		return nil, err
	}
	places := textrank.Places(c.Tokens, c.Vocab)
	for i := range d.rankers {
		d.rankers[i].output = textrank.Output{Tokens: c.Tokens, Places: places}
		if places != nil {
			d.spread = append(d.spread, make([]float32, d.Vocab))
		}
	}
	for i := range d.yield {
		d.yield[i] = newYield(l.children)
	}
	return d, nil
}

// Drafter grows trees.
type Drafter struct {
	Config
	limits  limits
	asked   int         // candidates of a row that are looked at
	ranked  int         // candidates of a node at most
	spread  [][]float32 // of each worker, a row over the vocabulary, where logits are of a part
	rankers []ranker    // the same, for +text
	yield   [2]yield    // at temperature 0 and above

	proposals []draft.Proposal

	// The Propose under way.
	live    []*state
	rows    []Rows
	tasks   []task
	queries []shortlist.Query
	lists   []*shortlist.List

	byText textrank.Builder // of trees of the text alone
}

// rankedLeast candidates are looked at even where fewer become children: the others say how probable the first is.
const rankedLeast = 8

// Taps are those of the model.
func (d *Drafter) Taps() []int { return d.Model.Taps() }

func (d *Drafter) Begin(o draft.Options) (draft.State, error) {
	p := o.Sampling
	if o.Sampled {
		p.Seed = o.Seed ^ treebuild.DrawSeed
	}
	for token := range p.LogitBias {
		if int(token) >= d.Vocab { // of the target alone: nothing that could be drafted
			p.LogitBias = within(p.LogitBias, d.Vocab)
			break
		}
	}
	from := &d.Shared
	if o.Sampled { // a drawn tree is of the drafter's distribution alone, which must be known for all tokens
		from = &sequence.Shared{Vocab: d.Vocab}
	}
	s := &state{d: d, read: d.Model.NewText(), drawing: o.Sampled, scarce: o.Sampled}
	var err error
	if s.Sequence, err = from.Over(s.read.Text, p, o.Memory); err != nil {
		return nil, err
	}
	s.distribution = s.drawn
	if p.Temperature > 0 {
		s.scarce = p.TopK > 0 || p.TopP > 0 || p.MinP > 0
	}
	d.Shape.begin(s)
	return s, nil
}

// within is the part of a bias that names tokens of a vocabulary.
func within(bias map[int32]float32, vocab int) map[int32]float32 {
	m := map[int32]float32{}
	for token, b := range bias {
		if int(token) < vocab {
			m[token] = b
		}
	}
	return m
}

// Commit takes note of rows. Those of a prompt are computed now, where their time is expected, many in a pass.
func (d *Drafter) Commit(rows []draft.Rows) error {
	d.live = d.live[:0]
	d.Commits.Reset()
	for i := range rows {
		r := &rows[i]
		s := r.State.(*state)
		if err := s.commit(r); err != nil {
			return err
		}
		if s.Due(r) && !s.lost {
			d.live = append(d.live, s)
		}
	}
	d.Commits.Run(d.Pool, d.Samplers, d.Vocab)
	return d.read(context.Background(), 0)
}
