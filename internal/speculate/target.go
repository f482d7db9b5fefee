package speculate

import (
	"context"
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate/control"
	"github.com/grovellm/grove/tree"
)

// Target is the model whose tokens are wanted, as the loop sees it.
type Target interface {
	Vocab() int
	Context() int // most tokens of a text
	NewCache() Cache
	CheckCache(Cache) error // an error if NewCache of this target did not make the cache
	ForkCache(Cache) Cache  // a second cache with the same committed rows, which shares their memory
	NewPass() Pass
}

// Cache holds the committed rows of one sequence.
type Cache interface {
	Len() int
	Commit(nodes []int32) error // keep this path of the last pass's tree, the root first, and drop its other rows
	Truncate(n int) error       // keep the first n rows, as many as Reach gives
	Reach(n int) int            // the most rows up to n that Truncate can keep: rows that others need may be freed
	KeepState()                 // allow Truncate to go back to about here
	Free()
}

// Rows is one sequence's part of a pass.
type Rows struct {
	Cache  Cache
	Tree   *tree.Tree
	Logits []int32 // the nodes whose logits are wanted
}

// Pass runs trees over caches. Logits and taps are valid until the next Run. A Run that
// fails leaves the caches' committed rows as they were.
type Pass interface {
	Run(ctx context.Context, rows []Rows, taps []int) error
	draft.Pass
}

// Model makes a target from an open model.
func Model(m *model.Model) Target { return modelTarget{m, m.NewCache().Pages()} }

type modelTarget struct {
	m     *model.Model
	pages *nn.Pages // where its caches are
}

func (t modelTarget) Vocab() int      { return t.m.Config.Vocab }
func (t modelTarget) Context() int    { return t.m.Context() }
func (t modelTarget) NewCache() Cache { return t.m.NewCache() }
func (t modelTarget) NewPass() Pass   { return &modelPass{Pass: t.m.NewPass(), target: t} }

func (t modelTarget) CheckCache(c Cache) error {
	if own, ok := c.(*nn.Cache); !ok || own == nil || own.Pages() != t.pages {
		const want = "take one from the target's NewCache, or give none"
		return fmt.Errorf("speculate: the cache is a %T that this target did not make: %s", c, want)
	}
	return nil
}

func (t modelTarget) ForkCache(c Cache) Cache { return c.(*nn.Cache).Fork() }

type modelPass struct {
	*model.Pass
	target modelTarget
	rows   []model.Rows
}

func (p *modelPass) Run(ctx context.Context, rows []Rows, taps []int) error {
	p.rows = p.rows[:0]
	for _, r := range rows {
		if err := p.target.CheckCache(r.Cache); err != nil {
			return err
		}
		p.rows = append(p.rows, model.Rows{Cache: r.Cache.(*nn.Cache), Tree: r.Tree, Logits: r.Logits})
	}
	return p.Pass.Run(ctx, p.rows, taps)
}

// readsExperts is a Target with experts; countsExperts is a pass that reports how many experts its
// last Run read, summed over the layers.
type (
	readsExperts  interface{ Experts() control.Experts }
	countsExperts interface{ ExpertsRead() int }
)

// Experts returns the weights that the model's layers read.
func (t modelTarget) Experts() control.Experts {
	x := control.Experts{Dense: t.m.WeightBytes()}
	total := 0
	for i := range t.m.Blocks {
		if h := t.m.Blocks[i].Experts; h != nil {
			x.Layers = x.Layers + 1
			x.Count = len(h.MLPs)
			x.Used = h.Used
			total += h.Bytes() - h.Router.W.Bytes()
		}
	}
	if x.Layers > 0 {
		x.Dense, x.Bytes = x.Dense-total, total/(x.Layers*x.Count)
	}
	return x
}
