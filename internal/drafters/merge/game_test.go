package merge

import (
	"context"
	"fmt"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/speculate/walk"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// game plays the loop's part with a merged drafter. The target is arbitrary: it is given as the
// token that follows a text.
type game struct {
	t     interface{ Fatal(...any) }
	d     draft.Drafter
	parts []*teller
	truth func(text []int32) int32
	seqs  []*gameSeq
	guide draft.Guide

	sampling sample.Params // for new sequences
}

type gameSeq struct {
	state    draft.State
	text     []int32 // the last token is the root
	tree     *tree.Tree
	accepted int
}

func (s *gameSeq) root() int32 { return s.text[len(s.text)-1] }

func newGame(t interface{ Fatal(...any) }, mode string, vocab int, seed uint64, parts ...*teller) *game {
	g := &game{t: t, parts: parts}
	g.truth = func(text []int32) int32 { return int32(hashText(seed, text) >> 33 % uint64(vocab)) }
	var list []Part
	for i, p := range parts {
		p.truth = g.truth
		p.vocab = vocab
		p.seed = mix(seed, uint64(i))
		list = append(list, Part{Name: "part " + string(rune('a'+i)), Drafter: p})
	}
	var err error
	if g.d, err = New(Options{Mode: mode}, vocab, list...); err != nil {
		t.Fatal(err)
	}
	return g
}

// alone returns a game of the same target with one drafter.
func (g *game) alone(p *teller) *game {
	one := *p
	return &game{t: g.t, d: &one, parts: []*teller{&one}, truth: g.truth}
}

// begin adds sequences with different prompts. Part of each prompt comes with a cache, the rest in
// one chunk.
func (g *game) begin(n int) {
	for range n {
		state, err := g.d.Begin(draft.Options{Sampling: g.sampling})
		if err != nil {
			g.t.Fatal(err)
		}
		s := &gameSeq{state: state, tree: tree.New(0)}
		g.seqs = append(g.seqs, s)
		s.text = []int32{int32(len(g.seqs) % 5), 1, 2, 0}
		if err := g.d.Commit([]draft.Rows{{State: state, Tokens: s.text[:2], Next: -1}}); err != nil {
			g.t.Fatal(err)
		}
		chain := tree.Chain(s.text[2:])
		rows := draft.Rows{State: state, Tokens: s.text[2:], Tree: chain, Nodes: []int32{0, 1}, Next: -1,
			Pass: &gamePass{taps: g.d.Taps(), texts: [][]int32{s.text[:2]}, trees: []*tree.Tree{chain}}}
		if err := g.d.Commit([]draft.Rows{rows}); err != nil {
			g.t.Fatal(err)
		}
		s.text = append(s.text, g.truth(s.text))
		s.tree.Reset(s.root())
	}
}

// propose requests trees for the sequences with these numbers.
func (g *game) propose(ctx context.Context, budget, depth int, which ...int) error {
	var requests []draft.Request
	for _, i := range which {
		s := g.seqs[i]
		s.tree.Reset(s.root())
		requests = append(requests, draft.Request{State: s.state, Tree: s.tree, Budget: budget, Depth: depth,
			Guide: g.guide})
	}
	_, err := g.d.Propose(ctx, requests)
	return err
}

// commit verifies the sequences' current trees.
func (g *game) commit(which ...int) error {
	p := &gamePass{taps: g.d.Taps()}
	var rows []draft.Rows
	for i, n := range which {
		s := g.seqs[n]
		base := len(s.text) - 1
		p.texts, p.trees = append(p.texts, slices.Clone(s.text[:base])), append(p.trees, s.tree)
		var w walk.Walk
		w.Start(s.tree)
		next := g.truth(s.text)
		for w.Follow(next) {
			s.text = append(s.text, next)
			next = g.truth(s.text)
		}
		s.accepted = len(s.text) - 1 - base
		rows = append(rows, draft.Rows{State: s.state, Tokens: slices.Clone(s.text[base:]), Tree: s.tree,
			Nodes: s.tree.Path(w.Node(), nil), Next: next, Pass: p, Sequence: i})
		s.text = append(s.text, next)
	}
	return g.d.Commit(rows)
}

// round runs a round of all sequences. It returns the number of accepted tokens without root and bonus token.
func (g *game) round(ctx context.Context, budget, depth int) (accepted int) {
	all := make([]int, len(g.seqs))
	for i := range all {
		all[i] = i
	}
	if err := g.propose(ctx, budget, depth, all...); err != nil {
		g.t.Fatal(err)
	}
	if err := g.commit(all...); err != nil {
		g.t.Fatal(err)
	}
	for _, s := range g.seqs {
		accepted += s.accepted
	}
	return accepted
}

// inStep checks that every part has received the text except its root.
func (g *game) inStep() {
	for _, s := range g.seqs {
		for _, p := range s.state.(*state).parts {
			if got, want := p.(*listener).text, s.text[:len(s.text)-1]; !slices.Equal(got, want) {
				g.t.Fatal(fmt.Sprintf("a part was told %v, the text is %v", got, want))
			}
		}
	}
}

type gamePass struct {
	taps  []int
	texts [][]int32
	trees []*tree.Tree
}

func (p *gamePass) after(sequence, node int) []int32 {
	text := slices.Clone(p.texts[sequence])
	for _, n := range p.trees[sequence].Path(node, nil) {
		text = append(text, p.trees[sequence].Token[n])
	}
	return text
}

func (p *gamePass) Tap(t, sequence, node int) []float32 {
	return []float32{feature(p.taps[t], p.after(sequence, node))}
}

func (p *gamePass) Logits(sequence, i int) []float32 {
	return []float32{feature(-1, p.after(sequence, i))}
}
