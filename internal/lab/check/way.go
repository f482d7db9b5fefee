package check

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tree"
)

// way is one way of many to reach a context: the text enters the cache in chunks, as paths of
// trees that are committed, with detours that are truncated and forks that are written to; the
// tree is run whole in another node order, grown over some passes, or committed in between; other
// sequences share the passes.
type way struct {
	ctx   context.Context
	rng   *rand.Rand
	text  []int32
	level cpu.Level
	*opened

	cache *nn.Cache
	mates []mate
	old   []*nn.Cache // forks left behind, which share pages
	steps []string
}

// how describes the way.
func (w *way) how() string {
	s := strings.Join(w.steps, " ")
	if len(w.mates) > 0 {
		s += fmt.Sprintf(" with %d mates", len(w.mates))
	}
	return s
}

func (w *way) step(format string, args ...any) {
	w.steps = append(w.steps, fmt.Sprintf(format, args...))
}

func (w *way) free() {
	w.cache.Free()
	for _, c := range w.old {
		c.Free()
	}
	for _, m := range w.mates {
		m.cache.Free()
	}
}

// compare reaches the context and hands the logits of t's nodes to check.
func (w *way) compare(t *tree.Tree, check func(node int, got []float32) error) error {
	defer cpu.Use(w.level)()
	if strips := w.rng.IntN(2) > 0; !strips {
		w.step("no strips")
		defer nn.UseStrips(false)()
	}
	w.cache = w.m.NewCache()
	for range skewed(w.rng, 2, 4) {
		c := w.m.NewCache()
		if err := w.p.Prefill(w.ctx, c, randomTokens(w.rng, w.m.Config.Vocab, w.rng.IntN(50)), false); err != nil {
			return err
		}
		w.mates = append(w.mates, mate{c, randomTree(w.rng, w.m.Config.Vocab, 1+w.rng.IntN(8))})
	}
	for w.cache.Len() < len(w.text) {
		if err := w.advance(); err != nil {
			return err
		}
	}
	if w.rng.IntN(3) == 0 && t.Len() > 1 {
		return w.inTwo(t, check)
	}
	w.step("tree")
	s, place := shuffled(w.rng, t)
	return w.run(s, func(got func(node int32) []float32) error {
		for i := range t.Token {
			if err := check(i, got(place[i])); err != nil {
				return err
			}
		}
		return nil
	})
}

// advance brings more of the text into the cache, or makes a detour.
func (w *way) advance() error {
	rest := w.text[w.cache.Len():]
	n := 1 + w.rng.IntN(len(rest))
	vocab := w.m.Config.Vocab
	switch w.rng.IntN(6) {
	case 0, 1:
		w.step("chunk%d", n)
		return w.p.Prefill(w.ctx, w.cache, rest[:n], w.rng.IntN(2) == 0)
	case 2, 3:
		n = min(n, 12)
		t, path := withPath(w.rng, vocab, rest[:n], w.rng.IntN(20))
		w.step("path%d/%d", n, t.Len())
		if err := w.run(t, nil); err != nil {
			return err
		}
		return w.cache.Commit(path)
	case 4:
		at := w.cache.Len()
		back := at - w.rng.IntN(min(at, 40)+1)
		w.step("detour to %d", back)
		if err := w.p.Prefill(w.ctx, w.cache, randomTokens(w.rng, vocab, 1+w.rng.IntN(40)), false); err != nil {
			return err
		}
		return w.cache.Truncate(w.cache.Reach(back))
	}
	w.step("fork")
	if len(w.old) > 4 {
		return nil
	}
	f := w.cache.Fork()
	if w.rng.IntN(2) == 0 {
		f, w.cache = w.cache, f
	}
	w.old = append(w.old, f)
	return w.p.Prefill(w.ctx, f, randomTokens(w.rng, vocab, 1+w.rng.IntN(10)), false) // writes to pages shared until now
}

// inTwo runs a part of the tree, commits the path to one of its nodes, then runs what is below it.
func (w *way) inTwo(t *tree.Tree, check func(node int, got []float32) error) error {
	last := 1 + w.rng.IntN(t.Len()-1)
	path := t.Path(int(t.Parent[last]), nil)
	w.step("path to %d then tree", t.Parent[last])

	s, place := shuffled(w.rng, t)
	err := w.run(s, func(got func(node int32) []float32) error {
		for _, i := range path {
			if err := check(int(i), got(place[i])); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, v := range path {
		path[i] = place[v]
	}
	if err := w.cache.Commit(path); err != nil {
		return err
	}
	below := tree.New(t.Token[last])
	nodes := []int{last} // of t, by node of below
	in := map[int32]int{int32(last): 0}
	for i := last + 1; i < t.Len(); i++ {
		if p, ok := in[t.Parent[i]]; ok {
			in[int32(i)] = below.Append(p, t.Token[i], 0)
			nodes = append(nodes, i)
		}
	}
	return w.run(below, func(got func(node int32) []float32) error {
		for i, node := range nodes {
			if err := check(node, got(int32(i))); err != nil {
				return err
			}
		}
		return nil
	})
}

// run runs t over the cache among the mates and hands the logits to use, which may be nil.
func (w *way) run(t *tree.Tree, use func(got func(node int32) []float32) error) error {
	if t.Len() > 1 && w.rng.IntN(3) == 0 {
		return w.grow(t, use)
	}
	ask := make([]int32, t.Len()) // every node, in an order of its own
	at := make([]int, t.Len())
	for i, node := range w.rng.Perm(t.Len()) {
		ask[i], at[node] = int32(node), i
	}
	own := model.Rows{Cache: w.cache, Tree: t}
	if use != nil {
		own.Logits = ask
	}
	mine := w.rng.IntN(len(w.mates) + 1)
	var rows []model.Rows
	for i, m := range w.mates {
		if i == mine {
			rows = append(rows, own)
		}
		r := model.Rows{Cache: m.cache, Tree: m.tree}
		if w.rng.IntN(2) == 0 {
			r.Logits = []int32{int32(w.rng.IntN(m.tree.Len()))}
		}
		rows = append(rows, r)
	}
	if mine == len(w.mates) {
		rows = append(rows, own)
	}
	if err := w.p.Run(w.ctx, rows, nil); err != nil || use == nil {
		return err
	}
	return use(func(node int32) []float32 { return w.p.Logits(mine, at[node]) })
}

// grow runs t as a drafter grows it: some nodes a pass, each over those before it, which are pending in the cache.
func (w *way) grow(t *tree.Tree, use func(got func(node int32) []float32) error) error {
	logits := make([][]float32, t.Len())
	s := tree.New(t.Token[0])
	for from, to := 0, 1; from < t.Len(); from = to {
		to = from + 1 + w.rng.IntN(t.Len()-from)
		for i := max(from, 1); i < to; i++ {
			s.Append(int(t.Parent[i]), t.Token[i], 0)
		}
		rows := []model.Rows{{Cache: w.cache, Tree: s, From: from}}
		for i := from; i < to && use != nil; i++ {
			rows[0].Logits = append(rows[0].Logits, int32(i))
		}
		for _, m := range w.mates {
			rows = append(rows, model.Rows{Cache: m.cache, Tree: m.tree})
		}
		if err := w.p.Run(w.ctx, rows, nil); err != nil {
			return err
		}
		for i, node := range rows[0].Logits {
			logits[node] = append([]float32(nil), w.p.Logits(0, i)...)
		}
		w.step("grown to %d/%d", to, t.Len())
	}
	if use == nil {
		return nil
	}
	return use(func(node int32) []float32 { return logits[node] })
}
