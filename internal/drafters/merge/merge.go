// Package merge drafts with two or more drafters at once and verifies the union of their trees in
// one pass (Merged-Tree Dual Drafting).
//
// The default is the paper's form. The parts divide the budget, since section 3 compares the merged
// tree with one tree of the same number of nodes. The trees are put side by side under one root.
// Each node keeps its place (φ, section 4.1), and no node of one tree sees a node of another. A
// candidate of two parts is verified twice.
//
// mode=spliced is grove's form. Every part drafts with the whole budget, trees share common
// prefixes, and the most probable nodes of the union are kept.
//
// mode=routed is the paper's section 8: every part drafts with the whole budget, and only the tree
// with the most expected accepted tokens is verified.
//
// Deviation from the paper: nodes that a part leaves unused go to the parts after it.
//
// Probabilities of two drafters are not comparable: one may be over-confident, another not. So
// nodes get measured chances, from a calibration of each part that learns from every proposal of
// the part, verified or not.
//
// Parts are asked in order, and the guide of each knows what those before it proposed: list the
// cheapest first. Every part sees every commit, with the taps that it asked for.
//
// A merged drafter does not draw, and its parts are never asked for drawn trees. Rejection sampling
// is exact for drawn candidates only if none is dropped or merged because of its token, and a merge
// does both. Chosen candidates count as certain (q = 1): every set of them is exact.
package merge

import (
	"fmt"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/batch"
	"github.com/grovellm/grove/internal/drafters/calibrate"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/speculate/walk"
	"github.com/grovellm/grove/tree"
)

// Options of the drafter.
type Options struct {
	Mode string `draft:"mode" help:"disjoint: each part's tree keeps its own nodes, and a share of the budget; spliced: trees share common prefixes; routed: one part's tree"`
}

// The modes.
const (
	Disjoint = "disjoint"
	Spliced  = "spliced"
	Routed   = "routed"
)

// Default returns the default options.
func Default() Options { return Options{Mode: Disjoint} }

const mostParts = 16

func init() {
	registry.Register(registry.Family{
		Name: "merge",
		Help: "two or more drafters: the union of their trees",
		About: `merge:lookup+eagle3 verifies both trees in one pass. Each part may have options, as in
merge:lookup:min=2+best-first, and must be in (parentheses) if it contains a +. List the cheapest part first.
The parts divide the budget. With mode=spliced each has all of it, and the nodes most likely to be accepted, as measured, are kept.
With mode=routed only the tree with the most expected accepted tokens is verified.`,
		Paper:   "Merged-Tree Dual Drafting",
		Needs:   "what its parts need",
		Options: new(Default()),
		Parts:   true,
		New:     open,
	})
}

// Part is one of the merged drafters.
type Part struct {
	Name    string // for messages
	Drafter draft.Drafter
}

// New merges drafters for a target with so many tokens in its vocabulary.
func New(o Options, vocab int, parts ...Part) (draft.Drafter, error) {
	switch {
	case o.Mode != Disjoint && o.Mode != Spliced && o.Mode != Routed:
		return nil, fmt.Errorf("merge: mode is %q: want %s, %s or %s", o.Mode, Disjoint, Spliced, Routed)
	case vocab < 1:
		return nil, fmt.Errorf("merge: the target's vocabulary has %d tokens: want at least 1", vocab)
	case len(parts) < 2 || len(parts) > mostParts:
		return nil, fmt.Errorf("merge: %d parts: want 2 to %d, as in merge:lookup+best-first", len(parts), mostParts)
	}
	d := &drafter{o: o, vocab: vocab, spent: make([]batch.Share, len(parts)), union: tree.New(0), spare: tree.New(0)}
	for i, p := range parts {
		if p.Drafter == nil {
			return nil, fmt.Errorf("merge: part %d, %s, has no drafter", i+1, p.Name)
		}
		q := part{Part: p}
		d.taps, q.taps = sequence.JoinTaps(d.taps, p.Drafter.Taps())
		d.parts = append(d.parts, q)
	}
	for i := range d.tables {
		d.tables[i] = slices.Repeat([]calibrate.Table{calibrate.New()}, len(parts))
	}
	return d, nil
}

type drafter struct {
	o      Options
	vocab  int
	parts  []part
	spent  []batch.Share              // of the last batch
	taps   []int                      // all taps that the parts want, each once
	tables [classes][]calibrate.Table // of each part

	// Memory of a call.
	proposals    []draft.Proposal
	union, spare *tree.Tree
	walk         walk.Walk
	children     []int32
	index        []int32
	path         []float32 // by node: chance of the path to it
	sum          []float32 // by depth: of the chances of paths
}

// Tokens are chosen in one of two ways, in which drafters' probabilities have different
// meanings.
const (
	greedy  = iota // temperature 0
	sampled        // above temperature 0
	classes
)

// part is a drafter, with its inputs and requests.
type part struct {
	Part
	taps []int // the place of each of its taps among the merged drafter's

	requests []draft.Request
	rows     []draft.Rows
	passes   []sequence.PassOf
}

// state is one sequence.
type state struct {
	class    int
	parts    []draft.State
	guides   []partGuide
	trees    []*tree.Tree // the last proposal of each part, with measured chances
	claims   [][]float32  // the log-probabilities that the part gave its nodes
	root     int32        // of the trees
	proposed bool         // the trees were proposed for the text as it is

	// The expected result of the parts asked so far in this round: reach[d] is the chance that one of
	// them is right down to depth d at least, and expected is the number of tokens. They are known
	// only with a guide.
	reach    []float32
	expected float32
}

// Taps returns the taps of all parts.
func (d *drafter) Taps() []int { return d.taps }

// Pages returns the pages of all parts.
func (d *drafter) Pages() (all []draft.Pages) {
	for i := range d.parts {
		for _, p := range d.parts[i].Drafter.Pages() {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// ListStats returns the sums over all parts.
func (d *drafter) ListStats() (sum shortlist.Stats) {
	for i := range d.parts {
		sum.Add(shortlist.StatsOf(d.parts[i].Drafter))
	}
	return sum
}

// Shares returns the parts' shares of the last batch.
func (d *drafter) Shares() []batch.Share { return d.spent }

// Learned returns the calibrations, and what the parts learn.
func (d *drafter) Learned() (all [][]float32) {
	for i := range d.tables {
		for k := range d.tables[i] {
			all = append(all, d.tables[i][k].Learned()...)
		}
	}
	for i := range d.parts {
		all = append(all, d.parts[i].Drafter.Learned()...)
	}
	return all
}

func (d *drafter) Begin(o draft.Options) (draft.State, error) {
	s := &state{class: greedy, claims: make([][]float32, len(d.parts))}
	if o.Sampling.Temperature > 0 {
		s.class = sampled
	}
	o.Sampling, o.Sampled = o.Ranking(), false
	for i := range d.parts {
		p, err := d.parts[i].Drafter.Begin(o)
		if err != nil {
			s.Close()
			return nil, d.fault(i, err)
		}
		s.parts = append(s.parts, p)
		s.trees = append(s.trees, tree.New(0))
		s.guides = append(s.guides, partGuide{d: d, s: s, part: i})
	}
	return s, nil
}

func (s *state) Close() {
	for _, p := range s.parts {
		p.Close()
	}
	s.parts, s.proposed = nil, false
}

// Resume asks every part, and makes the target compute the rows that any of them needs.
func (d *drafter) Resume(s draft.State, n int, from draft.State, common int) (first int) {
	first = n
	for i := range d.parts {
		var other draft.State
		if from != nil {
			other = from.(*state).parts[i]
		}
		first = min(first, d.parts[i].Drafter.Resume(s.(*state).parts[i], n, other, common))
	}
	return first
}

// fault adds to an error which part it came from.
func (d *drafter) fault(i int, err error) error {
	return fmt.Errorf("merge: part %d, %s: %w", i+1, d.parts[i].Name, err)
}
