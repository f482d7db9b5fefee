package falcon_test

import (
	"fmt"
	"math"
	"testing"

	"math/rand/v2"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/falcon"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
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
				r.Fatalf("sequence %d of %d, blocks of %d, %+v: %v", i, len(all), n.Block, shape, err)
			}
			fresh.Close()
			s.Close()
		}
	})
}

// Another sequence takes over whole blocks. A recurrent head shares nothing: the LSTM's state is
// not in the cache.
func TestResume(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n, shape := genHead(r, m), genShape(r)
		n.Config.Context = GenWindow(r)
		d, other := newDrafter(r, n, shape, shortlist.Options{}, m), newDrafter(r, n, shape, shortlist.Options{}, m)
		o, window := draft.Options{Sampling: GenParams(r)}, max(n.Config.Context, n.Block)
		if !n.Recurrent {
			ResumesBlocks(r, d, other, o, n.Hidden, window, n.Block)
			return
		}
		text := GenText(r, 1, 200)
		a, b := Begin(r, d, o, 1), Begin(r, d, o, 1)
		Commit(r, d, a.Prompt(text, n.Hidden, true))
		first := d.Resume(b.State, len(text), a.State, len(text))
		if want := max(len(text)-min(window, sequence.Recall), 0); first != want {
			r.Fatalf("of %d rows those from %d on are computed again, want %d", len(text), first, want)
		}
		if first > 0 {
			Commit(r, d, b.Prompt(text[:first], n.Hidden, false))
		}
		Commit(r, d, b.Prompt(text[first:], n.Hidden, true))
		got, twin := b.Request(40, 20, nil), b.Fresh(r, other, o, n.Hidden)
		Propose(r, d, got)
		want := twin.Request(40, 20, nil)
		Propose(r, other, want)
		if err := Same(got.Tree, want.Tree); err != nil {
			r.Fatal(err)
		}
		for _, s := range []*Sequence{a, b, twin} {
			s.Close()
		}
	})
}

// A node's probability is what the definition of the head says: over the rows of the text, and
// below them over blocks of the path, each with the states of the previous block as features.
func TestNodesAreTheHeads(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		seed := rapid.Uint64Range(0, 60).Draw(r, "head")
		c := synthetic.Config[falcon.Config](rand.New(rand.NewPCG(seed, 2)), "falcon", m.Config, tensor.F32)
		n, shape := Must(falcon.NewNetwork(c, synthetic.Head(&c, tensor.F32, seed), nil, &m.Network))(r), genShape(r)
		d := newDrafter(r, n, shape, shortlist.Options{}, m)
		s := Begin(r, d, draft.Options{}, 1)
		defer s.Close()
		Commit(r, d, s.Prompt(GenText(r, 1, 24), n.Hidden, true))
		q := s.Request(16, 9, nil)
		Propose(r, d, q)
		o := oracle{n}
		if len(s.Text) < n.Block {
			if q.Tree.Len() > 1 {
				r.Fatalf("%d nodes are drafted of %d tokens by blocks of %d", q.Tree.Len(), len(s.Text), n.Block)
			}
			return
		}
		// below checks the children of a node at a slot of the block that ends with row last.
		var below func(node, slot int, lines []line, states [][]float64, last int)
		below = func(node, slot int, lines []line, states [][]float64, last int) {
			children := q.Tree.Children(node, nil)
			if len(children) == 0 {
				return
			}
			if slot == n.Block {
				path := q.Tree.Path(node, nil)
				var tokens []int32
				for _, i := range path[len(path)-n.Block:] {
					tokens = append(tokens, q.Tree.Token[i])
				}
				lines = o.block(lines, last, tokens, states)
				states = o.states(lines)
				last = len(lines) - 1
				slot = 0
			}
			logs := o.logs(states[last-n.Block+1+slot])
			least := 0.0
			for _, child := range children {
				p := logs[q.Tree.Token[child]]
				if math.Abs(p-float64(q.Tree.LogProb[child])) > 1e-4*max(1, math.Abs(p)) {
					r.Fatalf("blocks of %d, recurrent %v, %+v: node %d has log-probability %g, want %g", n.Block,
						n.Recurrent, shape, child, q.Tree.LogProb[child], p)
				}
				least = min(least, p)
				below(int(child), slot+1, lines, states, last)
			}
			for token, p := range logs {
				if p > least+1e-3 && q.Tree.Child(node, int32(token)) < 0 {
					r.Fatalf("token %d, of log-probability %g, is no child of node %d; one of %g is", token, p, node,
						least)
				}
			}
		}
		lines := o.text(s)
		below(0, 0, lines, o.states(lines), len(lines)-1)
	})
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
			q.Guide != nil && q.Tree.MaxDepth() > g.Levels*n.Block {
			r.Fatalf("budget %d, depth %d, %d levels: %v, %v", q.Budget, q.Depth, g.Levels, q.Tree, err)
		}
	})
}

// Nodes of one level of a block share their logits: a method that ranks them side by side, and
// temporarily adds a bias to the logits, proposes the same every time.
func TestSharedLogits(t *testing.T) {
	m := OpenTarget(t, 400)
	n := head(t, m, 2, func(c *falcon.Config) { c.Block, c.Recurrent = 3, false })
	d := newDrafter(t, n, &grow.Dynamic{K: 8, Depth: 5, N: 60}, shortlist.Options{}, m)
	p := sample.Params{LogitBias: map[int32]float32{3: 30, 77: 30.5, 400: 31}}
	var first draft.Request
	for i := range 300 {
		s := Begin(t, d, draft.Options{Sampling: p}, 1)
		Commit(t, d, s.Prompt([]int32{5, 9, 77, 3, 200, 11, 4}, n.Hidden, true))
		q := s.Request(60, 12, nil)
		Propose(t, d, q)
		if i == 0 {
			first = q
		} else if err := Same(first.Tree, q.Tree); err != nil {
			t.Fatalf("proposal %d: %v", i, err)
		}
		s.Close()
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	m := OpenTarget(t, 4000)
	best := grow.DefaultBestFirst()
	for _, recurs := range []bool{false, true} {
		n := head(t, m, 1, func(c *falcon.Config) { c.Block, c.Recurrent = 2, recurs })
		for _, method := range []string{"", "freq"} {
			d := newDrafter(t, n, withText{&best}, shortlist.Options{Method: method}, m)
			SteadyState(t, fmt.Sprintf("recurrent %v %s", recurs, method), d, n.Hidden, 1, nil)
		}
	}
}

func TestByText(t *testing.T) {
	m := OpenTarget(t, 400)
	for seed := range uint64(4) {
		n := head(t, m, seed, nil)
		ByText(t, n.Hidden, func() draft.Drafter {
			return newDrafter(t, n, withText{&grow.BestFirst{Width: 4, Branch: 8, Depth: 6}}, shortlist.Options{}, m)
		})
	}
}

func TestSameTokens(t *testing.T) {
	m := OpenTarget(t, 512)
	dynamic, best := grow.DefaultDynamic(), grow.DefaultBestFirst()
	shapes := []grow.Shape{&dynamic, withText{&best}, &best, &grow.Linear{K: 5},
		&grow.Static{Children: [][]int{{4}, {3, 1}, {2, 1}, {2}}}}
	var cases []Case
	for block := 1; block <= 3; block++ {
		n := head(t, m, uint64(block), func(c *falcon.Config) { c.Block, c.Recurrent = block, block == 2 })
		for i, shape := range shapes {
			lists := shortlist.Options{}
			if i%2 == 1 {
				lists = shortlist.Options{Method: []string{"freq-pa", "context"}[i/2%2], Size: min(64, n.Vocab),
					Extra: min(32, n.Vocab)}
			}
			cases = append(cases, Case{
				Name:  fmt.Sprintf("blocks of %d, %T %+v", block, shape, lists),
				New:   func() draft.Drafter { return newDrafter(t, n, shape, lists, m) },
				Finds: i == 0,
			})
		}
	}
	SameTokens(t, m, cases)
}
