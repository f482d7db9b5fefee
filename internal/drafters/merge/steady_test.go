package merge

import (
	"context"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/batch"
	"github.com/grovellm/grove/tree"
)

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, mode := range []string{Spliced, Disjoint, Routed} {
		d, err := New(Options{Mode: mode}, 16, Part{"a", &circle{step: 1, taps: []int{1}}},
			Part{"b", &circle{step: 2, taps: []int{0, 1}}}, Part{"c", &circle{step: 1}})
		if err != nil {
			t.Fatal(err)
		}
		guide := &fakeGuide{chance: func(_ int, p float32) float32 { return p }}
		var requests []draft.Request
		for range 2 {
			s, err := d.Begin(draft.Options{})
			if err != nil {
				t.Fatal(err)
			}
			requests = append(requests, draft.Request{State: s, Tree: tree.New(0), Budget: 12, Depth: 6, Guide: guide})
		}
		rows := make([]draft.Rows, 2)
		tokens, nodes := []int32{0, 1, 2}, []int32{0, 1, 2}
		var p draft.Pass = &gamePass{}
		ctx := context.Background()
		round := func() {
			for i, r := range requests {
				r.Tree.Reset(0)
				rows[i] = draft.Rows{State: r.State, Tokens: tokens, Tree: r.Tree, Nodes: nodes, Next: 4, Pass: p}
			}
			if _, err := d.Propose(ctx, requests); err != nil {
				t.Fatal(err)
			}
			if err := d.Commit(rows); err != nil {
				t.Fatal(err)
			}
		}
		round()
		if n := testing.AllocsPerRun(100, round); n != 0 {
			t.Errorf("%s: %g allocations a round, want 0", mode, n)
		}
		if requests[0].Tree.Len() < 10 {
			t.Errorf("%s: the tree has %d nodes", mode, requests[0].Tree.Len())
		}
	}
}

// circle drafts a text that cycles in steps, with another token next to each.
type circle struct {
	draft.Base
	step int32
	taps []int

	proposals []draft.Proposal
}

type circleState struct{}

func (circleState) Close()                                 {}
func (c *circle) Taps() []int                              { return c.taps }
func (c *circle) Begin(draft.Options) (draft.State, error) { return circleState{}, nil }
func (c *circle) Commit([]draft.Rows) error                { return nil }
func (c *circle) Propose(_ context.Context, q []draft.Request) ([]draft.Proposal, error) {
	c.proposals = batch.Proposals(c.proposals, len(q))
	for _, r := range q {
		at := 0
		for r.Tree.Len()+1 < r.Budget && int(r.Tree.Depth[at]) < r.Depth {
			token := (r.Tree.Token[at] + c.step) % 16
			r.Tree.Append(at, (token+8)%16, -3)
			at = r.Tree.Append(at, token, -.3)
			if r.Guide != nil && !r.Guide.Deeper(r.Guide.Chance(1, -1), 1) {
				break
			}
		}
	}
	return c.proposals, nil
}

func BenchmarkRound(b *testing.B) {
	for _, mode := range []string{Spliced, Disjoint, Routed} {
		b.Run(mode, func(b *testing.B) {
			g := newGame(b, mode, 40, 3, &teller{luck: .6, width: 200}, &teller{luck: .6, width: 200})
			g.begin(1)
			if err := g.propose(context.Background(), 64, 16, 0); err != nil {
				b.Fatal(err)
			}
			d, s := g.d.(*drafter), g.seqs[0].state.(*state)
			r := draft.Request{State: s, Tree: tree.New(0), Budget: 64, Depth: 16}
			b.ReportAllocs()
			for b.Loop() { // not counting the parts' own work
				d.merge(s.trees)
				d.index = d.union.Sub(r.Tree, nil, r.Budget, r.Depth, d.index)
			}
		})
	}
}
