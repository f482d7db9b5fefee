package speculate

import (
	"context"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tree"
)

// Target is the model whose tokens are wanted, as far as the loop knows it.
type Target interface {
	Vocab() int
	Context() int // most tokens of a text
	NewCache() Cache
	NewPass() Pass
}

// Cache holds the committed rows of one sequence.
type Cache interface {
	Len() int
	Commit(nodes []int32) error // keep this path of the last pass's tree, the root first, and drop its other rows
	Truncate(n int) error       // keep the first n rows
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

// Model makes a target of an open model.
func Model(m *model.Model) Target { return modelTarget{m} }

type modelTarget struct{ m *model.Model }

func (t modelTarget) Vocab() int      { return t.m.Config.Vocab }
func (t modelTarget) Context() int    { return t.m.Context() }
func (t modelTarget) NewCache() Cache { return t.m.NewCache() }
func (t modelTarget) NewPass() Pass   { return &modelPass{Pass: t.m.NewPass()} }

type modelPass struct {
	*model.Pass
	rows []model.Rows
}

func (p *modelPass) Run(ctx context.Context, rows []Rows, taps []int) error {
	p.rows = p.rows[:0]
	for _, r := range rows {
		p.rows = append(p.rows, model.Rows{Cache: r.Cache.(*nn.Cache), Tree: r.Tree, Logits: r.Logits})
	}
	return p.Pass.Run(ctx, p.rows, taps)
}
