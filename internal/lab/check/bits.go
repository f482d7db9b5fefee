package check

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tree"
)

// Bits checks law 1, same bits: the logits of a context do not depend on how it was reached.
//
// A case is a text, a tree under its end, and a random model of one of the architectures, six
// types and two types of keys and values. The reference reads text and tree one token a pass, on
// one thread. Then the same context is reached in other ways (see way), each at a kernel level and
// a number of threads of its own, and every logit of every node must be equal to the bit. A random
// head then reads the same text in two ways.
func Bits(ctx context.Context, o Options) (Report, error) { return run(ctx, o, bitsCase) }

// waysPerCase is how many other ways a case's context is reached: the reference costs more than each.
const waysPerCase = 2

func bitsCase(ctx context.Context, v *variant, rng *rand.Rand, _ *int) error {
	vocab := v.shape.Vocab
	text := randomTokens(rng, vocab, textLength(rng, v, 260))
	t := randomTree(rng, vocab, 1+skewed(rng, 16, 80))
	level := randomLevel(rng, 10)
	want, err := oneByOne(ctx, v, level, text, t)
	if err != nil {
		return err
	}
	for range waysPerCase {
		w := &way{ctx: ctx, rng: rng, text: text, level: randomLevel(rng, 10)}
		if w.opened, err = v.threads(1 + rng.IntN(maxThreads)); err != nil {
			return err
		}
		err := w.compare(t, func(node int, got []float32) error {
			i := firstDifference(got, want[node])
			if i < 0 {
				return nil
			}
			return mismatchf("%v, %d threads at %v, %s: after %d tokens, node %d of %d: logit %d is %v; one token a pass at %v made it %v",
				v, w.m.Threads(), w.level, w.how(), len(text), node, t.Len(), i, got[i], level, want[node][i])
		})
		w.free()
		if err != nil {
			return err
		}
	}
	if rng.IntN(2) == 0 {
		return blockCase(ctx, v, rng, text, t.Token[0], level)
	}
	return draftCase(ctx, v, rng, text, t.Token[0], level)
}

// randomLevel draws a level of the kernels: the portable one once in so many times, as it is slow.
func randomLevel(rng *rand.Rand, portable int) cpu.Level {
	ls := cpu.Levels()
	if rng.IntN(portable) == 0 || len(ls) == 1 {
		return cpu.Portable
	}
	return ls[1+rng.IntN(len(ls)-1)]
}

// oneByOne returns the logits of every node of t after text, each computed by a pass of one row.
func oneByOne(ctx context.Context, v *variant, level cpu.Level, text []int32, t *tree.Tree) ([][]float32, error) {
	defer cpu.Use(level)()
	o, err := v.threads(1)
	if err != nil {
		return nil, err
	}
	c := o.m.NewCache()
	defer c.Free()
	row := tree.New(0)
	step := func(c *nn.Cache, token int32, logits ...int32) error {
		row.Reset(token)
		if err := o.p.Run(ctx, []model.Rows{{Cache: c, Tree: row, Logits: logits}}, nil); err != nil {
			return err
		}
		return c.Commit([]int32{0})
	}
	for _, token := range text {
		if err := step(c, token); err != nil {
			return nil, err
		}
	}
	out := make([][]float32, t.Len())
	var visit func(c *nn.Cache, i int) error
	visit = func(c *nn.Cache, i int) error {
		c = c.Fork()
		defer c.Free()
		if err := step(c, t.Token[i], 0); err != nil {
			return err
		}
		out[i] = append([]float32(nil), o.p.Logits(0, 0)...)
		for _, child := range t.Children(i, nil) {
			if err := visit(c, int(child)); err != nil {
				return err
			}
		}
		return nil
	}
	return out, visit(c, 0)
}

// firstDifference is the first place where a and b differ in their bits, -1 for none.
func firstDifference(a, b []float32) int {
	for i := range b {
		if i >= len(a) || math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i
		}
	}
	return -1
}

// mate is another sequence in the same pass.
type mate struct {
	cache *nn.Cache
	tree  *tree.Tree
}
