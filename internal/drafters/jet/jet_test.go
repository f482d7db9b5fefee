package jet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// A sequence's proposals do not depend on how its context came about, to the bit: on chunks of the
// prompt, on how many nodes each round accepts, on proposals in between, or on other sequences.
// After rows that came without a pass, they depend on nothing before except the number of those
// rows. The head's window may be shorter than the text.
func TestContextIsItsText(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHead(r, m)
		n.Config.Context = GenWindow(r)
		o := genOptions(r, n)
		d := newDrafter(r, o, n, m)
		var all []*Sequence
		var params []draft.Options
		// where each context begins: after the last rows without a pass
		start := make([]int, rapid.IntRange(1, 3).Draw(r, "sequences"))
		for id := range start {
			params = append(params, draft.Options{Sampling: GenParams(r)})
			all = append(all, Begin(r, d, params[id], id))
		}
		for range rapid.IntRange(1, 6).Draw(r, "rounds") {
			var rows []draft.Rows
			var requests []draft.Request
			for id, s := range all {
				switch {
				case rapid.IntRange(0, 3).Draw(r, "what") == 0 || len(s.Text) == 0:
					computed := rapid.IntRange(0, 3).Draw(r, "computed") > 0
					rows = append(rows, s.Prompt(GenText(r, 1, 90), n.Hidden, computed))
					if !computed {
						start[id] = len(s.Text)
					}
				case rapid.Bool().Draw(r, "plainly"):
					rows = append(rows, s.Accept(tree.New(s.Root), 0, rapid.Int32Range(0, Vocab-1).Draw(r, "next"),
						n.Hidden))
				default:
					requests = append(requests, s.Request(rapid.IntRange(2, 30).Draw(r, "budget"), 20, nil))
				}
			}
			Propose(r, d, requests...)
			for _, q := range requests {
				id := slices.IndexFunc(all, func(s *Sequence) bool { return s.State == q.State })
				node := rapid.IntRange(0, q.Tree.Len()-1).Draw(r, "accepted")
				rows = append(rows, all[id].Accept(q.Tree, node, rapid.Int32Range(0, Vocab-1).Draw(r, "next"),
					n.Hidden))
			}
			Commit(r, d, rows...)
		}

		var got []draft.Request
		for _, s := range all {
			got = append(got, s.Request(40, 20, nil))
		}
		Propose(r, d, got...)
		other := newDrafter(r, o, n, m)
		for id, s := range all {
			fresh := Begin(r, other, params[id], id)
			if start[id] > 0 {
				Commit(r, other, fresh.Prompt(s.Text[:start[id]], n.Hidden, false))
			}
			if rest := s.Text[start[id]:]; len(rest) > 0 {
				Commit(r, other, fresh.Prompt(rest, n.Hidden, true))
			}
			fresh.Root = s.Root
			want := fresh.Request(40, 20, nil)
			Propose(r, other, want)
			if err := Same(got[id].Tree, want.Tree); err != nil {
				r.Fatalf("sequence %d of %d, %+v: %v", id, len(all), o, err)
			}
			fresh.Close()
			s.Close()
		}
	})
}

// Trees keep to the request. With a guide, a causal block ends where the guide says that another
// level does not pay, and the tree is that of as many levels; a bidirectional block is drafted
// whole, and the guide is not asked.
func TestTreesKeepToTheRequest(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHead(r, m)
		o := genOptions(r, n)
		if rapid.Bool().Draw(r, "with text") {
			o.Tree = withText
		}
		d := newDrafter(r, o, n, m)
		p := GenParams(r)
		s := Begin(r, d, draft.Options{Sampling: p}, 1)
		Commit(r, d, s.Prompt(GenText(r, 1, 40), n.Hidden, true))
		budget, depth := rapid.IntRange(2, 40).Draw(r, "budget"), rapid.IntRange(1, 20).Draw(r, "depth")
		free := s.Request(budget, depth, nil)
		Propose(r, d, free)
		if err := free.Tree.Check(Vocab); err != nil || free.Tree.Len() > budget || free.Tree.Len() < 2 ||
			free.Tree.MaxDepth() > depth {
			r.Fatalf("budget %d, depth %d: %v, %v", budget, depth, free.Tree, err)
		}
		block := n.Block - 1
		if o.Depth > 0 {
			block = o.Depth
		}
		if free.Tree.MaxDepth() > block && (o.Tree != withText || o.Depth > 0) {
			r.Fatalf("%+v: depth %d", o, free.Tree.MaxDepth())
		}
		chances := make([]float32, free.Tree.Len()) // of all children together
		for i := 1; i < free.Tree.Len(); i++ {
			chances[free.Tree.Parent[i]] += exp(free.Tree.LogProb[i])
			if chances[free.Tree.Parent[i]] > 1.001 {
				r.Fatalf("%+v: chances of more than 1 below node %d: %v", o, free.Tree.Parent[i], free.Tree)
			}
		}
		g := &Judge{Levels: rapid.IntRange(1, 20).Draw(r, "levels")}
		guided := s.Request(budget, depth, g)
		Propose(r, d, guided)
		if n.Causal && o.Tree != withText { // there the text may continue the tree
			depth = min(depth, g.Levels)
		} else if !n.Causal && g.Asked > 1 {
			r.Fatalf("%d questions about levels of one pass", g.Asked)
		}
		want := s.Request(budget, depth, nil)
		Propose(r, d, want)
		if guided.Tree.MaxDepth() > depth {
			r.Fatalf("%d levels pay: %v", g.Levels, guided.Tree)
		}
		// the guide believes the probabilities it is given
		if p.Temperature == 0 && !(n.Causal && o.Tree == withText && g.Levels < depth) {
			if err := sameShape(guided.Tree, want.Tree); err != nil {
				r.Fatal(err)
			}
		}
	})
}

func TestResume(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHead(r, m)
		n.Config.Context = GenWindow(r)
		o := genOptions(r, n)
		Resumes(r, newDrafter(r, o, n, m), newDrafter(r, o, n, m), draft.Options{Sampling: GenParams(r)}, n.Hidden,
			n.Config.Context)
	})
}

// A cancelled proposal proposes nothing, and the next one is the same as without it.
func TestCancel(t *testing.T) {
	m := OpenTarget(t, 400)
	n := head(t, m, 3)
	d := newDrafter(t, jet.Options{Tree: onepass.AccumLogP, Width: 3}, n, m)
	s := Begin(t, d, draft.Options{}, 1)
	Commit(t, d, s.Prompt([]int32{4, 5, 6}, n.Hidden, true))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	q := s.Request(20, 20, nil)
	if _, err := d.Propose(ctx, []draft.Request{q}); !errors.Is(err, context.Canceled) || q.Tree.Len() != 1 {
		t.Errorf("%v, %v", err, q.Tree)
	}
	Propose(t, d, q)
	again := s.Request(20, 20, nil)
	Propose(t, d, again)
	if err := Same(q.Tree, again.Tree); err != nil {
		t.Error(err)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	m := OpenTarget(t, 400)
	for seed := uint64(7); seed < 11; seed++ {
		n := head(t, m, seed)
		for _, name := range []string{onepass.AccumLogP, onepass.DDTree, onepass.Hybrid, onepass.Chain, withText} {
			d := newDrafter(t, jet.Options{Tree: name, Width: 4, Lambda: 1}, n, m)
			SteadyState(t, fmt.Sprintf("head %d, %s", seed, name), d, n.Hidden, 0, &Judge{Levels: 1 << 20})
		}
	}
}

// Repetitive text is drafted beyond the head's block, where the head predicts nothing. The weights
// of +text are those that were fitted for grove's head.
func TestTreesGoOnWithTheText(t *testing.T) {
	m := OpenTarget(t, 400)
	fitted, err := headfile.ReadConfig[jet.Config](registry.Head{Name: "jetspec", Data: models.Heads()[0]}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for seed := uint64(7); seed < 13; seed++ { // heads that are less certain than the text
		n := head(t, m, seed)
		clear(n.Norm.Weight) // all logits are the same
		n.TextWeights = fitted.TextWeights
		d := newDrafter(t, jet.Options{Tree: withText}, n, m)
		s := Begin(t, d, draft.Options{}, 1)
		text := make([]int32, 200)
		for i := range text {
			text[i] = int32(3*(i%(n.Block+7)) + 2)
		}
		at := 150
		Commit(t, d, s.Prompt(text[:at], n.Hidden, true))
		s.Root = text[at]
		q := s.Request(200, 30, nil)
		Propose(t, d, q)
		node, depth := 0, 0
		for ; node >= 0 && depth < 30; depth++ {
			node = q.Tree.Child(node, text[at+1+depth])
		}
		if node < 0 || q.Tree.MaxDepth() != 30 {
			t.Errorf("head %d of block %d: text that occurred before is followed for %d tokens, want 30: %v", seed,
				n.Block, depth-1, q.Tree)
		}
	}
}

type still struct{ x, logits []float32 }

func (p *still) Logits(int, int) []float32   { return p.logits }
func (p *still) Tap(int, int, int) []float32 { return p.x }

func TestNewRefuses(t *testing.T) {
	m := OpenTarget(t, 400)
	n := head(t, m, 1)
	if _, err := registry.New("ddtree", registry.Target{Vocab: Vocab, Context: 400}); err == nil {
		t.Error("a target without layers has a head")
	}
	for _, o := range []jet.Options{{Tree: "oak"}, {Tree: onepass.DDTree, Depth: n.Block},
		{Tree: onepass.DDTree, Depth: -1}, {Tree: onepass.AccumLogP, Width: -1}, {Tree: onepass.Hybrid, Lambda: -1},
		{Tree: onepass.Hybrid}} {
		if _, err := jet.New(o, n, As(m)); err == nil {
			t.Errorf("%+v make a drafter", o)
		}
	}
}

func TestSameTokens(t *testing.T) {
	m := OpenTarget(t, 512)
	kinds := map[bool]*jet.Network{}
	for seed := uint64(0); len(kinds) < 2; seed++ {
		n := head(t, m, seed)
		kinds[n.Causal] = n
	}
	var cases []Case
	for causal, n := range kinds {
		for _, name := range []string{withText, onepass.AccumLogP, onepass.DDTree, onepass.Hybrid, onepass.Entropy,
			onepass.Chain} {
			cases = append(cases, Case{
				Name: fmt.Sprintf("%s, causal %v", name, causal),
				New: func() draft.Drafter {
					return newDrafter(t, jet.Options{Tree: name, Width: 4, Lambda: 1}, n,
						m)
				},
				Finds: true,
			})
		}
	}
	SameTokens(t, m, cases)
}
