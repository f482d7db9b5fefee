package peagle_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/peagle"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/testing/cases"
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
		d, other := newDrafter(r, o, n, m), newDrafter(r, o, n, m)
		var all []*Sequence
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
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHead(r, m)
		n.Config.Context = GenWindow(r)
		o := genOptions(r, n)
		Resumes(r, newDrafter(r, o, n, m), newDrafter(r, o, n, m), draft.Options{Sampling: GenParams(r)}, n.Hidden,
			n.Config.Context)
	})
}

// Trees keep to the request, to the levels that pay, and to the draft vocabulary.
func TestTreesKeepToTheRequest(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
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
			return // the text may continue the tree with any token
		}
		if deepest := q.Tree.MaxDepth(); deepest > n.Depths || o.Depth > 0 && deepest > o.Depth || q.Guide != nil &&
			deepest > g.Levels {
			r.Fatalf("%+v, %d levels pay: %v", o, g.Levels, q.Tree)
		}
		for _, token := range q.Tree.Token[1:] {
			if n.Base.Tokens != nil && !slices.Contains(n.Base.Tokens, token) {
				r.Fatalf("token %d is not of the draft vocabulary", token)
			}
		}
	})
}

// Nothing is drafted before the target has reported anything, and the first token of a text is
// enough.
func TestNothingIsDraftedBlindly(t *testing.T) {
	m := OpenTarget(t, 400)
	n := head(t, m, 1)
	d := newDrafter(t, peagle.Options{Tree: onepass.Chain}, n, m)
	s := Begin(t, d, draft.Options{}, 1)
	defer s.Close()
	for i, rows := range []func() draft.Rows{
		func() draft.Rows { return draft.Rows{State: s.State} },
		func() draft.Rows { return s.Prompt([]int32{5, 6}, n.Hidden, false) },
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

func TestSteadyStateAllocatesNothing(t *testing.T) {
	m := OpenTarget(t, 4000)
	for seed := range uint64(4) {
		n := head(t, m, seed)
		for _, o := range []peagle.Options{{Tree: onepass.DDTree},
			{Tree: onepass.DDTree, Modifiers: registry.Modifiers{Text: true}}} {
			SteadyState(t, fmt.Sprintf("head %d, %+v", seed, o), newDrafter(t, o, n, m), n.Hidden, float32(seed%2), nil)
		}
	}
}

func TestByText(t *testing.T) {
	m := OpenTarget(t, 400)
	for seed := range uint64(4) {
		n := head(t, m, seed)
		ByText(t, n.Hidden, func() draft.Drafter {
			return newDrafter(t, peagle.Options{Tree: onepass.DDTree, Modifiers: registry.Modifiers{Text: true}}, n, m)
		})
	}
}

func TestSameTokens(t *testing.T) {
	m := OpenTarget(t, 512)
	kinds := map[[2]bool]*peagle.Network{}
	for seed := uint64(0); len(kinds) < 4; seed++ {
		n := head(t, m, seed)
		kinds[[2]bool{n.Masks > 0, n.Base.Tokens != nil}] = n
	}
	var cases []Case
	for _, n := range kinds {
		for _, o := range []peagle.Options{{Tree: onepass.DDTree}, {Tree: onepass.Chain},
			{Tree: onepass.DDTree, Modifiers: registry.Modifiers{Text: true}}} {
			cases = append(cases, Case{
				Name:  fmt.Sprintf("%s, %d tokens, %+v", n.Describe(false), n.DraftVocab, o),
				New:   func() draft.Drafter { return newDrafter(t, o, n, m) },
				Finds: n.Base.Tokens == nil && o.Tree == onepass.DDTree,
			})
		}
	}
	SameTokens(t, m, cases)
}
