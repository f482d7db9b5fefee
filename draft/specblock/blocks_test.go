package specblock

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafttest"
	"github.com/grovellm/grove/internal/synthetic"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// smallHead is a random head of K slots, with a rank head so wide.
func smallHead(t drafttest.Fataler, m *model.Model, k, rank int, seed uint64) *Network {
	c := Config{
		Config: m.Config, Block: k, RankWidth: rank, Shift: seed%2 == 0, Broadcast: seed%3 > 0,
		SamePosition: seed%5 == 0, Taps: []int{1, 2, 3},
	}
	c.Arch, c.Layers, c.Rope.Neighbours = "llama", 2, false
	return drafttest.Must(NewNetwork(c, &synthetic.Weights{Type: tensor.F32, Seed: seed}, nil, &m.Network))(t)
}

// alone computes a block of a proposal with nothing but the blocks that it descends from beside it,
// and returns its logits.
func alone(n *Network, s *state, text []int32, taps func(at int) []float32, number int) nn.Mat {
	var way []int // blocks, the last first
	for at := number; ; {
		way = append(way, at)
		if s.blocks[at].level == 0 {
			break
		}
		at = int(s.rows[s.blocks[at].from].block)
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
	tokens := append(text[1:len(text):len(text)], s.root)
	var states [][]float32
	from := 0
	run := func() {
		var f nn.Forest
		l.Add(&f, cache, from)
		cache.Reserve(from, l.Tree.Len()-from)
		x := nn.NewMat(l.Tree.Len()-from, n.Hidden)
		n.Run(e, &f, c, tokens, nil, x, &bufs)
		for i := range x.Rows {
			states = append(states, x.Row(i))
		}
		from = l.Tree.Len()
	}
	run()
	first := from - n.Block
	for i := len(way) - 2; i >= 0; i-- {
		b := &s.blocks[way[i]]
		row := first + int(b.from-s.blocks[way[i+1]].rows)
		tokens, c = []int32{s.grown.Token[b.node]}, nn.NewMat(1, n.Hidden)
		copy(c.Row(0), states[row])
		first = n.Branch(&l, row, tokens[0], n.Block)
		run()
	}
	x, out := nn.NewMat(n.Block, n.Hidden), nn.NewMat(n.Block, n.Output())
	for k := range n.Block {
		copy(x.Row(k), states[first+k])
	}
	e.Linear(nn.Source{X: x, Norm: &n.Norm}, nn.Proj{Linear: &n.Head, Dst: out})
	return out
}

// What the blocks of a best-first proposal predict does not depend on the blocks beside them, nor
// on the rounds before, to the bit; and below every node of the tree speaks the block that starts
// there, or the nearest above it.
func TestBlocksOfAProposal(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	rapid.Check(t, func(r *rapid.T) {
		n := smallHead(r, m, rapid.IntRange(1, 4).Draw(r, "block"), 8, rapid.Uint64Range(0, 30).Draw(r, "head"))
		o := Options{Tree: BestFirst, Modifiers: draft.Modifiers{Text: true},
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
		for number, b := range s.blocks {
			want := alone(n, s, one.Text, taps, number)
			for k := range b.slots {
				for i, v := range s.rows[b.rows+k].output.Logits {
					if math.Float32bits(v) != math.Float32bits(want.Row(int(k))[i]) {
						r.Fatalf("block %d of %d, slot %d: logit %d is %v, alone %v", number, len(s.blocks), k, i, v,
							want.Row(int(k))[i])
					}
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
			for depth := 0; ; depth++ { // down the path: the last block that starts on it
				if at >= 0 && s.below[at] >= 0 {
					b := s.blocks[s.rows[s.below[at]].block]
					if slot := len(path) - depth; slot < int(b.slots) {
						want = &s.rows[int(b.rows)+slot]
					} else {
						want = nil
					}
				}
				if depth == len(path) || at < 0 {
					break
				}
				at = s.grown.Child(at, path[depth])
			}
			if got := s.after(path); got != want {
				r.Fatalf("another row speaks below %v", path)
			}
		}
		one.Close()
		other.Close()
	})
}

// Text that repeats itself is drafted on beyond the head's blocks, where the head has no opinion of
// its own.
func TestTreesGoOnWithTheText(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	for seed := range uint64(6) {
		n := smallHead(t, m, 2+int(seed%3), 0, seed)
		clear(n.Norm.Weight) // all logits are the same
		d, err := New(Options{Tree: BestFirst, Modifiers: draft.Modifiers{Text: true}, Blocks: 2, Starts: 4,
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

// What a block brings is foretold from what the ones before it brought, and rows that bring little
// are not computed.
func TestYieldLearns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	y := newYield(3, 4)
	for range 2000 {
		staked := rng.Float64()
		y.learn(1, staked, 0.3*staked)
		y.learn(2, staked, 1.5*staked)
		y.learn(1, 0, 1) // of no starts nothing is learned
		for slot, chance := range []float64{.8, .5, .1, 1} {
			y.learnFirst(slot, chance)
		}
	}
	if a, b := y.gain(1, 2), y.gain(2, 2); math.Abs(a-0.6) > 1e-6 || math.Abs(b-3) > 1e-6 {
		t.Errorf("%v and %v are foretold, want 0.6 and 3", a, b)
	}
	for _, c := range []struct {
		value float64
		want  int
	}{{1, 4}, {.4, 2}, {.051, 2}, {.049, 1}, {.001, 1}} { // the second slot brings .4 of it, the others .04
		if got := y.slots(c.value, .02); got != c.want {
			t.Errorf("a block worth %v has %d slots, want %d", c.value, got, c.want)
		}
	}
}
