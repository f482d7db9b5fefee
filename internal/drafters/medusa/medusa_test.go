package medusa_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/medusa"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// A sequence's proposals do not depend on how its text came about, to the bit: on chunks of the
// prompt, on how many nodes each round accepts, on proposals in between, on other sequences, or on
// rows that came without a pass.
func TestProposalsAreTheTexts(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHeads(r, m)
		o := genOptions(r, n)
		d, other := newDrafter(r, o, n, m), newDrafter(r, o, n, m)
		var all []*Sequence
		var params []draft.Options
		for id := range rapid.IntRange(1, 3).Draw(r, "sequences") {
			params = append(params, draft.Options{Sampling: GenParams(r)})
			all = append(all, Begin(r, d, params[id], id))
		}
		Live(r, d, n.Hidden, rapid.IntRange(1, 6).Draw(r, "rounds"), all...)
		var got []draft.Request
		for _, s := range all {
			got = append(got, s.Request(40, 20, nil))
		}
		Propose(r, d, got...)
		for id, s := range all {
			fresh := s.Fresh(r, other, params[id], n.Hidden)
			want := fresh.Request(40, 20, nil)
			Propose(r, other, want)
			if err := Same(got[id].Tree, want.Tree); err != nil {
				r.Fatalf("sequence %d of %d, %+v: %v", id, len(all), o, err)
			}
			if known := len(s.Text) > s.Start; known == (got[id].Tree.Len() == 1) {
				r.Fatalf("sequence %d, %+v: the last row is known: %v; proposed %v", id, o, known, got[id].Tree)
			}
			fresh.Close()
			s.Close()
		}
	})
}

func TestResume(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHeads(r, m)
		o := genOptions(r, n)
		Resumes(r, newDrafter(r, o, n, m), newDrafter(r, o, n, m), draft.Options{Sampling: GenParams(r)}, n.Hidden,
			window)
	})
}

// Trees keep to the request. With a guide they end where it says that another head does not pay,
// and equal those of as many heads.
func TestTreesKeepToTheRequest(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHeads(r, m)
		o := genOptions(r, n)
		if rapid.Bool().Draw(r, "with text") {
			o = medusa.Options{Tree: withText, Depth: o.Depth}
		}
		d := newDrafter(r, o, n, m)
		s := Begin(r, d, draft.Options{Sampling: GenParams(r)}, 1)
		Commit(r, d, s.Prompt(GenText(r, 1, 40), n.Hidden, true))
		budget, depth := rapid.IntRange(2, 40).Draw(r, "budget"), rapid.IntRange(1, 20).Draw(r, "depth")
		g := &Judge{Levels: rapid.IntRange(1, 20).Draw(r, "levels")}
		for _, q := range []draft.Request{s.Request(budget, depth, nil), s.Request(budget, depth, g)} {
			Propose(r, d, q)
			most := n.Depths
			if o.Depth > 0 {
				most = o.Depth
			}
			if q.Guide != nil {
				most = min(most, g.Levels)
			}
			if err := q.Tree.Check(Vocab); err != nil || q.Tree.Len() > budget || q.Tree.Len() < 2 ||
				q.Tree.MaxDepth() > depth {
				r.Fatalf("budget %d, depth %d: %v, %v", budget, depth, q.Tree, err)
			}
			if o.Tree != withText && q.Tree.MaxDepth() > most {
				r.Fatalf("%+v: depth %d of %d that pay", o, q.Tree.MaxDepth(), most)
			}
		}
	})
}

// oracle computes a head's logits for the state after the target's last norm, row by row, in
// float64.
func oracle(n *medusa.Network, m *model.Model, head int, tap []float32) []float64 {
	e := nn.NewExec(m.Pool())
	x, normed := nn.NewMat(1, n.Hidden), nn.NewMat(1, n.Hidden)
	copy(x.Row(0), tap)
	e.Normalise(&m.Norm, x, normed)
	y := widen(normed.Row(0))
	for j := range n.Residual[head] {
		l := &n.Residual[head][j]
		z := product(l, y)
		for i := range y {
			y[i] += z[i] * sigmoid(z[i])
		}
	}
	return product(n.Matrix(head), y)
}

// The proposed chain is what a target with the heads' logits would choose: with the same
// processors, the same noise at the same positions, and head i for the token i+2 places after the
// row that the heads read.
func TestChainTakesTheNoise(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := heads(r, m, rapid.SampledFrom(exact(t, m)).Draw(r, "heads"))
		p := GenParams(r)
		d := newDrafter(r, medusa.Options{Tree: medusa.Chain}, n, m)
		s := Begin(r, d, draft.Options{Sampling: p}, 1)
		Commit(r, d, s.Prompt(GenText(r, 1, 60), n.Hidden, true))
		q := s.Request(100, 100, nil)
		Propose(r, d, q)
		sampler := Must(sample.New(p, Vocab))(r)
		h := sample.NewHistory(&p)
		for _, token := range append(slices.Clone(s.Text), s.Root) {
			h.Push(token)
		}
		if q.Tree.MaxDepth() != n.Depths {
			r.Fatalf("a chain of depth %d from %d heads", q.Tree.MaxDepth(), n.Depths)
		}
		pass := Pass{Text: 1, At: len(s.Text) - 1, Hidden: n.Hidden, Tree: tree.New(0)}
		for head := range n.Depths {
			logits := make([]float32, Vocab)
			for i := range logits {
				logits[i] = negInf
			}
			for i, v := range oracle(n, m, head, pass.Tap(0, 0, 0)) {
				token := int32(i)
				if n.Tokens != nil {
					token = n.Tokens[i]
				}
				logits[token] = float32(v)
			}
			if want := sampler.Sample(logits, len(s.Text)+1+head, h); q.Tree.Token[1+head] != want {
				r.Fatalf("%+v: token %d of the chain is %d, want %d", p, head, q.Tree.Token[1+head], want)
			}
		}
	})
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	m := OpenTarget(t, 400)
	for seed := uint64(7); seed < 13; seed++ {
		n := heads(t, m, seed)
		for _, name := range []string{medusa.Static, medusa.BestFirst, medusa.Chain, withText} {
			d := newDrafter(t, medusa.Options{Tree: name}, n, m)
			SteadyState(t, fmt.Sprintf("heads %d, %s", seed, name), d, n.Hidden, 0, &Judge{Levels: 1 << 20})
		}
	}
}

func TestByText(t *testing.T) {
	m := OpenTarget(t, 400)
	for seed := range uint64(4) {
		n := heads(t, m, seed)
		ByText(t, n.Hidden, func() draft.Drafter { return newDrafter(t, medusa.Options{Tree: withText}, n, m) })
	}
}

func TestNewRefuses(t *testing.T) {
	m := OpenTarget(t, 400)
	n := heads(t, m, 1)
	if _, err := registry.New("medusa", registry.Target{Vocab: Vocab, Context: 400}); err == nil {
		t.Error("a target without layers has heads")
	}
	for _, o := range []medusa.Options{
		{Tree: "oak"}, {Tree: medusa.Static, Depth: n.Depths + 1}, {Tree: medusa.Static, Depth: -1},
		{Tree: medusa.BestFirst, Width: -1},
		{Tree: medusa.Static, Width: 3},
	} {
		if _, err := medusa.New(o, n, As(m)); err == nil {
			t.Errorf("%+v make a drafter", o)
		}
	}
}

func TestSameTokens(t *testing.T) {
	m := OpenTarget(t, 512)
	kinds := map[bool]*medusa.Network{}
	for seed := uint64(0); len(kinds) < 2; seed++ {
		if n := heads(t, m, seed); n.Output() == n.Vocab && n.Depths > 1 {
			kinds[n.OwnOutputs] = n
		}
	}
	var cases []Case
	for own, n := range kinds {
		for _, o := range []medusa.Options{
			{Tree: withText}, {Tree: medusa.Static}, {Tree: medusa.Paper}, {Tree: medusa.BestFirst, Width: 4},
			{Tree: medusa.Chain},
			{Tree: medusa.Paper, Modifiers: registry.Modifiers{Text: true,
				List: shortlist.Options{Method: "freq-pa", Size: 200}}},
			{Tree: medusa.BestFirst, Modifiers: registry.Modifiers{List: shortlist.Options{Method: "context", Size: 64,
				Extra: 32}}},
		} {
			cases = append(cases, Case{
				Name:  fmt.Sprintf("%+v, own outputs %v", o, own),
				New:   func() draft.Drafter { return newDrafter(t, o, n, m) },
				Finds: o.List.Method == "",
			})
		}
	}
	SameTokens(t, m, cases)
}
