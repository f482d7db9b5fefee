// Package lookup drafts without a model: it looks up the end of the text in the text itself, prompt
// and output (and a predicted output, if the caller has one), and proposes what followed there.
//
// The continuations of the longest match, and of shorter ones, are read from a suffix automaton as
// one trie: nodes are added best first until the budget is spent or nothing likely is left. If
// nothing matches, the tree is only its root, and the round is plain decoding.
//
// Prompt lookup decoding (Saxena, 2023) proposes the tokens after one match, as a chain. Here all
// continuations of the longest matches form a tree; levels=1 keeps only those of the longest match.
// No option makes the chain.
package lookup

import (
	"context"
	"fmt"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/batch"
	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/suffix"
	"github.com/grovellm/grove/internal/drafters/textstore"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/sample"
)

// Options of the drafter.
type Options struct {
	Min    int     `draft:"min" help:"shortest match to draft from, in tokens (1 or more)"`
	Levels int     `draft:"levels" help:"number of matches of different length to draft from (1 to 16)"`
	Floor  float32 `draft:"floor" help:"minimum probability of a path to be drafted (above 0, at most 1)"`
}

// Default returns the default options.
func Default() Options { return Options{Min: 1, Levels: 3, Floor: 0.02} }

func init() {
	o := Default()
	registry.Register(registry.Family{
		Name: "lookup",
		Help: "what followed the same words earlier in the text; no model",
		About: `It looks for earlier occurrences of the text's last tokens in the prompt, the output and a predicted
output (--predict). The tokens that followed there become a tree, the most frequent ones first. It costs
next to nothing, and works best when the output repeats its input: edits, quotes, code.`,
		Paper:   "Prompt lookup decoding (Saxena, 2023); SAM decoding, arXiv 2411.10666, uses a suffix automaton too",
		Options: &o,
		Auto:    "lookup",
		Rank:    9,
		New: func(options string, _ registry.Modifiers, _ registry.Target) (draft.Drafter, error) {
			o := Default()
			if err := option.Parse(options, &o); err != nil {
				return nil, err
			}
			return New(o)
		},
	})
}

// New returns a drafter.
func New(o Options) (draft.Drafter, error) {
	if !(o.Min >= 1 && o.Floor > 0 && o.Floor <= 1) {
		return nil, fmt.Errorf("min is %d and floor %g: want min at least 1 and floor above 0, at most 1", o.Min, o.Floor)
	}
	if err := option.Check(&o); err != nil {
		return nil, err
	}
	return &drafter{o: o}, nil
}

type drafter struct {
	draft.Base
	o         Options
	proposals []draft.Proposal
	builder   treebuild.Builder

	// The current tree.
	s     *state
	most  int     // greatest depth of its nodes
	nodes []place // of each node
	lists [][]sample.Candidate
	found []sample.Candidate
}

// state is the text of one sequence and how its matches turned out.
type state struct {
	text     *suffix.Automaton // of the predicted output and the sequence
	tokens   []int32           // of the sequence
	sampling sample.Params

	memory   draft.Memory
	recalled textstore.Recalled // of the text and the root of the last tree

	predicted []int32
	kept      int // how much of it the output repeats so far; -1 once the output differs
}

func (s *state) Close() { s.text = nil }

func (d *drafter) Begin(o draft.Options) (draft.State, error) {
	s := &state{text: suffix.New(), memory: o.Memory, sampling: o.Ranking(),
		predicted: slices.Clone(o.Predicted)}
	for _, token := range o.Predicted {
		s.text.Extend(token)
	}
	if len(o.Predicted) > 0 {
		s.text.Extend(gap)
	}
	return s, nil
}

// gap separates the predicted output from the prompt; no token equals it.
const gap = -1

func (*drafter) Commit(rows []draft.Rows) error {
	for _, r := range rows {
		s := r.State.(*state)
		s.tokens = append(s.tokens, r.Tokens...)
		for _, token := range r.Tokens {
			s.text.Extend(token)
			if r.Next >= 0 { // not the prompt
				s.kept = s.keep(s.kept, token)
			}
		}
	}
	return nil
}

// keep returns how much of the predicted output the output repeats, with token after kept tokens of it.
func (s *state) keep(kept int, token int32) int {
	if kept >= 0 && kept < len(s.predicted) && s.predicted[kept] == token {
		return kept + 1
	}
	return -1
}

func (d *drafter) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	for i := range requests {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r := &requests[i]
		d.s = r.State.(*state)
		d.most = r.Depth
		d.nodes = d.nodes[:0]
		d.builder.Least = float64(d.o.Floor)
		d.builder.Build(r.Tree, d, r.Budget)
	}
	d.s = nil
	d.proposals = batch.Proposals(d.proposals, len(requests))
	return d.proposals, nil
}
