// Package merge drafts with two drafters or more at once and verifies the union of their trees in one pass (paper
// 000, "Merged-Tree Dual Drafting").
//
// Each part grows a tree of its own under the shared root. Mode "disjoint" is the paper's: the trees are put side by
// side under one root, each node keeps its place (φ), no node of one sees a node of another (the block mask), and a
// candidate that two parts have is verified twice. Mode "spliced" shares common prefixes: the same candidates, so
// the same tokens accepted, for fewer nodes. Both then keep the nodes that fit the budget, the likeliest first.
//
// Deviations from the paper: the default is spliced, and mode=disjoint switches to the paper's form; in both every part drafts with
// the whole budget and the union is cut to it, where the paper gives each part a share. No option divides the budget.
//
// Probabilities of two drafters are not comparable: one is sure of everything, another of nothing. So the package
// learns, while it drafts, how often the nodes of each part came true; see calibration. Every commit tells
// what the target made of all that was proposed at the nodes it went through, whether it was verified or not.
//
// Parts are asked in order, and the guide of one knows what those before it have proposed: list the cheapest first.
// Every part sees every commit, with the taps that it asked for, whoever had proposed the tokens.
//
// A merged drafter does not draw, and its parts are never asked for drawn trees. Rejection with the parts' own
// distributions q is exact only while no draw is dropped or moved for what it is, and sharing a token that two parts have
// drawn, or keeping the likelier nodes, does that. With candidates that count as certain (q = 1) every set of them is exact,
// drawn or chosen; and of those the likeliest are accepted most often, so parts choose them as they
// do for the coupled noise.
package merge

import (
	"fmt"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tree"
)

// Options of the drafter.
type Options struct {
	Mode string `draft:"mode" help:"spliced: trees share common prefixes; disjoint: each keeps its own nodes, as in the paper"`
}

// The modes.
const (
	Spliced  = "spliced"
	Disjoint = "disjoint"
)

// Default are the options that are used unless others are given.
func Default() Options { return Options{Mode: Spliced} }

const mostParts = 16

func init() {
	o := Default()
	draft.Register(draft.Family{
		Name: "merge",
		Help: "two or more drafters: the union of their trees",
		About: `merge:lookup+eagle3 verifies both trees in one pass. Each part may have options, as in
merge:lookup:min=2+best-first, and stands in (round brackets) if it contains a +. List the cheapest part first.
The rate at which each part's nodes are accepted is measured, and decides which nodes fit the budget.`,
		Paper:   "Merged-Tree Dual Drafting",
		Needs:   "what its parts need",
		Options: &o,
		Parts:   true,
		New:     open,
	})
}

// Part is one of the drafters that are merged.
type Part struct {
	Name    string // for messages
	Drafter draft.Drafter
}

// New merges drafters for a target with so many tokens in its vocabulary.
func New(o Options, vocab int, parts ...Part) (draft.Drafter, error) {
	switch {
	case o.Mode != Spliced && o.Mode != Disjoint:
		return nil, fmt.Errorf("merge: mode is %q: want %s or %s", o.Mode, Spliced, Disjoint)
	case vocab < 1:
		return nil, fmt.Errorf("merge: the target's vocabulary has %d tokens: want at least 1", vocab)
	case len(parts) < 2 || len(parts) > mostParts:
		return nil, fmt.Errorf("merge: %d parts: want 2 to %d, as in merge:lookup+best-first", len(parts), mostParts)
	}
	d := &drafter{o: o, vocab: vocab}
	for i, p := range parts {
		if p.Drafter == nil {
			return nil, fmt.Errorf("merge: part %d, %s, has no drafter", i+1, p.Name)
		}
		q := part{Part: p}
		for _, layer := range p.Drafter.Taps() {
			at := slices.Index(d.taps, layer)
			if at < 0 {
				at = len(d.taps)
				d.taps = append(d.taps, layer)
			}
			q.taps = append(q.taps, at)
		}
		d.parts = append(d.parts, q)
	}
	d.spent = make([]draft.Part, len(parts))
	for i := range d.worlds {
		d.worlds[i].parts = make([]calibration, len(parts))
	}
	return d, nil
}

type drafter struct {
	o      Options
	vocab  int
	parts  []part
	spent  []draft.Part
	taps   []int // all that the parts want, each once
	worlds [2]world

	proposals []draft.Proposal
	scratch
}

// part is a drafter, what it is told, and how it is asked.
type part struct {
	Part
	taps []int // of each of its taps: which of the merged drafter's

	requests []draft.Request
	rows     []draft.Rows
	passes   []pass
}

// world is what is known of claims where tokens are chosen in one way: at temperature 0, or above.
type world struct {
	parts []calibration      // what a part says of a node
	kinds [kinds]calibration // the largest of these, by who says so
}

// state is one sequence.
type state struct {
	world int
	parts []draft.State
	views []view       // of the parts, on the guide
	trees []*tree.Tree // what the parts proposed last
	union union        // of these
	root  int32        // theirs
	valid bool         // union was proposed for the text as it is

	// What the parts asked so far are expected to bring in this round: reach[d] is the chance that one of them is
	// right down to depth d at least, expected the number of tokens. Known where there is a guide.
	reach    []float32
	expected float32
}

// Taps are those of all parts.
func (d *drafter) Taps() []int { return d.taps }

// Pages are those of all parts.
func (d *drafter) Pages() (all []*nn.Pages) {
	for i := range d.parts {
		for _, p := range d.parts[i].Drafter.Pages() {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// ListStats are the sums over all parts.
func (d *drafter) ListStats() (sum draft.ListStats) {
	for i := range d.parts {
		sum.Add(d.parts[i].Drafter.ListStats())
	}
	return sum
}

func (d *drafter) Begin(o draft.Options) (draft.State, error) {
	s := &state{union: union{tree: tree.New(0)}}
	if o.Sampling.Temperature > 0 {
		s.world = 1
	}
	o.Sampling, o.Sampled = o.Ranking(), false // see the head of the package
	for i := range d.parts {
		p, err := d.parts[i].Drafter.Begin(o)
		if err != nil {
			s.Close()
			return nil, d.fault(i, err)
		}
		s.parts = append(s.parts, p)
		s.trees = append(s.trees, tree.New(0))
		s.views = append(s.views, view{d: d, s: s, part: i})
	}
	return s, nil
}

func (s *state) Close() {
	for _, p := range s.parts {
		p.Close()
	}
	s.parts, s.valid = nil, false
}

// Resume asks every part, and has the target compute the rows that any of them wants.
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

// fault says which part an error came from.
func (d *drafter) fault(i int, err error) error {
	return fmt.Errorf("merge: part %d, %s: %w", i+1, d.parts[i].Name, err)
}
