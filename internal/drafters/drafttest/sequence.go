package drafttest

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// Sequence is a sequence as its target sees it: the committed rows, and the last token, which has no row yet.
type Sequence struct {
	draft.State
	Text  []int32
	Root  int32
	Start int // of the computed text: the rows before it had no pass
	ID    int // of the text, for its taps
}

// Begin begins a sequence.
func Begin(t Fataler, d draft.Drafter, o draft.Options, id int) *Sequence {
	t.Helper()
	return &Sequence{State: Must(d.Begin(o))(t), ID: id, Root: int32(id)}
}

// Prompt commits a chain of rows as a prompt's. Rows without a pass came with a cache.
func (s *Sequence) Prompt(tokens []int32, hidden int, computed bool) draft.Rows {
	r := draft.Rows{State: s.State, Tokens: tokens, Next: -1}
	if computed {
		r.Tree = tree.Chain(tokens)
		for i := range tokens {
			r.Nodes = append(r.Nodes, int32(i))
		}
		r.Pass = &Pass{s.ID, len(s.Text), hidden, r.Tree}
	}
	s.Text = append(s.Text, tokens...)
	if !computed {
		s.Start = len(s.Text)
	}
	return r
}

// Accept returns the rows of the tree's path to node, and the token that follows.
func (s *Sequence) Accept(t *tree.Tree, node int, next int32, hidden int) draft.Rows {
	r := draft.Rows{State: s.State, Tree: t, Nodes: t.Path(node, nil), Next: next, Pass: &Pass{s.ID, len(s.Text), hidden, t}}
	for _, i := range r.Nodes {
		r.Tokens = append(r.Tokens, t.Token[i])
	}
	s.Text = append(s.Text, r.Tokens...)
	s.Root = next
	return r
}

// Request returns a request for a tree.
func (s *Sequence) Request(budget, depth int, g draft.Guide) draft.Request {
	return draft.Request{State: s.State, Tree: tree.New(s.Root), Budget: budget, Depth: depth, Guide: g}
}

// Fresh returns another sequence, of d, that reads all of s's text at once.
func (s *Sequence) Fresh(t Fataler, d draft.Drafter, o draft.Options, hidden int) *Sequence {
	t.Helper()
	f := Begin(t, d, o, s.ID)
	if s.Start > 0 {
		Commit(t, d, f.Prompt(s.Text[:s.Start], hidden, false))
	}
	if rest := s.Text[s.Start:]; len(rest) > 0 {
		Commit(t, d, f.Prompt(rest, hidden, true))
	}
	f.Root = s.Root
	return f
}

// Live runs rounds of several sequences: chunks of prompts, rows without a pass, trees of which any
// number of nodes is accepted, and plain decoding, mixed in each round.
func Live(r *rapid.T, d draft.Drafter, hidden, rounds int, all ...*Sequence) {
	for range rounds {
		var rows []draft.Rows
		var requests []draft.Request
		next := func() int32 { return rapid.Int32Range(0, Vocab-1).Draw(r, "next") }
		for _, s := range all {
			switch {
			case rapid.IntRange(0, 3).Draw(r, "what") == 0 || len(s.Text) == 0:
				rows = append(rows, s.Prompt(GenText(r, 1, 90), hidden, rapid.IntRange(0, 3).Draw(r, "computed") > 0))
			case rapid.Bool().Draw(r, "plainly"):
				rows = append(rows, s.Accept(tree.New(s.Root), 0, next(), hidden))
			default:
				requests = append(requests, s.Request(rapid.IntRange(2, 30).Draw(r, "budget"), 20, nil))
			}
		}
		Propose(r, d, requests...)
		for _, q := range requests {
			s := all[slices.IndexFunc(all, func(s *Sequence) bool { return s.State == q.State })]
			rows = append(rows, s.Accept(q.Tree, rapid.IntRange(0, q.Tree.Len()-1).Draw(r, "accepted"), next(), hidden))
		}
		Commit(r, d, rows...)
	}
}

// Commit commits rows.
func Commit(t Fataler, d draft.Drafter, rows ...draft.Rows) {
	t.Helper()
	if err := d.Commit(rows); err != nil {
		t.Fatal(err)
	}
}

// Propose grows trees.
func Propose(t Fataler, d draft.Drafter, requests ...draft.Request) []draft.Proposal {
	t.Helper()
	return Must(d.Propose(context.Background(), requests))(t)
}

// Same returns an error that says how trees differ, if they do.
func Same(a, b *tree.Tree) error {
	if !slices.Equal(a.Token, b.Token) || !slices.Equal(a.Parent, b.Parent) || !slices.Equal(a.LogProb, b.LogProb) {
		return fmt.Errorf("trees differ: %v %v %v, %v %v %v", a.Token, a.Parent, a.LogProb, b.Token, b.Parent, b.LogProb)
	}
	return nil
}

// Judge is a guide that accepts the given number of levels.
type Judge struct{ Levels, Asked int }

func (g *Judge) Chance(_ int, logProb float32) float32 { return float32(math.Exp(float64(logProb))) }

func (g *Judge) Value(chance float32) float32 { return chance }

func (g *Judge) Deeper(float32, float32) bool {
	g.Asked++
	return g.Asked <= g.Levels
}

// Generate decodes prompts in one loop.
func Generate(t Fataler, m *model.Model, d draft.Drafter, o speculate.Options, p sample.Params,
	prompts [][]int32) ([][]int32, *speculate.Stats) {
	t.Helper()
	l := Must(speculate.New(speculate.Model(m), d, o))(t)
	var batch []*speculate.Sequence
	for _, prompt := range prompts {
		s := Must(l.Start(prompt, speculate.Request{Sampling: p, MaxTokens: 30}))(t)
		defer s.Close()
		batch = append(batch, s)
	}
	for slices.ContainsFunc(batch, func(s *speculate.Sequence) bool { return s.Finish() == speculate.Running }) {
		if err := l.Step(context.Background(), batch); err != nil {
			t.Fatal(err)
		}
	}
	var out [][]int32
	for _, s := range batch {
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
		out = append(out, slices.Clone(s.Output()))
	}
	return out, l.Stats()
}
