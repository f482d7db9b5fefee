package specblock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/testing/cases"
	"pgregory.net/rapid"
)

// A sequence's proposals do not depend on how its entries came to be read, to the bit: on chunks of
// the prompt, on how many nodes each round accepts, on proposals in between, or on other sequences.
// After rows that came without a pass, they depend on nothing before except the number of those
// rows. The head's window may be shorter than the text.
func TestEntriesAreTheText(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHead(r, m)
		n.Config.Context = drafttest.GenWindow(r)
		o := genOptions(r, n)
		o.Text = false
		if o.List.Method == "context" { // otherwise trees depend on earlier rounds
			o.List.Method = ""
		}
		d := newDrafter(r, o, n, m)
		var all []*drafttest.Sequence
		var params []draft.Options
		for id := range rapid.IntRange(1, 2).Draw(r, "sequences") {
			params = append(params, draft.Options{Sampling: drafttest.GenParams(r)})
			all = append(all, drafttest.Begin(r, d, params[id], id))
		}
		drafttest.Live(r, d, n.Hidden, rapid.IntRange(1, 4).Draw(r, "rounds"), all...)
		var got []draft.Request
		for _, s := range all {
			got = append(got, s.Request(40, 20, nil))
		}
		drafttest.Propose(r, d, got...)
		other := newDrafter(r, o, n, m)
		for id, s := range all {
			fresh := s.Fresh(r, other, params[id], n.Hidden)
			want := fresh.Request(40, 20, nil)
			drafttest.Propose(r, other, want)
			if err := drafttest.Same(got[id].Tree, want.Tree); err != nil {
				r.Fatalf("sequence %d of %d, %+v: %v", id, len(all), o, err)
			}
			fresh.Close()
			s.Close()
		}
	})
}

// Trees keep to the request: nodes, depth, and blocks, before each of which except the first the
// guide is asked.
func TestTreesKeepToTheRequest(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHead(r, m)
		o := genOptions(r, n)
		d := newDrafter(r, o, n, m)
		p := drafttest.GenParams(r)
		s := drafttest.Begin(r, d, draft.Options{Sampling: p}, 1)
		drafttest.Commit(r, d, s.Prompt(drafttest.GenText(r, 1, 40), n.Hidden, true))
		budget, depth := rapid.IntRange(2, 70).Draw(r, "budget"), rapid.IntRange(1, 20).Draw(r, "depth")
		free := s.Request(budget, depth, nil)
		drafttest.Propose(r, d, free)
		if err := free.Tree.Check(vocab); err != nil || free.Tree.Len() > min(budget, o.Nodes) ||
			free.Tree.Len() < 2 || free.Tree.MaxDepth() > depth || !o.Text &&
			free.Tree.MaxDepth() > o.Blocks*n.Block {
			r.Fatalf("%+v, budget %d, depth %d: %v, %v", o, budget, depth, free.Tree, err)
		}
		chances := make([]float32, free.Tree.Len()) // of all children together
		for i := 1; i < free.Tree.Len(); i++ {
			chances[free.Tree.Parent[i]] += exp(free.Tree.LogProb[i])
			if chances[free.Tree.Parent[i]] > 1.001 {
				r.Fatalf("%+v: chances of more than 1 below node %d: %v", o, free.Tree.Parent[i], free.Tree)
			}
		}
		g := &drafttest.Judge{Levels: rapid.IntRange(1, 5).Draw(r, "levels")}
		guided := s.Request(budget, depth, g)
		drafttest.Propose(r, d, guided)
		if !o.Text && guided.Tree.MaxDepth() > g.Levels*n.Block || g.Asked < 1 ||
			g.Asked > g.Levels+1 || g.Asked > o.Blocks {
			r.Fatalf("%+v: %d blocks pay, %d questions: %v", o, g.Levels, g.Asked, guided.Tree)
		}
		o.Blocks = min(o.Blocks, g.Levels)
		fewer := newDrafter(r, o, n, m)
		other := drafttest.Begin(r, fewer, draft.Options{Sampling: p}, 1)
		drafttest.Commit(r, fewer, other.Prompt(s.Text, n.Hidden, true))
		want := other.Request(budget, depth, nil)
		drafttest.Propose(r, fewer, want)
		// the guide believes the probabilities it is given
		if err := drafttest.Same(guided.Tree, want.Tree); err != nil && !o.Text {
			r.Fatal(err)
		}
	})
}

func TestResume(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHead(r, m)
		n.Config.Context = drafttest.GenWindow(r)
		o := genOptions(r, n)
		o.Text, o.List.Method = false, ""
		d, other := newDrafter(r, o, n, m), newDrafter(r, o, n, m)
		drafttest.Resumes(r, d, other, draft.Options{Sampling: drafttest.GenParams(r)}, n.Hidden, n.Config.Context)
	})
}

// uniform suits any head.
var uniform = specblock.Options{Blocks: 2, Widths: "4/4/4/4", Starts: 8, Nodes: 60}

// listed is the same over a shortlist.
var listed = specblock.Options{Blocks: 2, Widths: "4/4/4/4", Starts: 8, Nodes: 60,
	Modifiers: registry.Modifiers{List: shortlist.Options{Method: "context", Size: 16, Extra: 32}}}

// Without the taps of the token before the root there is nothing to draft from.
func TestNothingWithoutTaps(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	n := head(t, m, 1)
	d := newDrafter(t, uniform, n, m)
	s := drafttest.Begin(t, d, draft.Options{}, 1)
	drafttest.Commit(t, d, s.Prompt([]int32{4, 5, 6}, n.Hidden, false))
	q := s.Request(20, 20, nil)
	drafttest.Propose(t, d, q)
	if q.Tree.Len() != 1 {
		t.Errorf("proposed %v", q.Tree)
	}
	drafttest.Commit(t, d, s.Accept(q.Tree, 0, 9, n.Hidden))
	q = s.Request(20, 20, nil)
	drafttest.Propose(t, d, q)
	if q.Tree.Len() < 2 {
		t.Errorf("proposed nothing after a token with taps")
	}
}

// A cancelled proposal proposes nothing, and the next one is the same as without it.
func TestCancel(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	n := head(t, m, 3)
	d := newDrafter(t, uniform, n, m)
	s := drafttest.Begin(t, d, draft.Options{}, 1)
	drafttest.Commit(t, d, s.Prompt([]int32{4, 5, 6}, n.Hidden, true))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	q := s.Request(20, 20, nil)
	if _, err := d.Propose(ctx, []draft.Request{q}); !errors.Is(err, context.Canceled) || q.Tree.Len() != 1 {
		t.Errorf("%v, %v", err, q.Tree)
	}
	drafttest.Propose(t, d, q)
	again := s.Request(20, 20, nil)
	drafttest.Propose(t, d, again)
	if err := drafttest.Same(q.Tree, again.Tree); err != nil {
		t.Error(err)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	for seed := range uint64(2) {
		n := head(t, m, seed)
		for _, o := range []specblock.Options{uniform, listed, specblock.DefaultOptions, best} {
			if n.RankWidth == 0 {
				o.Widths = "3/3/3/3"
			}
			drafttest.SteadyState(t, fmt.Sprintf("head %d, %+v", seed, o), newDrafter(t, o, n, m), n.Hidden, 0,
				&drafttest.Judge{Levels: 1 << 20})
		}
	}
}

type still struct{ x, logits []float32 }

func (p *still) Logits(int, int) []float32   { return p.logits }
func (p *still) Tap(int, int, int) []float32 { return p.x }

func TestNewRefuses(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	n := head(t, m, 1)
	if _, err := registry.New("specblock", registry.Target{Vocab: vocab, Context: 400}); err == nil {
		t.Error("a target without layers has a head")
	}
	for _, change := range []func(o *specblock.Options, n *specblock.Network){
		func(o *specblock.Options, _ *specblock.Network) { o.Blocks = 0 },
		func(o *specblock.Options, _ *specblock.Network) { o.Starts = -1 },
		func(o *specblock.Options, _ *specblock.Network) { o.Nodes = 1 },
		func(o *specblock.Options, _ *specblock.Network) { o.Widths = "1/2/3" },
		func(o *specblock.Options, _ *specblock.Network) { o.Widths = "1/2/3/x" },
		func(o *specblock.Options, _ *specblock.Network) { o.Widths = "0/0/0/0" },
		func(o *specblock.Options, n *specblock.Network) { o.Widths, n.RankWidth = "2/4/10/0", 0 },
	} {
		o, wrong := uniform, *n
		change(&o, &wrong)
		if _, err := specblock.New(o, &wrong, drafttest.As(m)); err == nil {
			t.Errorf("%+v make a drafter", o)
		}
	}
}

func TestSameTokens(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	more := specblock.Options{Blocks: 3, Widths: "2/4/6/4", Starts: 4, Nodes: 24}
	var cases []drafttest.Case
	for i, n := range []*specblock.Network{head(t, m, 0), head(t, m, 2)} {
		for _, o := range []specblock.Options{specblock.DefaultOptions, best, more, uniform, listed} {
			if equal := o.Widths == uniform.Widths; n.RankWidth > 0 || equal || o.Text {
				cases = append(cases, drafttest.Case{
					Name:  fmt.Sprintf("head %d, %+v", i, o),
					New:   func() draft.Drafter { return newDrafter(t, o, n, m) },
					Finds: o.List.Method == "" && equal && n.DraftVocab == 0,
				})
			}
		}
	}
	drafttest.SameTokens(t, m, cases)
}
