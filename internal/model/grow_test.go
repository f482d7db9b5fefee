package model_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// sequence is a tree that grows in passes together with others.
type sequence struct {
	text  []int32
	whole *tree.Tree // the tree in the end
	grown *tree.Tree // its beginning
	cache *nn.Cache
}

func genSequence(r *rapid.T, vocab int) *sequence {
	token := rapid.Int32Range(0, int32(vocab)-1)
	s := &sequence{text: rapid.SliceOfN(token, 1, 40).Draw(r, "text"), whole: tree.New(token.Draw(r, "root"))}
	for range rapid.IntRange(0, 30).Draw(r, "nodes") {
		s.whole.Append(rapid.IntRange(0, s.whole.Len()-1).Draw(r, "parent"), token.Draw(r, "token"), 0)
	}
	s.grown = tree.New(s.whole.Token[0])
	return s
}

// grow adds the whole tree's next nodes to the grown one.
func (s *sequence) grow(to int) {
	for i := s.grown.Len(); i < to; i++ {
		s.grown.Append(int(s.whole.Parent[i]), s.whole.Token[i], 0)
	}
}

// A tree that grows in a cache, some nodes per pass and among other sequences, has to the bit the
// logits and taps of one pass over the whole tree, whatever the steps, and also if some nodes are
// computed again. Committing one of its paths leaves the same cache as the path alone.
func TestGrownTreeIsTheWhole(t *testing.T) {
	ctx := context.Background()
	for _, shape := range []string{"tiny-llama3", "tiny-qwen3", "tiny-gptneox"} {
		t.Run(shape, func(t *testing.T) {
			m := open(t, shape, tensor.BF16, model.Options{Threads: 2})
			taps := []int{0, 2, m.Config.Layers}
			p, alone := m.NewPass(), m.NewPass()
			cases.Check(t, 50, func(r *rapid.T) {
				var seqs []*sequence
				for range rapid.IntRange(1, 3).Draw(r, "sequences") {
					s := genSequence(r, m.Config.Vocab)
					s.cache = m.NewCache()
					defer s.cache.Free()
					if err := p.Prefill(ctx, s.cache, s.text, false); err != nil {
						r.Fatal(err)
					}
					seqs = append(seqs, s)
				}
				// want is the logits and taps of every node, computed in one pass over whole trees.
				want := make([][][]float32, len(seqs))
				var rows []model.Rows
				for _, s := range seqs {
					c := s.cache.Fork()
					defer c.Free()
					rows = append(rows, model.Rows{Cache: c, Tree: s.whole, Logits: all(0, s.whole.Len())})
				}
				if err := alone.Run(ctx, rows, taps); err != nil {
					r.Fatal(err)
				}
				for i, s := range seqs {
					for node := range s.whole.Token {
						want[i] = append(want[i], slices.Clone(alone.Logits(i, node)))
						for k := range taps {
							want[i][node] = append(want[i][node], alone.Tap(k, i, node)...)
						}
					}
				}
				first := true
				for {
					rows = rows[:0]
					var of []int
					for i, s := range seqs {
						from := s.grown.Len()
						if first {
							from = 0
						}
						to := from + rapid.IntRange(0, s.whole.Len()-from).Draw(r, "step")
						if first {
							to = max(to, 1)
						} else if from > 0 && to > from && rapid.IntRange(0, 4).Draw(r, "again") == 0 {
							from = rapid.IntRange(0, from).Draw(r, "from") // rows pending from there on are dropped
						}
						if to == from {
							continue
						}
						s.grow(to)
						rows = append(rows, model.Rows{Cache: s.cache, Tree: s.grown, Logits: all(from, to), From: from})
						of = append(of, i)
					}
					first = false
					if len(rows) == 0 {
						break
					}
					if err := p.Run(ctx, rows, taps); err != nil {
						r.Fatal(err)
					}
					for n, i := range of {
						for k, node := range rows[n].Logits {
							got := slices.Clone(p.Logits(n, k))
							for l := range taps {
								got = append(got, p.Tap(l, n, int(node))...)
							}
							if !sameBits(got, want[i][node]) {
								r.Fatalf("node %d of %d, computed in a step from %d, differs from the whole pass", node, seqs[i].whole.Len(), rows[n].From)
							}
						}
					}
				}
				for i, s := range seqs {
					path := s.whole.Path(rapid.IntRange(0, s.grown.Len()-1).Draw(r, "commit"), nil)
					text := slices.Clone(s.text)
					for _, node := range path {
						text = append(text, s.whole.Token[node])
					}
					if err := s.cache.Commit(path); err != nil {
						r.Fatal(err)
					}
					fresh := m.NewCache()
					defer fresh.Free()
					if err := alone.Prefill(ctx, fresh, text, false); err != nil {
						r.Fatal(err)
					}
					next := tree.New(1)
					rows := []model.Rows{{Cache: s.cache, Tree: next, Logits: []int32{0}}, {Cache: fresh, Tree: next, Logits: []int32{0}}}
					if err := p.Run(ctx, rows, nil); err != nil {
						r.Fatal(err)
					}
					if !sameBits(p.Logits(0, 0), p.Logits(1, 0)) {
						r.Fatalf("sequence %d: after the commit of %v the next token's logits differ from the text's own", i, path)
					}
				}
			})
		})
	}
}

func all(from, to int) (nodes []int32) {
	for i := from; i < to; i++ {
		nodes = append(nodes, int32(i))
	}
	return nodes
}

// A tree grows only from pending nodes. A pass that ends early leaves those before it pending.
func TestGrowthRefuses(t *testing.T) {
	ctx := context.Background()
	m := open(t, "tiny-qwen3", tensor.F32, model.Options{Threads: 1})
	p, c := m.NewPass(), m.NewCache()
	tr := tree.Chain([]int32{1, 2, 3, 4})
	run := func(ctx context.Context, tr *tree.Tree, from int) error {
		return p.Run(ctx, []model.Rows{{Cache: c, Tree: tr, From: from, Logits: []int32{int32(tr.Len() - 1)}}}, nil)
	}
	for _, from := range []int{-1, 1, 4} {
		if err := run(ctx, tr, from); err == nil {
			t.Errorf("a tree was grown from node %d of nothing", from)
		}
	}
	if err := run(ctx, tree.Chain(tr.Token[:2]), 0); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := run(ended, tr, 2); err == nil || c.Pending() != 2 {
		t.Errorf("a pass that was cancelled: %v, %d rows pending, want 2", err, c.Pending())
	}
	if err := run(ctx, tr, 2); err != nil || c.Pending() != 4 {
		t.Errorf("after it: %v, %d rows pending, want 4", err, c.Pending())
	}
	if err := c.Commit([]int32{0, 1, 2, 3}); err != nil || c.Len() != 4 {
		t.Error(fmt.Errorf("%d rows: %w", c.Len(), err))
	}
}
