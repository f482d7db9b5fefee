// Package specblock drafts with a SpecBlock head (arXiv 2605.07243). A pass gives a block of K
// tokens, each following the one before. The next pass continues from many places of the tree at
// once, with the head's own states in place of the target's. A rank head predicts how far down the
// target's token lies among the head's. That determines how many siblings a place gets, and whether
// a block starts there.
//
// For each sequence the drafter keeps K rows of keys and values for every committed token, those of
// the block that begins there, or only the first of them: then slightly fewer tokens are accepted,
// in less time. It computes only the rows of new tokens, entry by entry. The pass that reads the
// root's entry is the first block of the proposal. When the next token is committed, that entry is
// computed again as part of the text. Rows of blocks last for one proposal.
//
// The tree is the paper's (Algorithm 2), and with the modifier +text the most probable nodes by the
// head and the text. Deviations: above temperature 0 candidates are drawn with the noise of the
// target's own choice instead of being the most probable. The 15 features of the shipped rank head
// describe the 20 largest logits, as in the release, not the whole distribution: that depends on
// how a head was trained (Config.RankFull).
//
// The entries are a window over as much text as the head was made for (sequence.Text).
package specblock

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/calibrate"
	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/sample"
)

// Options of the drafter. Its shortlists are those of shortlist.Open except dynaspec, whose router
// reads a head's state at a node's parent: a block's rows know only their own block.
type Options struct {
	Blocks int    `draft:"blocks" help:"blocks of the longest path, each one pass (1 to 16)"`
	Widths string `draft:"widths" help:"without +text: children of a node whose token the rank head expects first, among the first 4, among the first 10, or beyond; four equal numbers disable the rank head"`
	Starts int    `draft:"starts" help:"maximum nodes that later blocks start from, the most probable ones (0 to 1024); 0: no limit"`
	Cached int    `draft:"cached" help:"rows of each committed token's block that are kept in the cache (0 to 64); 0: all, as in training"`
	Nodes  int    `draft:"nodes" help:"maximum nodes, root included (2 to 4096)"`
	Model  string `draft:"model" help:"GGUF file or Hugging Face folder of the head; empty: the one the model was opened with"`

	registry.Modifiers
}

// DefaultOptions are the paper's options.
var DefaultOptions = Options{Blocks: 2, Widths: "2/4/6/4", Nodes: 60}

// check returns the widths, or an error that says which option is out of range.
func (o *Options) check() (w [RankBuckets]int, err error) {
	if err := option.Check(o); err != nil {
		return w, err
	}
	parts := strings.Split(o.Widths, "/")
	if len(parts) != RankBuckets {
		return w, fmt.Errorf("widths=%s: want %d numbers, such as 2/4/6/4", o.Widths, RankBuckets)
	}
	for i, part := range parts {
		if w[i], err = strconv.Atoi(strings.TrimSpace(part)); err != nil || w[i] < 0 || w[i] > maxWidth {
			return w, fmt.Errorf("widths=%s: want %d numbers from 0 to %d", o.Widths, RankBuckets, maxWidth)
		}
	}
	if w == [RankBuckets]int{} {
		return w, fmt.Errorf("widths=%s: want one above 0", o.Widths)
	}
	return w, nil
}

// maxWidth limits the children of a node.
const maxWidth = 256

// unequal reports whether widths depend on the rank head.
func unequal(w [RankBuckets]int) bool {
	return slices.ContainsFunc(w[1:], func(v int) bool { return v != w[0] })
}

// New returns a drafter with a head that fits the target.
func New(o Options, n *Network, target registry.Target) (draft.Drafter, error) {
	widths, err := o.check()
	if err != nil {
		return nil, err
	}
	if n.RankWidth == 0 && unequal(widths) && !o.Text {
		return nil, fmt.Errorf("the head has no rank head, which widths depend on: want widths=N/N/N/N, the same number of children at every place")
	}
	lists, err := headfile.Lists(o.Modifiers, shortlist.Drafter{Head: &n.Head, Norm: &n.Norm, Tokens: n.Tokens}, target)
	if err != nil {
		return nil, err
	}
	d := &drafter{
		n: n, options: o, widths: widths, cached: min(o.Cached, n.Block), ranked: max(rankedLeast, slices.Max(widths[:])),
		judged: n.RankWidth > 0 && (o.Text || unequal(widths)),
		places: textrank.Places(n.Tokens, n.Vocab), exec: nn.NewExec(target.Model.Pool()),
	}
	d.cached = cmp.Or(d.cached, n.Block)
	d.Shared = sequence.Shared{Pool: target.Model.Pool(), Vocab: n.Vocab, Cache: new(n.Pages()),
		Layout: sequence.TextOptions{Layers: len(n.Taps), Ahead: true, Rows: d.cached, Window: n.Config.Context}}
	if lists != nil {
		d.Methods = append(d.Methods, lists)
	}
	if d.Weights, err = headfile.TextModel(o.Modifiers, &n.Config); err != nil {
		return nil, err
	}
	if o.Text {
		d.ranked = max(d.ranked, textrank.RowMost)
	}
	d.ranked = min(d.ranked, n.Output())
	if d.plain, err = sample.New(sample.Params{}, n.Vocab); err != nil {
		return nil, err
	}
	if d.Samplers, err = textrank.Samplers(d.Pool, n.Vocab); err != nil {
		return nil, err
	}
	for i := range d.yield {
		d.yield[i] = slices.Repeat([]float32{calibrate.FirstChance}, o.Blocks)
	}
	return d, nil
}

// rankedLeast candidates are considered even if fewer can be nodes: the others show how probable the
// first is.
const rankedLeast = 8

type drafter struct {
	sequence.Shared
	n       *Network
	options Options
	widths  [RankBuckets]int // children of a node, by the rank head's bucket
	judged  bool             // the rank head is used
	cached  int              // rows kept for every committed token
	ranked  int              // candidates of a row that are considered
	places  []int32          // each target token's place in the head's output, -1 if it has none; nil: token i is at i
	plain   *sample.Sampler  // ranks only by logits
	exec    *nn.Exec
	// At temperature 0 and above, by the number of earlier passes: the mean worth that a pass adds to
	// the tree over the worth of its starts. It predicts the gain of another pass.
	yield [2][]float32

	proposals []draft.Proposal

	// The current computation.
	live             []*state
	pass             Pass
	number           int // of the pass in the proposal
	passes           []*passRows
	fresh            []*row  // rows that the pass computes
	from             []int32 // their numbers among all rows of the pass
	states, features nn.Mat  // theirs
	queries          []shortlist.Query
	lists            []*shortlist.List // theirs, if there is a method
	taps, c, x       nn.Buffer
	bufs             Buffers
	builder          textrank.Builder // of trees with +text
}

func (d *drafter) Taps() []int { return d.n.Taps }

func (d *drafter) Begin(o draft.Options) (draft.State, error) {
	s, err := d.Shared.Begin(o)
	if err != nil {
		return nil, err
	}
	return &state{d: d, Sequence: s}, nil
}

// Commit takes the rows' taps.
func (d *drafter) Commit(rows []draft.Rows) error {
	d.live = d.live[:0]
	d.Commits.Reset()
	for i := range rows {
		s := rows[i].State.(*state)
		s.compare(&rows[i])
		s.Sequence.Commit(&d.Shared, &rows[i])
		s.rows = s.rows[:0]
		if s.Due(&rows[i]) {
			d.live = append(d.live, s)
		}
	}
	d.Commits.Run(d.Pool, d.Samplers, d.Vocab)
	d.read(0)
	return nil
}
