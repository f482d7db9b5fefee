// Package grow drafts trees that grow step by step: each step computes rows of some nodes, for all
// sequences in one batched pass, and their candidates become nodes. A tree has a shape: a chain
// (Linear), fixed breadth (Fixed), DynaTree's, EAGLE-2's dynamic tree (Dynamic), or the most
// probable nodes (BestFirst). A Model provides the rows: a draft model, or a head on the target.
//
// The drafter keeps a cache over the committed text. Each node is computed once, and leaves never.
// The target's choice is then walked down the tree. If drafted rows equal the rows that the
// committed text would have, those of the path stay in the cache. Tokens committed without a row (a
// leaf, the bonus token, text that was decoded plainly) are computed at the beginning of the next
// tree, so a sequence that is not drafted for costs nothing beyond its prompt.
//
// At temperature 0 candidates are ranked by their logits. Above, they are drawn from the drafter's
// distribution without replacement, with the noise that the target's own choice will use
// (sample.Sampler.Top): the papers draw with independent noise, or take the most probable. With the
// acceptance rule rejection, the drafter draws as the papers do.
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
	Taps() []int    // the layers that it reads; see draft.Drafter
	Context() int   // most rows of a text and levels of a draft together; 0: any number
	Keeps() bool    // a drafted row equals the row that the committed text would have
	NewText() *Text // the text of a new sequence

	// Prepare lays out the rows of a pass, one Rows for each sequence. They and everything that they
	// point to must not change until Run.
	Prepare(rows []Rows)
	// RouterInput returns what a router reads for the k-th asked row of the i-th sequence: the row's
	// output, which Run computes, or its inputs besides its token. nil: no router can be used.
	RouterInput(i, k int, output bool) []float32
	// Follow makes the next Run do phases between the rows' outputs and their logits. It is called only
	// if there is a router.
	Follow(phases []par.Phase)
	// Run computes the rows. Logits returns those of the i-th sequence's k-th asked row: of its list if it has one.
	Run(ctx context.Context) error
	Logits(i, k int) []float32
}

// Blocks is a Model whose passes give the candidates of several levels. Nodes may share their logits.
type Blocks interface {
	// Known reports whether a row of the draft came with its children's candidates: those take no pass.
	Known(t *Text, row int32) bool
}

// Reader is a Model whose rows read the target's cache.
type Reader interface {
	// Reads reports whether a cache has the rows that drafted rows after a text of so many tokens read.
	Reads(c any, tokens int) bool
}

// Text is a sequence's committed text.
type Text struct {
	*sequence.Text
	States [][]float32 // for the Model: of the rows of a draft
	More   any         // for the Model: its other state for a text
}

// Rows are the rows of one sequence in a pass: nodes of Tree from number From on. The first Known
// nodes are text: tokens committed but not yet read, and in a draft the root after them. Later
// nodes are drafted.
type Rows struct {
	Text  *Text
	Tree  *tree.Tree
	From  int
	Known int
	Asked []int32             // nodes whose logits are wanted
	Lists []*output.Shortlist // of each of them; nil: all tokens
	Cache any                 // in drafts: the target's
}

// Config describes a drafter to make.
type Config struct {
	sequence.Shared // set Pool, Vocab (how many of the target's first tokens may be drafted) and Weights
	Shape           Shape
	Model           Model
	Target          int              // tokens of the target's vocabulary
	Tokens          []int32          // the token of each logit; nil: the vocabulary in order
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
	asked   int         // candidates of a row that are considered
	ranked  int         // most candidates of a node
	spread  [][]float32 // by worker: a row over the vocabulary, if logits cover only part of it
	rankers []ranker    // by worker: for +text
	yield   [2]yield    // at temperature 0 and above

	proposals []draft.Proposal

	// The Propose under way.
	live    []*state
	rows    []Rows
	tasks   []task
	queries []shortlist.Query
	lists   []*shortlist.List

	byText textrank.Builder // of trees from the text only
}

// rankedLeast candidates are considered even if fewer become children: the others show how probable the first is.
const rankedLeast = 8

// Taps returns the model's taps.
func (d *Drafter) Taps() []int { return d.Model.Taps() }

func (d *Drafter) Begin(o draft.Options) (draft.State, error) {
	p := o.Sampling
	if o.Sampled {
		p.Seed = o.Seed ^ treebuild.DrawSeed
	}
	for token := range p.LogitBias {
		if int(token) >= d.Vocab { // a token only of the target, which cannot be drafted
			p.LogitBias = within(p.LogitBias, d.Vocab)
			break
		}
	}
	from := &d.Shared
	if o.Sampled { // a drawn tree follows only the drafter's distribution, which must be known for all tokens
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

// within returns the part of a bias that names tokens of a vocabulary.
func within(bias map[int32]float32, vocab int) map[int32]float32 {
	m := map[int32]float32{}
	for token, b := range bias {
		if int(token) < vocab {
			m[token] = b
		}
	}
	return m
}

// Commit records rows. Those of a prompt are computed now, many in a pass: their time is expected here.
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
