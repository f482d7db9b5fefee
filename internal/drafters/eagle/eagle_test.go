package eagle_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
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
		n, shape := genHead(r, m), genShape(r)
		n.Config.Context = GenWindow(r)
		lists := genLists(r, n)
		d, other := newDrafter(r, n, shape, lists, m), newDrafter(r, n, shape, lists, m)
		var all []*Sequence
		var options []draft.Options
		for id := range rapid.IntRange(1, 3).Draw(r, "sequences") {
			options = append(options, draft.Options{Sampling: GenParams(r),
				Sampled: rapid.IntRange(0, 3).Draw(r, "drawn") == 0, Seed: 3})
			all = append(all, Begin(r, d, options[id], id))
		}
		Live(r, d, n.Hidden, rapid.IntRange(1, 6).Draw(r, "rounds"), all...)
		var got []draft.Request
		for _, s := range all {
			got = append(got, s.Request(40, 20, nil))
		}
		Propose(r, d, got...)
		for i, s := range all {
			if lists.Method == "context" { // its lists depend on what the target nearly chose
				break
			}
			fresh := s.Fresh(r, other, options[i], n.Hidden)
			want := fresh.Request(40, 20, nil)
			Propose(r, other, want)
			if err := Same(got[i].Tree, want.Tree); err != nil {
				r.Fatalf("sequence %d of %d, version %d, %+v: %v", i, len(all), n.Version, shape, err)
			}
			fresh.Close()
			s.Close()
		}
	})
}

func TestResume(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n, shape := genHead(r, m), genShape(r)
		n.Config.Context = GenWindow(r)
		d, other := newDrafter(r, n, shape, shortlist.Options{}, m), newDrafter(r, n, shape, shortlist.Options{}, m)
		Resumes(r, d, other, draft.Options{Sampling: GenParams(r)}, n.Hidden, n.Config.Context)
	})
}

// A node's probability is what the head says when computed in the plainest way: its text entry by
// entry, then the path token by token, where each row's feature is the state of the row before, in
// passes of one row over a separate cache.
func TestNodesAreTheHeads(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n, shape := genHead(r, m), genShape(r)
		d := newDrafter(r, n, shape, shortlist.Options{}, m)
		s := Begin(r, d, draft.Options{}, 1)
		defer s.Close()
		Commit(r, d, s.Prompt(GenText(r, 1, 40), n.Hidden, true))
		q := s.Request(30, 9, nil)
		Propose(r, d, q)
		sampler := Must(sample.New(sample.Params{}, Vocab))(r)
		one := newOneByOne(n, s, len(s.Text), nn.NewExec(m.Pool()))
		defer one.cache.Free()
		var below func(node int, g []float32)
		below = func(node int, g []float32) {
			children := q.Tree.Children(node, nil)
			if len(children) == 0 {
				return
			}
			state, logits := one.row(q.Tree.Token[node], g)
			c := sampler.TopOf(make([]sample.Candidate, 0, max(len(children), 8)), logits, one.tokens, math.Inf(-1),
				len(s.Text)+int(q.Tree.Depth[node])+1, nil)
			for i, child := range children {
				if c[i].Token != q.Tree.Token[child] || c[i].LogProb != q.Tree.LogProb[child] {
					r.Fatalf("version %d, %+v: child %d of node %d is %d, %g: want %d, %g", n.Version, shape, i, node,
						q.Tree.Token[child], q.Tree.LogProb[child], c[i].Token, c[i].LogProb)
				}
				below(int(child), state)
			}
			if err := one.cache.Truncate(one.cache.Len() - 1); err != nil {
				r.Fatal(err)
			}
		}
		below(0, one.g(len(s.Text)-1))
	})
}

// oneByOne computes a head's rows, each in its own pass.
type oneByOne struct {
	n      *eagle.Network
	e      *nn.Exec
	cache  *nn.Cache
	pass   Pass
	tokens []int32
	bufs   eagle.Buffers
}

// newOneByOne reads the first read tokens of a sequence's text.
func newOneByOne(n *eagle.Network, s *Sequence, read int, e *nn.Exec) *oneByOne {
	pages := n.Pages()
	o := &oneByOne{n: n, e: e, cache: pages.NewCache(), tokens: n.Tokens,
		pass: Pass{Text: s.ID, Hidden: n.Hidden, Tree: tree.Chain(s.Text)}}
	if o.tokens == nil {
		for i := range int32(n.Vocab) {
			o.tokens = append(o.tokens, i)
		}
	}
	for at := 1; at < read; at++ {
		o.row(s.Text[at], o.g(at-1))
	}
	return o
}

// g returns the feature of a place.
func (o *oneByOne) g(at int) []float32 {
	taps, g := nn.NewMat(1, o.n.Width()), nn.NewMat(1, o.n.Hidden)
	for t := range o.n.Taps {
		copy(taps.Data[t*o.n.Hidden:], o.pass.Tap(t, 0, at))
	}
	o.n.Features(o.e, taps, g, &o.bufs)
	return g.Data
}

// row appends a row to the cache.
func (o *oneByOne) row(token int32, g []float32) (state, logits []float32) {
	in := nn.NewMat(1, o.n.Hidden)
	x := nn.NewMat(1, o.n.Hidden)
	out := nn.NewMat(1, o.n.DraftVocab)
	copy(in.Data, g)
	var f nn.Forest
	f.Add(o.cache, tree.New(token), 0)
	o.cache.Reserve(0, 1)
	o.n.Run(o.e, &f, []int32{token}, in, x, &o.bufs)
	o.cache.CommitAll()
	o.e.Linear(o.n.Output(x), nn.Proj{Linear: &o.n.Head, Dst: out})
	return x.Data, out.Data
}

// Trees keep to the request, and to the limits of the shape and the guide.
func TestTreesKeepToTheRequest(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHead(r, m)
		d := newDrafter(r, n, genShape(r), genLists(r, n), m)
		s := Begin(r, d, draft.Options{Sampling: GenParams(r)}, 1)
		defer s.Close()
		Commit(r, d, s.Prompt(GenText(r, 1, 40), n.Hidden, true))
		g := &Judge{Levels: rapid.IntRange(1, 10).Draw(r, "levels")}
		q := s.Request(rapid.IntRange(1, 40).Draw(r, "budget"), rapid.IntRange(0, 12).Draw(r, "depth"), nil)
		if rapid.Bool().Draw(r, "guided") {
			q.Guide = g
		}
		Propose(r, d, q)
		if err := q.Tree.Check(Vocab); err != nil || q.Tree.Len() > max(q.Budget, 1) || q.Tree.MaxDepth() > q.Depth ||
			q.Guide != nil && q.Tree.MaxDepth() > g.Levels {
			r.Fatalf("budget %d, depth %d, %d levels: %v, %v", q.Budget, q.Depth, g.Levels, q.Tree, err)
		}
		if n.Tokens != nil {
			in := map[int32]bool{}
			for _, token := range n.Tokens {
				in[token] = true
			}
			for _, token := range q.Tree.Token[1:] {
				if !in[token] {
					r.Fatalf("token %d is not of the draft vocabulary", token)
				}
			}
		}
	})
}

// Nothing is drafted before the target has reported anything, and the first token of a text is
// enough.
func TestNothingIsDraftedBlindly(t *testing.T) {
	m := OpenTarget(t, 400)
	n := head(t, m, 3, 1)
	d := newDrafter(t, n, &grow.Linear{K: 3}, shortlist.Options{}, m)
	s := Begin(t, d, draft.Options{}, 1)
	defer s.Close()
	for i, rows := range []func() draft.Rows{
		func() draft.Rows { return draft.Rows{State: s.State} },
		func() draft.Rows { return s.Prompt([]int32{5, 6}, n.Hidden, false) },
		func() draft.Rows { return s.Prompt([]int32{7}, n.Hidden, true) },
	} {
		q := s.Request(9, 9, nil)
		Propose(t, d, q)
		if q.Tree.Len() != 1 {
			t.Errorf("%d nodes are drafted of nothing, after %d commits", q.Tree.Len(), i)
		}
		Commit(t, d, rows())
	}
	q := s.Request(9, 9, nil)
	Propose(t, d, q)
	if q.Tree.Len() != 4 {
		t.Errorf("%d nodes are drafted after one token", q.Tree.Len())
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	m := OpenTarget(t, 4000)
	best := grow.DefaultBestFirst()
	for _, version := range []int{2, 3, eagle.Native} {
		n := head(t, m, version, 1)
		for _, method := range []string{"", "freq"} {
			for _, temperature := range []float32{0, 1} {
				d := newDrafter(t, n, withText{&best}, shortlist.Options{Method: method}, m)
				SteadyState(t, fmt.Sprintf("EAGLE-%d %s %g", version, method, temperature), d, n.Hidden, temperature,
					nil)
			}
		}
	}
}

// fixedTaps is a pass with the same results for all rows.
type fixedTaps struct{ tap, logits []float32 }

func (p fixedTaps) Tap(int, int, int) []float32 { return p.tap }
func (p fixedTaps) Logits(int, int) []float32   { return p.logits }

func TestSameTokens(t *testing.T) {
	m := OpenTarget(t, 512)
	heads := []*eagle.Network{head(t, m, 2, 1)}
	for seed := uint64(0); len(heads) < 3; seed++ { // one with all tokens, and one with some
		if n := head(t, m, 3, seed); (n.Tokens != nil) == (len(heads) == 2) {
			heads = append(heads, n)
		}
	}
	dynamic := grow.DefaultDynamic()
	best := grow.DefaultBestFirst()
	tree := grow.DefaultDynaTree()
	var cases []Case
	for _, n := range heads {
		for i, shape := range []grow.Shape{&dynamic, withText{&best}, withText{&tree}, &best, &grow.Linear{K: 5},
			&grow.Dynamic{K: 3, Depth: 4, N: 20}} {
			lists := shortlist.Options{}
			if i%2 == 1 {
				lists = shortlist.Options{Method: []string{"freq-pa", "context"}[i/2%2], Size: min(64, n.DraftVocab),
					Extra: min(32, n.DraftVocab)}
			}
			cases = append(cases, Case{
				Name:  fmt.Sprintf("EAGLE-%d, %d tokens, %T %+v", n.Version, n.DraftVocab, shape, lists),
				New:   func() draft.Drafter { return newDrafter(t, n, shape, lists, m) },
				Finds: n.Tokens == nil && i == 0,
			})
		}
	}
	SameTokens(t, m, cases)
}
