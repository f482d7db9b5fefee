package peagle_test

import (
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/peagle"
	. "github.com/grovellm/grove/internal/drafttest"
	"github.com/grovellm/grove/internal/onepass"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/speculate"
	"pgregory.net/rapid"
)

// What a sequence is proposed does not depend on how its context came about, to the bit: in chunks
// of a prompt or at once, by rounds that accept any number of nodes, with or without proposals
// between them, among other sequences or alone; and from where rows came without a pass, on nothing
// before them but their number. The head's window may be shorter than the text.
func TestContextIsItsText(t *testing.T) {
	m := OpenTarget(t, 400)
	rapid.Check(t, func(r *rapid.T) {
		n := genHead(r, m)
		n.Config.Context = GenWindow(r)
		o := genOptions(r, n)
		d, other := newDrafter(r, o, n, m), newDrafter(r, o, n, m)
		var all []*Told
		var options []draft.Options
		for id := range rapid.IntRange(1, 3).Draw(r, "sequences") {
			options = append(options, draft.Options{Sampling: GenParams(r)})
			all = append(all, Begin(r, d, options[id], id))
		}
		Live(r, d, n.Hidden, rapid.IntRange(1, 6).Draw(r, "rounds"), all...)
		var got []draft.Request
		for _, s := range all {
			got = append(got, s.Request(40, 20, nil))
		}
		Propose(r, d, got...)
		for i, s := range all {
			fresh := s.Fresh(r, other, options[i], n.Hidden)
			want := fresh.Request(40, 20, nil)
			Propose(r, other, want)
			if err := Same(got[i].Tree, want.Tree); err != nil {
				r.Fatalf("sequence %d of %d, %+v: %v", i, len(all), o, err)
			}
			fresh.Close()
			s.Close()
		}
	})
}

func TestResume(t *testing.T) {
	m := OpenTarget(t, 400)
	rapid.Check(t, func(r *rapid.T) {
		n := genHead(r, m)
		n.Config.Context = GenWindow(r)
		o := genOptions(r, n)
		Resumes(r, newDrafter(r, o, n, m), newDrafter(r, o, n, m), draft.Options{Sampling: GenParams(r)}, n.Hidden, n.Config.Context)
	})
}

// Trees keep to what was asked for, to the levels that pay, and to the draft vocabulary.
func TestTreesKeepToTheRequest(t *testing.T) {
	m := OpenTarget(t, 400)
	rapid.Check(t, func(r *rapid.T) {
		n := genHead(r, m)
		o := genOptions(r, n)
		o.Text = rapid.IntRange(0, 3).Draw(r, "with text") == 0
		d := newDrafter(r, o, n, m)
		s := Begin(r, d, draft.Options{Sampling: GenParams(r)}, 1)
		defer s.Close()
		Commit(r, d, s.Prompt(GenText(r, 1, 40), n.Hidden, true))
		g := &Judge{Levels: rapid.IntRange(1, 10).Draw(r, "levels")}
		q := s.Request(rapid.IntRange(1, 40).Draw(r, "budget"), rapid.IntRange(0, 12).Draw(r, "depth"), nil)
		if rapid.Bool().Draw(r, "guided") {
			q.Guide = g
		}
		Propose(r, d, q)
		if err := q.Tree.Check(Vocab); err != nil || q.Tree.Len() > max(q.Budget, 1) || q.Tree.MaxDepth() > q.Depth {
			r.Fatalf("budget %d, depth %d: %v, %v", q.Budget, q.Depth, q.Tree, err)
		}
		if o.Text {
			return // the text may go on, with any token
		}
		if deepest := q.Tree.MaxDepth(); deepest > n.Depths || o.Depth > 0 && deepest > o.Depth || q.Guide != nil && deepest > g.Levels {
			r.Fatalf("%+v, %d levels pay: %v", o, g.Levels, q.Tree)
		}
		for _, token := range q.Tree.Token[1:] {
			if n.Base.Tokens != nil && !slices.Contains(n.Base.Tokens, token) {
				r.Fatalf("token %d is not of the draft vocabulary", token)
			}
		}
	})
}

// Nothing is drafted before the target has told anything, and once it has the first token of a text
// is enough.
func TestNothingIsDraftedBlindly(t *testing.T) {
	m := OpenTarget(t, 400)
	n := head(t, m, 1)
	d := newDrafter(t, peagle.Options{Tree: onepass.Chain}, n, m)
	s := Begin(t, d, draft.Options{}, 1)
	defer s.Close()
	for i, rows := range []func() draft.Rows{
		func() draft.Rows { return draft.Rows{State: s.State} }, func() draft.Rows { return s.Prompt([]int32{5, 6}, n.Hidden, false) },
		func() draft.Rows { return s.Prompt([]int32{7}, n.Hidden, true) },
	} {
		q := s.Request(30, 30, nil)
		Propose(t, d, q)
		if q.Tree.Len() != 1 {
			t.Errorf("%d nodes are drafted of nothing, after %d commits", q.Tree.Len(), i)
		}
		Commit(t, d, rows())
	}
	q := s.Request(30, 30, nil)
	Propose(t, d, q)
	if q.Tree.Len() != 1+n.Depths {
		t.Errorf("%d nodes are drafted after one token, in %d depths", q.Tree.Len(), n.Depths)
	}
}

// Once buffers have grown a round allocates nothing.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	m := OpenTarget(t, 4000)
	for seed := range uint64(4) {
		n := head(t, m, seed)
		for _, o := range []peagle.Options{{Tree: onepass.DDTree}, {Tree: onepass.DDTree, Modifiers: draft.Modifiers{Text: true}}} {
			d := newDrafter(t, o, n, m)
			s := Begin(t, d, draft.Options{Sampling: sample.Params{Temperature: float32(seed % 2)}}, 1)
			Commit(t, d, s.Prompt(make([]int32, 50), n.Hidden, true))
			requests := []draft.Request{s.Request(30, 20, nil)}
			rows := []draft.Rows{{State: s.State, Nodes: []int32{0, 1}, Tokens: make([]int32, 2), Next: 1, Tree: requests[0].Tree}}
			rows[0].Pass = fixedTaps{make([]float32, n.Hidden), make([]float32, Vocab)}
			round := func() {
				tr := requests[0].Tree
				tr.Reset(1)
				if _, err := d.Propose(t.Context(), requests); err != nil {
					t.Fatal(err)
				}
				copy(rows[0].Tokens, tr.Token[:2])
				if err := d.Commit(rows); err != nil {
					t.Fatal(err)
				}
			}
			for range 100 {
				round()
			}
			if got := testing.AllocsPerRun(40, round); got > 0.5 { // pages of the cache grow with the text
				t.Errorf("head %d, %+v: %g allocations a round", seed, o, got)
			}
			s.Close()
		}
	}
}

// fixedTaps is a pass that gives the same for all rows.
type fixedTaps struct{ tap, logits []float32 }

func (p fixedTaps) Tap(int, int, int) []float32 { return p.tap }
func (p fixedTaps) Logits(int, int) []float32   { return p.logits }

func TestByText(t *testing.T) {
	m := OpenTarget(t, 400)
	for seed := range uint64(4) {
		n := head(t, m, seed)
		ByText(t, n.Hidden, func() draft.Drafter {
			return newDrafter(t, peagle.Options{Tree: onepass.DDTree, Modifiers: draft.Modifiers{Text: true}}, n, m)
		})
	}
}

// Law 2 in a loop: a batch decodes to the tokens of each text alone and plainly, with heads of
// either method and vocabulary, under a controller and without one, whether heads are right or
// wrong. They are right where a bias leaves the choice to the noise.
func TestSameTokens(t *testing.T) {
	m := OpenTarget(t, 512)
	prompts := [][]int32{{1, 2, 3}, make([]int32, 70), {9}, {400, 401, 402, 403}}
	choice := map[int32]float32{7: 60, 8: 60, 9: 60}
	var heads []*peagle.Network
	for kinds, seed := map[[2]bool]bool{}, uint64(0); len(kinds) < 4; seed++ {
		n := head(t, m, seed)
		if kind := [2]bool{n.Masks > 0, n.Base.Tokens != nil}; !kinds[kind] {
			kinds[kind] = true
			heads = append(heads, n)
		}
	}
	for _, p := range []sample.Params{
		{}, {Temperature: 1, Seed: 4, LogitBias: choice},
		{Temperature: .8, TopP: .9, TopK: 60, RepetitionPenalty: 1.2, PenaltyLast: 20, Seed: 5, LogitBias: choice},
	} {
		var want [][]int32
		for _, prompt := range prompts {
			out, _ := Generate(t, m, nil, speculate.Options{}, p, [][]int32{prompt})
			want = append(want, out[0])
		}
		for _, n := range heads {
			for _, o := range []peagle.Options{{Tree: onepass.DDTree}, {Tree: onepass.Chain}, {Tree: onepass.DDTree, Modifiers: draft.Modifiers{Text: true}}} {
				for _, free := range []bool{false, true} {
					d := newDrafter(t, o, n, m)
					out, stats := Generate(t, m, d, speculate.Options{Budget: 24, Chunk: 33, Uncontrolled: free}, p, prompts)
					for text := range want {
						if !slices.Equal(out[text], want[text]) {
							t.Errorf("%s, %d tokens, %+v, %+v, uncontrolled %v, text %d: %v, want %v", n.Describe(false), n.DraftVocab, o, p, free, text, out[text], want[text])
						}
					}
					if free && p.Temperature == 1 && n.Base.Tokens == nil && o.Tree == onepass.DDTree && stats.Tau() < 1.15 {
						t.Errorf("%s: τ is %.2f where the noise decides between three tokens", n.Describe(false), stats.Tau())
					}
				}
			}
		}
	}
}
