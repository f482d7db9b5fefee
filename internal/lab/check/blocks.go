// Law 1 for block heads, to the bit of their logits.

package check

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tree"
)

// blockCase checks law 1 for a head: what its block says does not depend on how the context was
// read (in what chunks, at what kernel level, by how many threads, beside which others), nor, if it
// is causal, on how many rows the block has.
func blockCase(ctx context.Context, v *variant, rng *rand.Rand, text []int32, anchor int32, level cpu.Level) error {
	first := rng.Int()
	rows := 0 // all
	var causal bool
	read := func(level cpu.Level, threads int, chunk func(left int) int) (logits [][]float32, err error) {
		defer cpu.Use(level)()
		o, err := v.threads(threads)
		if err != nil {
			return nil, err
		}
		target, err := v.headed(o)
		if err != nil {
			return nil, err
		}
		h, taps, err := openBlocks(first, target)
		if err != nil {
			return nil, err
		}
		b := block{o: o, h: h, taps: taps, pages: h.Pages(), e: nn.NewExec(o.m.Pool())}
		whole := h.Block().Depths + h.Block().Skip
		causal = h.Block().Causal
		if rows == 0 || !causal {
			rows = whole
		}
		return b.run(ctx, rng, text, anchor, chunk, min(rows, whole))
	}
	want, err := read(level, 1, func(int) int { return 1 })
	if err != nil {
		return err
	}
	rows = 1 + rng.IntN(len(want))
	other, threads := randomLevel(rng, 10), 1+rng.IntN(maxThreads)
	got, err := read(other, threads, func(left int) int { return 1 + rng.IntN(left) })
	if err != nil {
		return err
	}
	for row := range got {
		if i := firstDifference(got[row], want[row]); i >= 0 {
			return mismatchf("%v, a head (causal %v), %d threads at %v: after %d tokens, row %d of %d: logit %d is %v; a row a pass at %v made it %v",
				v, causal, threads, other, len(text), row, len(got), i, got[row][i], level, want[row][i])
		}
	}
	return nil
}

// openBlocks is the network of a head that drafts a block in one pass, over a context that is made
// of taps alone: the first such head from number first on, of the drafters that heads have.
func openBlocks(first int, target registry.Target) (h onepass.Model, taps []int, err error) {
	var names []string
	for _, kind := range kindsFor(target.Model.Config.Arch) {
		names = append(names, kind.Drafters...)
	}
	for i := range names {
		d, err := registry.New(names[(first+i)%len(names)], target)
		if err != nil {
			return nil, nil, err
		}
		if h, ok := d.(interface{ Blocks() onepass.Model }); ok && !h.Blocks().Text().Ahead {
			return h.Blocks(), d.Taps(), nil
		}
	}
	return nil, nil, errors.New("check: no head drafts a block in one pass")
}

// block is a head at work.
type block struct {
	o     *opened
	h     onepass.Model
	taps  []int // that it reads
	pages nn.Pages
	e     *nn.Exec
	f     nn.Forest
}

// run reads the text in chunks, in the target and in the head, and returns the logits of so many
// rows of a block after it. Another sequence, which gets a row a chunk, shares the head's passes.
func (b *block) run(ctx context.Context, rng *rand.Rand, text []int32, anchor int32, chunk func(left int) int,
	rows int) ([][]float32, error) {
	cache := b.o.m.NewCache()
	defer cache.Free()
	norm, head, _ := b.h.Output()
	width := head.W.In()
	own, other := &mate{cache: b.pages.NewCache(), tree: new(tree.Tree)}, &mate{cache: b.pages.NewCache(), tree: tree.New(0)}
	defer own.cache.Free()
	defer other.cache.Free()
	for len(text) > 0 {
		n := chunk(len(text))
		own.tree.ResetChain(text[:n])
		text = text[n:]
		if err := b.o.p.Run(ctx, []model.Rows{{Cache: cache, Tree: own.tree}}, b.taps); err != nil {
			return nil, err
		}
		cache.CommitAll()
		both := []*mate{own, other}
		if rng.IntN(2) == 0 {
			both = []*mate{other, own}
		}
		b.f.Reset()
		taps := nn.NewMat(n+1, len(b.taps)*width)
		for _, m := range both {
			for node := range m.tree.Len() {
				for i := range b.taps {
					copy(taps.Row(b.f.Len() + node)[i*width:], b.o.p.Tap(i, 0, node))
				}
			}
			m.cache.Reserve(0, m.tree.Len())
			b.f.Add(m.cache, m.tree, 0)
		}
		b.h.Read(b.e, &b.f, nil, taps)
		own.cache.CommitAll()
		other.cache.CommitAll()
	}
	b.h.LayOut(own.tree, anchor, rows)
	own.cache.Reserve(0, rows)
	b.f.Reset()
	b.f.Add(own.cache, own.tree, 0)
	x, out := nn.NewMat(rows, width), nn.NewMat(rows, head.W.Out())
	b.e.Hold() // as package onepass does
	b.h.Run(b.e, &b.f, own.tree.Token, []int32{0}, nn.Mat{}, x)
	b.e.Release()
	b.e.Linear(nn.Source{X: x, Norm: norm}, nn.Proj{Linear: head, Dst: out})
	var logits [][]float32
	for i := range rows {
		logits = append(logits, out.Row(i))
	}
	return logits, nil
}
