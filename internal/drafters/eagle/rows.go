// Rows of text and drafts, for package grow: where the feature of each comes from, and what is kept
// for a sequence.

package eagle

import (
	"context"
	"slices"

	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
)

// rows computes rows of a head.
type rows struct {
	grow.StateRows
	n     *Network
	pages nn.Pages

	// The current pass.
	laid        []grow.Rows
	taps, fused nn.Buffer
	gBuf        nn.Buffer
	g           nn.Mat // features of all rows
	x           nn.Mat // outputs of all rows, which are their states and their children's features
	bufs        Buffers
}

func newRows(n *Network, pool *par.Pool) *rows {
	return &rows{n: n, StateRows: grow.StateRows{Exec: nn.NewExec(pool)}, pages: n.Pages()}
}

func (r *rows) Taps() []int  { return r.n.Taps }
func (r *rows) Context() int { return 0 }
func (r *rows) NewText() *grow.Text {
	o := sequence.TextOptions{Layers: len(r.n.Taps), Ahead: true, Rows: 1, Window: r.n.Config.Context}
	return &grow.Text{Text: sequence.NewText(o, r.pages.NewCache())}
}

// Keeps returns false: a drafted row is made from the head's own state, a committed token's row from
// the target's.
func (r *rows) Keeps() bool { return false }

// Prepare makes the features: those of rows of text from the target's taps, those of drafted rows
// from their parents' states.
func (r *rows) Prepare(laid []grow.Rows) {
	n := r.n
	r.laid = laid
	r.Begin(laid)
	known := 0
	for i := range laid {
		l := &laid[i]
		r.Forest.Add(l.Text.Cache, l.Tree, l.From)
		l.Text.Cache.Reserve(l.From, l.Tree.Len()-l.From)
		r.Add(l, l.From)
		known += max(l.Known-l.From, 0)
	}
	taps, at := r.taps.Mat(known, n.Width()), 0
	for i := range laid {
		if l := &laid[i]; l.From < l.Known {
			at += copy(taps.Data[at:], l.Text.Taps[l.From*n.Width():l.Known*n.Width()])
		}
	}
	fused := r.fused.Mat(known, n.Hidden)
	if known > 0 {
		n.Features(r.Exec, taps, fused, &r.bufs)
	}
	if r.asked() {
		r.x = r.States(n.Hidden)
	}
	r.g = r.gBuf.Mat(len(r.Tokens), n.Hidden)
	r.Inputs(fused, r.g)
}

// RouterInput returns a row's output or its feature.
func (r *rows) RouterInput(i, k int, output bool) []float32 {
	if output {
		return r.x.Row(r.Asked(i, k))
	}
	return r.g.Row(r.Asked(i, k))
}

// asked reports whether logits of any row are wanted.
func (r *rows) asked() bool {
	return slices.ContainsFunc(r.laid, func(l grow.Rows) bool { return len(l.Asked) > 0 })
}

// Run computes the prepared rows.
func (r *rows) Run(ctx context.Context) error {
	if err := r.Start(ctx); err != nil {
		return err
	}
	n := r.n
	r.Exec.Hold()
	if !r.asked() {
		n.Keep(r.Exec, &r.Forest, r.Tokens, r.g, &r.bufs)
		r.Exec.Release()
		return nil
	}
	n.Run(r.Exec, &r.Forest, r.Tokens, r.g, r.x, &r.bufs)
	r.RunRouter()
	r.Answer(r.x, r.x, n.Norm, &n.Head)
	r.Exec.Release()
	return nil
}
