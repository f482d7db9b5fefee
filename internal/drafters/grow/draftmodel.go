// Rows of a draft model: a whole language model, smaller than the target.

package grow

import (
	"context"

	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
)

// DraftModel computes rows of a model whose tokens are the target's.
type DraftModel struct {
	*model.Model
	pass *model.Pass
	laid []Rows
	rows []model.Rows
}

// NewDraftModel returns m as a drafter's Model.
func NewDraftModel(m *model.Model) *DraftModel { return &DraftModel{Model: m, pass: m.NewPass()} }

func (m *DraftModel) Taps() []int { return nil }

// Keeps returns true: a row depends only on the tokens up to it.
func (m *DraftModel) Keeps() bool { return true }

// draftLevels is how many levels of a draft fit into the model's context after a full window of
// text. In a small context they get a quarter of it.
const draftLevels = 64

func (m *DraftModel) NewText() *Text {
	window := m.Context() - min(draftLevels, m.Context()/4)
	return &Text{Text: sequence.NewText(sequence.TextOptions{Rows: 1, Window: window}, m.NewCache())}
}

func (m *DraftModel) Prepare(rows []Rows) { m.laid = rows }

// RouterInput returns nil: only heads have routers.
func (m *DraftModel) RouterInput(int, int, bool) []float32 { return nil }
func (m *DraftModel) Follow([]par.Phase)                   {}

func (m *DraftModel) Run(ctx context.Context) error {
	m.rows = m.rows[:0]
	for i := range m.laid {
		r := &m.laid[i]
		m.rows = append(m.rows, model.Rows{
			Cache: r.Text.Cache, Tree: r.Tree, Logits: r.Asked, Shortlists: r.Lists, From: r.From,
		})
	}
	return m.pass.Run(ctx, m.rows, nil)
}

func (m *DraftModel) Logits(i, k int) []float32 { return m.pass.Logits(i, k) }
