package jet_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/jet"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// What a sequence is proposed does not depend on how its context came about, to the bit: in chunks of a prompt or at once, by
// rounds that accept any number of nodes, with or without proposals between them, among other sequences or alone; and from where
// rows came without a pass, on nothing before them but their number.
func TestContextIsItsText(t *testing.T) {
	m := openTarget(t, 400)
	rapid.Check(t, func(r *rapid.T) {
		n := genHead(r, m)
		o := genOptions(r, n)
		d := newDrafter(r, o, n, m)
		var all []*told
		var params []draft.Options
		start := make([]int, rapid.IntRange(1, 3).Draw(r, "sequences")) // where a context begins: after the last rows without a pass
		for id := range start {
			params = append(params, draft.Options{Sampling: genParams(r)})
			all = append(all, begin(r, d, params[id], id))
		}
		for range rapid.IntRange(1, 6).Draw(r, "rounds") {
			var rows []draft.Rows
			var requests []draft.Request
			for id, s := range all {
				switch {
				case rapid.IntRange(0, 3).Draw(r, "what") == 0 || len(s.text) == 0:
					computed := rapid.IntRange(0, 3).Draw(r, "computed") > 0
					rows = append(rows, s.prompt(genText(r, 1, 90), n.Hidden, computed))
					if !computed {
						start[id] = len(s.text)
					}
				case rapid.Bool().Draw(r, "plainly"):
					rows = append(rows, s.accept(tree.New(s.root), 0, rapid.Int32Range(0, vocab-1).Draw(r, "next"), n.Hidden))
				default:
					requests = append(requests, s.request(rapid.IntRange(2, 30).Draw(r, "budget"), 20, nil))
				}
			}
			propose(r, d, requests...)
			for _, q := range requests {
				id := slices.IndexFunc(all, func(s *told) bool { return s.State == q.State })
				node := rapid.IntRange(0, q.Tree.Len()-1).Draw(r, "accepted")
				rows = append(rows, all[id].accept(q.Tree, node, rapid.Int32Range(0, vocab-1).Draw(r, "next"), n.Hidden))
			}
			commit(r, d, rows...)
		}

		var got []draft.Request
		for _, s := range all {
			got = append(got, s.request(40, 20, nil))
		}
		propose(r, d, got...)
		other := newDrafter(r, o, n, m)
		for id, s := range all {
			fresh := begin(r, other, params[id], id)
			if start[id] > 0 {
				commit(r, other, fresh.prompt(s.text[:start[id]], n.Hidden, false))
			}
			if rest := s.text[start[id]:]; len(rest) > 0 {
				commit(r, other, fresh.prompt(rest, n.Hidden, true))
			}
			fresh.root = s.root
			want := fresh.request(40, 20, nil)
			propose(r, other, want)
			if err := same(got[id].Tree, want.Tree); err != nil {
				r.Fatalf("sequence %d of %d, %+v: %v", id, len(all), o, err)
			}
			fresh.Close()
			s.Close()
		}
	})
}

// judge is a guide with opinions of its own.
type judge struct {
	levels int // that pay
	asked  int
}

func (g *judge) Chance(depth int, logProb float32) float32 {
	return exp(logProb)
}

func (g *judge) Deeper(expected, more float32) bool {
	g.asked++
	return g.asked < g.levels
}

// Trees keep to what was asked for. Under a guide a causal block ends where the guide says that another level does not pay,
// and the tree is the one of so many levels; a block that looks both ways is drafted whole without a question.
func TestTreesKeepToTheRequest(t *testing.T) {
	m := openTarget(t, 400)
	rapid.Check(t, func(r *rapid.T) {
		n := genHead(r, m)
		o := genOptions(r, n)
		if rapid.Bool().Draw(r, "conditioned") {
			o.Tree = jet.Conditioned
		}
		d := newDrafter(r, o, n, m)
		p := genParams(r)
		s := begin(r, d, draft.Options{Sampling: p}, 1)
		commit(r, d, s.prompt(genText(r, 1, 40), n.Hidden, true))
		budget, depth := rapid.IntRange(2, 40).Draw(r, "budget"), rapid.IntRange(1, 20).Draw(r, "depth")
		free := s.request(budget, depth, nil)
		propose(r, d, free)
		if err := free.Tree.Check(vocab); err != nil || free.Tree.Len() > budget || free.Tree.Len() < 2 || free.Tree.MaxDepth() > depth {
			r.Fatalf("budget %d, depth %d: %v, %v", budget, depth, free.Tree, err)
		}
		block := n.Block - 1
		if o.Depth > 0 {
			block = o.Depth
		}
		if free.Tree.MaxDepth() > block && (o.Tree != jet.Conditioned || o.Depth > 0) {
			r.Fatalf("%+v: depth %d", o, free.Tree.MaxDepth())
		}
		chances := make([]float32, free.Tree.Len()) // of all children together
		for i := 1; i < free.Tree.Len(); i++ {
			if chances[free.Tree.Parent[i]] += exp(free.Tree.LogProb[i]); chances[free.Tree.Parent[i]] > 1.001 {
				r.Fatalf("%+v: chances of more than 1 below node %d: %v", o, free.Tree.Parent[i], free.Tree)
			}
		}
		g := &judge{levels: rapid.IntRange(1, 20).Draw(r, "levels")}
		guided := s.request(budget, depth, g)
		propose(r, d, guided)
		if n.Causal && o.Tree != jet.Conditioned { // there the text may go on
			depth = min(depth, g.levels)
		} else if !n.Causal && g.asked > 0 {
			r.Fatalf("%d questions about levels of one pass", g.asked)
		}
		want := s.request(budget, depth, nil)
		propose(r, d, want)
		if guided.Tree.MaxDepth() > depth {
			r.Fatalf("%d levels pay: %v", g.levels, guided.Tree)
		}
		if p.Temperature == 0 && !(n.Causal && o.Tree == jet.Conditioned && g.levels < depth) { // the guide believes what it is told
			if err := sameShape(guided.Tree, want.Tree); err != nil {
				r.Fatal(err)
			}
		}
	})
}

// Rows that a head has no room for push out all before them.
func TestTextLongerThanTheContext(t *testing.T) {
	m := openTarget(t, 60)
	for seed := range uint64(6) {
		n := head(t, m, seed)
		d := newDrafter(t, jet.Options{Tree: jet.DDTree}, n, m)
		s := begin(t, d, draft.Options{}, 1)
		text := make([]int32, 200)
		for i := range text {
			text[i] = int32(i)
		}
		for _, size := range []int{30, 20, 15, 8, 100, 1} {
			commit(t, d, s.prompt(text[len(s.text):len(s.text)+size], n.Hidden, true))
			q := s.request(20, 20, nil)
			propose(t, d, q)
			if q.Tree.Len() != 20 {
				t.Errorf("after %d tokens: %v", len(s.text), q.Tree)
			}
		}
		// 30 + 20 and 15 do not go together, 15 + 8 and 100 do not, the last 59 of which stay, for none with one more.
		other := newDrafter(t, jet.Options{Tree: jet.DDTree}, n, m)
		fresh := begin(t, other, draft.Options{}, 1)
		commit(t, other, fresh.prompt(text[:173], n.Hidden, false))
		commit(t, other, fresh.prompt(text[173:174], n.Hidden, true))
		a, b := s.request(20, 20, nil), fresh.request(20, 20, nil)
		propose(t, d, a)
		propose(t, other, b)
		if err := same(a.Tree, b.Tree); err != nil {
			t.Error(err)
		}
	}
}

// A proposal that is cancelled proposes nothing, and the next is as if it had not been.
func TestCancel(t *testing.T) {
	m := openTarget(t, 400)
	n := head(t, m, 3)
	d := newDrafter(t, jet.Options{Tree: jet.AccumLogP, Width: 3}, n, m)
	s := begin(t, d, draft.Options{}, 1)
	commit(t, d, s.prompt([]int32{4, 5, 6}, n.Hidden, true))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	q := s.request(20, 20, nil)
	if err := d.Propose(ctx, []draft.Request{q}); !errors.Is(err, context.Canceled) || q.Tree.Len() != 1 {
		t.Errorf("%v, %v", err, q.Tree)
	}
	propose(t, d, q)
	again := s.request(20, 20, nil)
	propose(t, d, again)
	if err := same(q.Tree, again.Tree); err != nil {
		t.Error(err)
	}
}

// Decoding allocates nothing once buffers have seen their largest.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	m := openTarget(t, 400)
	for seed := range uint64(4) {
		n := head(t, m, seed)
		for _, name := range []string{jet.AccumLogP, jet.DDTree, jet.Hybrid, jet.Chain, jet.Conditioned} {
			d := newDrafter(t, jet.Options{Tree: name, Width: 4}, n, m)
			s := begin(t, d, draft.Options{}, 1)
			text := make([]int32, 40)
			rows := s.prompt(text, n.Hidden, true)
			taps := still{x: make([]float32, n.Hidden), logits: make([]float32, vocab)}
			rows.Pass = &taps
			commit(t, d, rows)
			tr := tree.New(7)
			requests := []draft.Request{{State: s.State, Tree: tr, Budget: 24, Depth: 20, Guide: &judge{levels: 30}}}
			accepted := []draft.Rows{{State: s.State, Tokens: text[:1], Tree: tr, Nodes: []int32{0}, Next: 7, Pass: &taps}}
			round := func() {
				tr.Reset(7)
				if err := d.Propose(context.Background(), requests); err != nil {
					t.Fatal(err)
				}
				if err := d.Commit(accepted); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				round()
			}
			if a := testing.AllocsPerRun(10, round); a > 0 {
				t.Errorf("head %d, %s: %v allocations a round", seed, name, a)
			}
		}
	}
}

// Text that repeats itself is drafted on beyond the head's block, whatever the head says.
func TestConditionedTreesGoOnWithTheText(t *testing.T) {
	m := openTarget(t, 400)
	for seed := range uint64(6) {
		n := head(t, m, seed)
		d := newDrafter(t, jet.Options{Tree: jet.Conditioned}, n, m)
		s := begin(t, d, draft.Options{}, 1)
		text := make([]int32, 200)
		for i := range text {
			text[i] = int32(3*(i%(n.Block+7)) + 2)
		}
		at := 150
		commit(t, d, s.prompt(text[:at], n.Hidden, true))
		s.root = text[at]
		q := s.request(200, 30, nil)
		propose(t, d, q)
		node, depth := 0, 0
		for ; node >= 0 && depth < 30; depth++ {
			node = q.Tree.Child(node, text[at+1+depth])
		}
		if node < 0 || q.Tree.MaxDepth() != 30 {
			t.Errorf("head %d of block %d: text that occurred before is followed for %d tokens, want 30: %v", seed, n.Block, depth-1, q.Tree)
		}
	}
}

type still struct{ x, logits []float32 }

func (p *still) Logits(int, int) []float32   { return p.logits }
func (p *still) Tap(int, int, int) []float32 { return p.x }

func TestNewRefuses(t *testing.T) {
	m := openTarget(t, 400)
	n := head(t, m, 1)
	good := jet.Options{Tree: jet.DDTree}
	if _, err := jet.New(good, n, draft.Target{Vocab: vocab, Context: 400}); err == nil {
		t.Error("a target without layers has a head")
	}
	for _, o := range []jet.Options{{Tree: "oak"}, {Tree: jet.DDTree, Depth: n.Block}, {Tree: jet.DDTree, Depth: -1}, {Tree: jet.AccumLogP, Width: -1}, {Tree: jet.Hybrid, Lambda: -1}} {
		if _, err := jet.New(o, n, as(m)); err == nil {
			t.Errorf("%+v make a drafter", o)
		}
	}
	wrong := *n
	wrong.Taps = []int{m.Config.Layers + 1}
	if _, err := jet.New(good, &wrong, as(m)); err == nil {
		t.Error("a head taps a layer that there is not")
	}
}
