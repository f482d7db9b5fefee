package specblock

import (
	"math"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// smallHead returns a random head of k slots, with a rank head of rank numbers.
func smallHead(t drafttest.Fataler, m *model.Model, k, rank int, seed uint64) *Network {
	c := Config{
		Base:  headfile.Base{Config: m.Config, Taps: []int{1, 2, 3}},
		Block: k, RankWidth: rank, Shift: seed%2 == 0, Broadcast: seed%3 > 0,
		SamePosition: seed%5 == 0,
	}
	c.Arch = "llama"
	c.Layers = 2
	c.Rope.Neighbours = false
	return drafttest.Must(NewNetwork(c, &synthetic.Weights{Type: tensor.F32, Seed: seed}, nil, &m.Network))(t)
}

// alone computes the block of a proposal that a row belongs to, together with only the blocks that
// it descends from, and returns its logits.
func alone(n *Network, s *state, text []int32, taps func(at int) []float32, of *row) nn.Mat {
	var way []int // layout rows from which blocks start, the last one first
	first := int(of.at - of.slot)
	at := first
	for at >= (s.take-1)*s.d.cached+n.Block {
		from := int(s.layout.Tree.Parent[at])
		way = append(way, from)
		at = from - int(s.layout.Slot[from])
	}
	e, pages := nn.NewExec(s.d.Pool), n.Pages()
	cache := pages.NewCache()
	defer cache.Free()
	var l Layout
	var bufs Buffers
	n.Text(&l, 0, append(text[1:len(text):len(text)], s.root))
	all := nn.NewMat(len(text), len(n.Taps)*n.Hidden)
	for i := range text {
		copy(all.Row(i), taps(i))
	}
	c := nn.NewMat(len(text), n.Hidden)
	n.Condition(e, all, c)
	var states [][]float32
	from := 0
	run := func() {
		var p Pass
		n.Add(&p, &l, cache, from)
		x := nn.NewMat(l.Tree.Len()-from, n.Hidden)
		n.Run(e, &p, c, x, &bufs)
		for i := range x.Rows {
			states = append(states, x.Row(i))
		}
		from = l.Tree.Len()
	}
	run()
	start := from - n.Block
	for i := len(way) - 1; i >= 0; i-- {
		row := start + int(s.layout.Slot[way[i]])
		next := first // first row of the block that starts there in the proposal
		if i > 0 {
			next = way[i-1] - int(s.layout.Slot[way[i-1]])
		}
		c = nn.NewMat(1, n.Hidden)
		copy(c.Row(0), states[row])
		start = n.Branch(&l, row, s.layout.Tree.Token[next], n.Block)
		run()
	}
	x, out := nn.NewMat(n.Block, n.Hidden), nn.NewMat(n.Block, n.Output())
	for k := range n.Block {
		copy(x.Row(k), states[start+k])
	}
	e.Linear(nn.Source{X: x, Norm: &n.Norm}, nn.Proj{Linear: &n.Head, Dst: out})
	return out
}

// The predictions of a proposal's blocks do not depend on other blocks, nor on earlier rounds, to
// the bit. With +text, what follows a node of the tree is predicted by the block that starts there,
// or by the nearest one above.
func TestBlocksOfAProposal(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := smallHead(r, m, rapid.IntRange(1, 4).Draw(r, "block"), 8, rapid.Uint64Range(0, 30).Draw(r, "head"))
		o := Options{Modifiers: registry.Modifiers{Text: rapid.Bool().Draw(r, "text")}, Widths: "2/4/6/4",
			Blocks: rapid.IntRange(1, 4).Draw(r, "blocks"), Starts: rapid.IntRange(0, 6).Draw(r, "starts"), Nodes: 40}
		d, err := New(o, n, drafttest.As(m))
		if err != nil {
			r.Fatal(err)
		}
		one := drafttest.Begin(r, d, draft.Options{}, 1)
		other := drafttest.Begin(r, d, draft.Options{}, 2)
		drafttest.Commit(r, d, one.Prompt(drafttest.GenText(r, 1, 30), n.Hidden, true),
			other.Prompt([]int32{5, 6}, n.Hidden, true))
		for range rapid.IntRange(0, 2).Draw(r, "rounds") {
			q := one.Request(30, 20, nil)
			drafttest.Propose(r, d, q)
			drafttest.Commit(r, d, one.Accept(q.Tree, rapid.IntRange(0, q.Tree.Len()-1).Draw(r, "accepted"), 9,
				n.Hidden))
		}
		q := one.Request(30, 20, nil)
		drafttest.Propose(r, d, q, other.Request(30, 20, nil))

		s := one.State.(*state)
		p := drafttest.Pass{Text: one.ID, Hidden: n.Hidden, Tree: tree.Chain(one.Text)}
		taps := func(at int) (x []float32) {
			for i := range n.Taps {
				x = append(x, p.Tap(i, 0, at)...)
			}
			return x
		}
		for i := range s.rows {
			got := &s.rows[i]
			want := alone(n, s, one.Text, taps, got).Row(int(got.slot))
			for j, v := range got.output.Logits {
				if math.Float32bits(v) != math.Float32bits(want[j]) {
					r.Fatalf("row %d of %d, slot %d: logit %d is %v, alone %v", i, len(s.rows), got.slot, j, v, want[j])
				}
			}
		}
		for node := range q.Tree.Len() {
			var path []int32
			for _, i := range q.Tree.Path(node, nil)[1:] {
				path = append(path, q.Tree.Token[i])
			}
			var want *row
			at := 0
			for depth := 0; o.Text; depth++ { // down the path: the last block that starts on it
				if at >= 0 && s.below[at] >= 0 {
					want = nil
					if i := int(s.below[at]) + len(path) - depth; i < len(s.rows) && int(s.rows[i].slot) == len(path)-depth {
						want = &s.rows[i]
					}
				}
				if depth == len(path) || at < 0 {
					break
				}
				at = s.grown.Child(at, path[depth])
			}
			if got := s.after(path); o.Text && got != want {
				r.Fatalf("another row speaks below %v", path)
			}
		}
		one.Close()
		other.Close()
	})
}

// Repetitive text is drafted beyond the head's blocks, where the head predicts nothing.
func TestTreesGoOnWithTheText(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	for seed := range uint64(6) {
		n := smallHead(t, m, 1+int(seed%3), 0, seed)
		clear(n.Norm.Weight) // all logits are the same
		d, err := New(Options{Modifiers: registry.Modifiers{Text: true}, Blocks: 1, Widths: "2/4/6/4",
			Nodes: 200}, n, drafttest.As(m))
		if err != nil {
			t.Fatal(err)
		}
		s := drafttest.Begin(t, d, draft.Options{}, 1)
		text := make([]int32, 200)
		for i := range text {
			text[i] = int32(3*(i%(n.Block+7)) + 2)
		}
		at := 150
		drafttest.Commit(t, d, s.Prompt(text[:at], n.Hidden, true))
		s.Root = text[at]
		q := s.Request(200, 30, nil)
		drafttest.Propose(t, d, q)
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
