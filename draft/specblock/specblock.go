// Package specblock drafts with a SpecBlock head (arXiv 2605.07243): a pass gives a block of K
// tokens that go on from one another, and the next pass goes on from many places of the tree at
// once, each time with the head's own states in place of the target's. A rank head, which says how
// far down the target's token lies among the head's, sets how many siblings a place gets, and
// whether a block starts from there.
//
// The drafter keeps, for each sequence, K rows of keys and values for every committed token, those
// of the block that begins there, or the first of them alone: that
// costs a little of what is accepted, and less time. It computes the rows of new tokens only, entry
// by entry, none twice and none taken back. The pass that reads the last of them is the first block
// of the proposal. Rows of later blocks last for one proposal.
//
// The tree is the paper's (Algorithm 2). Deviations: above temperature 0 candidates are drawn with
// the noise of the target's own choice instead of being the most probable. The 15 features of the
// shipped rank head describe the 20 largest logits, as the release has it, not the whole
// distribution: a head's training decides it (Config.RankFull).
//
// The entries are a window over as much text as the head was made for (draft.Text).
package specblock

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/internal/sequence"
	"github.com/grovellm/grove/internal/textrank"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/shortlist"
)

// Options of the drafter. Its shortlists are those of shortlist.Open but dynaspec, whose router
// reads what a head knows at a node's parent: a block's rows know their own block alone.
type Options struct {
	Tree   string `draft:"tree" help:"ranked: children by the rank head; best-first: the most probable nodes"`
	Blocks int    `draft:"blocks" help:"blocks of the longest path, each one pass (1 to 16)"`
	Widths string `draft:"widths" help:"for ranked: children of a node whose token the rank head expects first, among the first 4, among the first 10, or beyond; four equal numbers do without the rank head"`
	Starts int    `draft:"starts" help:"maximum nodes that later blocks start from, the most probable ones (0 to 1024); 0: no limit"`
	Cached int    `draft:"cached" help:"rows of each committed token's block that are kept in the cache (0 to 64); 0: all, as in training"`
	Nodes  int    `draft:"nodes" help:"maximum nodes, root included (2 to 4096)"`
	Model  string `draft:"model" help:"GGUF file or Hugging Face folder of the head; empty: the one the model was opened with"`

	draft.Modifiers
}

// Trees.
const (
	Ranked    = "ranked"
	BestFirst = "best-first"
)

// DefaultOptions are the paper's.
var DefaultOptions = Options{Tree: Ranked, Blocks: 2, Widths: "2/4/6/4", Nodes: 60}

// check returns the widths, or an error that says which option is out of range.
func (o *Options) check() (w [RankBuckets]int, err error) {
	if o.Tree != BestFirst && o.Tree != Ranked {
		return w, fmt.Errorf("tree=%q: want %s or %s", o.Tree, Ranked, BestFirst)
	}
	if err := draft.Check(o); err != nil || o.Widths == "" && o.Tree == BestFirst { // which has no use for them
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

// maxWidth bounds the children of a node.
const maxWidth = 256

// unequal reports whether widths go by the rank head.
func unequal(w [RankBuckets]int) bool {
	return slices.ContainsFunc(w[1:], func(v int) bool { return v != w[0] })
}

// New returns a drafter with a head that fits the target.
func New(o Options, n *Network, target draft.Target) (draft.Drafter, error) {
	widths, err := o.check()
	if err != nil {
		return nil, err
	}
	if n.RankWidth == 0 && unequal(widths) && o.Tree == Ranked {
		return nil, fmt.Errorf("the head has no rank head, which widths go by: want widths=N/N/N/N, as many children at every place")
	}
	if target.Model == nil {
		return nil, fmt.Errorf("the target has no layers to tap: a SpecBlock head needs a model of grove's")
	}
	if err := n.Fits(target.Model.Config); err != nil {
		return nil, err
	}
	lists, err := headfile.Lists(o.Modifiers, shortlist.Drafter{Head: &n.Head, Norm: &n.Norm, Tokens: n.Tokens}, target)
	if err != nil {
		return nil, err
	}
	d := &drafter{
		n: n, options: o, widths: widths, cached: min(o.Cached, n.Block), ranked: max(rankedLeast, slices.Max(widths[:])),
		judged: n.RankWidth > 0 && (o.Tree == BestFirst || unequal(widths)),
		places: textrank.Places(n.Tokens, n.Vocab), exec: nn.NewExec(target.Model.Pool()),
	}
	if d.cached == 0 {
		d.cached = n.Block
	}
	d.Shared = sequence.Shared{Pool: target.Model.Pool(), Vocab: n.Vocab, Cache: n.Pages(), Layout: draft.TextOptions{
		Layers: len(n.Taps), Ahead: true, Rows: d.cached, Window: n.Config.Context}}
	if lists != nil {
		d.Methods = append(d.Methods, lists)
	}
	if d.Weights, err = headfile.TextModel(o.Modifiers, &n.Config); err != nil {
		return nil, err
	}
	if o.Text || o.Tree == BestFirst {
		d.ranked = max(d.ranked, textrank.RowMost)
	}
	d.ranked = min(d.ranked, n.Output())
	if d.plain, err = sample.New(sample.Params{}, n.Vocab); err != nil {
		return nil, err
	}
	if d.Samplers, err = textrank.Samplers(d.Pool, n.Vocab); err != nil {
		return nil, err
	}
	d.guess = newYield(o.Blocks, n.Block)
	for i := range d.yield {
		d.yield[i] = newYield(o.Blocks, n.Block)
	}
	return d, nil
}

// rankedLeast candidates are looked at even where fewer can be nodes: the others say how probable
// the first is.
const rankedLeast = 8

type drafter struct {
	sequence.Shared
	n       *Network
	options Options
	widths  [RankBuckets]int // children of a node, by the rank head's bucket
	judged  bool             // the rank head is asked
	cached  int              // rows kept of every committed token
	ranked  int              // candidates looked at of a row
	places  []int32          // where the target's tokens are in the head's output, -1: nowhere; nil: at their own
	plain   *sample.Sampler  // ranks by logits alone
	exec    *nn.Exec
	yield   [2]yield // at temperature 0 and above
	guess   yield    // what they begin with

	proposals []draft.Proposal

	// The computation under way.
	live      []*state
	forest    nn.Forest
	bufs      Buffers
	tokens    []int32 // of the pass's blocks
	lengths   []int32 // of each, its rows
	from      []int32 // rows of a matrix that are wanted
	taps, c   nn.Buffer
	x         nn.Buffer
	pass      int // its number in the proposal
	passes    []*passRows
	states    nn.Mat // of the rows looked at in the last
	described nn.Buffer
	features  nn.Mat // of the same rows
	scored    nn.Buffer
	queries   []shortlist.Query
	lists     []*shortlist.List // of the same rows; nil: the head computes all tokens
	builder   textrank.Builder  // of best-first trees
	scratch   textrank.Scratch
	tasks     []task
}

func (d *drafter) Taps() []int { return d.n.Taps }

func (d *drafter) Begin(o draft.Options) (draft.State, error) {
	s, err := d.Shared.Begin(o)
	if err != nil {
		return nil, err
	}
	chosen := s.Warm > 0 || s.History != nil || len(o.Sampling.LogitBias) > 0
	return &state{d: d, Sequence: s, chosen: chosen}, nil
}

// Commit takes the rows' taps.
func (d *drafter) Commit(rows []draft.Rows) error {
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
	d.read(0)
	return nil
}
