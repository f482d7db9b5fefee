// Law 1 for drafters whose rows come from heads, by what they propose.

package check

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// draftCase: what a head proposes first after a prompt does not depend on how that was read: in
// what chunks, at what kernel level, by how many threads.
func draftCase(ctx context.Context, v *variant, rng *rand.Rand, text []int32, root int32, level cpu.Level) error {
	name := randomHead(rng, randomKind(rng, v))
	params := sample.Params{Temperature: float32(rng.IntN(2)), Seed: rng.Uint64()}
	propose := func(level cpu.Level, threads int, chunk func(left int) int) (*tree.Tree, error) {
		defer cpu.Use(level)()
		o, d, err := v.drafter(name, threads)
		if err != nil {
			return nil, err
		}
		return readAndPropose(ctx, o, d, params, text, root, chunk)
	}
	want, err := propose(level, 1, func(int) int { return 1 })
	if err != nil {
		return err
	}
	other, threads := randomLevel(rng, 10), 1+rng.IntN(maxThreads)
	got, err := propose(other, threads, func(left int) int { return 1 + rng.IntN(left) })
	if err != nil {
		return err
	}
	for i := range max(got.Len(), want.Len()) {
		if i >= got.Len() || i >= want.Len() || got.Token[i] != want.Token[i] || got.Parent[i] != want.Parent[i] ||
			math.Float32bits(got.LogProb[i]) != math.Float32bits(want.LogProb[i]) {
			return mismatchf("%v, %s, %+v, %d threads at %v: after %d tokens, node %d differs: of\n%sa row a pass at %v made\n%s",
				v, name, params, threads, other, len(text), i, got, level, want)
		}
	}
	return nil
}

// readAndPropose reads a text in chunks, in the target and so in the drafter, and returns the
// drafter's tree below the root after it.
func readAndPropose(ctx context.Context, o *opened, d draft.Drafter, p sample.Params, text []int32, root int32,
	chunk func(left int) int) (*tree.Tree, error) {
	s, err := d.Begin(draft.Options{Sampling: p})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	cache := o.m.NewCache()
	defer cache.Free()
	for len(text) > 0 {
		n := chunk(len(text))
		t := tree.Chain(text[:n])
		if err := o.p.Run(ctx, []model.Rows{{Cache: cache, Tree: t}}, d.Taps()); err != nil {
			return nil, err
		}
		cache.CommitAll()
		r := draft.Rows{State: s, Tokens: text[:n], Tree: t, Next: -1, Pass: o.p}
		for i := range n {
			r.Nodes = append(r.Nodes, int32(i))
		}
		if err := d.Commit([]draft.Rows{r}); err != nil {
			return nil, err
		}
		text = text[n:]
	}
	q := draft.Request{State: s, Tree: tree.New(root), Budget: 40, Depth: 20, Cache: cache}
	_, err = d.Propose(ctx, []draft.Request{q})
	return q.Tree, err
}
