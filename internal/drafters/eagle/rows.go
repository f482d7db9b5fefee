// Rows of text and drafts, for package grow: where the feature of each comes from, and what is kept
// of a sequence.

package eagle

import (
	"context"
	"slices"

	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
)

// rows computes rows of a head.
type rows struct {
	n     *Network
	exec  *nn.Exec
	pages nn.Pages

	// The pass under way.
	laid        []grow.Rows
	forest      nn.Forest
	tokens      []int32
	first       []int // of each sequence, its first row
	taps, fused nn.Buffer
	gBuf        nn.Buffer
	g           nn.Mat      // features of all rows
	xBufs       []nn.Buffer // states of each pass of a draft: children's features are read there
	step        int         // of the draft, whose first pass is 0
	bufs        Buffers
	logits      output.Logits
	x           nn.Mat      // outputs of all rows
	router      []par.Phase // of the Run to come; may be none
	firstLogits []int       // of each sequence, the first of its rows' logits
}

func newRows(n *Network, pool *par.Pool) *rows {
	return &rows{n: n, exec: nn.NewExec(pool), pages: n.Pages()}
}

func (r *rows) Taps() []int  { return r.n.Taps }
func (r *rows) Context() int { return 0 }
func (r *rows) NewText() *grow.Text {
	o := sequence.TextOptions{Layers: len(r.n.Taps), Ahead: true, Rows: 1, Window: r.n.Config.Context}
	return &grow.Text{Text: sequence.NewText(o, r.pages.NewCache())}
}

// Keeps: a drafted row is made of the head's own state, that of the committed token of the
// target's.
func (r *rows) Keeps() bool { return false }

// Prepare makes the features: of rows of text from the target's taps, of drafted ones from the
// states of their parents' rows.
func (r *rows) Prepare(laid []grow.Rows) {
	n := r.n
	r.laid = laid
	r.forest.Reset()
	r.tokens, r.first = r.tokens[:0], r.first[:0]
	r.step++
	if len(laid) == 0 || laid[0].From == 0 { // drafts that are made together begin together
		r.step = 0
	}
	known := 0
	for i := range laid {
		l := &laid[i]
		r.first = append(r.first, len(r.tokens))
		r.forest.Add(l.Text.Cache, l.Tree, l.From)
		l.Text.Cache.Reserve(l.From, l.Tree.Len()-l.From)
		r.tokens = append(r.tokens, l.Tree.Token[l.From:]...)
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
		n.Features(r.exec, taps, fused, &r.bufs)
	}
	if r.asked() {
		for len(r.xBufs) <= r.step {
			r.xBufs = append(r.xBufs, nn.Buffer{})
		}
		r.x = r.xBufs[r.step].Mat(len(r.tokens), n.Hidden)
	}
	r.g, known = r.gBuf.Mat(len(r.tokens), n.Hidden), 0
	for i := range laid {
		l := &laid[i]
		for node := l.From; node < l.Tree.Len(); node++ {
			row := r.g.Row(r.first[i] + node - l.From)
			if node < l.Known {
				copy(row, fused.Row(known))
				known++
			} else {
				copy(row, l.Text.States[l.Tree.Parent[node]])
			}
		}
	}
}

// RouterInput is a row's output or its feature.
func (r *rows) RouterInput(i, k int, output bool) []float32 {
	l, from := &r.laid[i], r.g
	if output {
		from = r.x
	}
	return from.Row(r.first[i] + int(l.Asked[k]) - l.From)
}

// Follow is for a router, which chooses the logits that are computed.
func (r *rows) Follow(phases []par.Phase) { r.router = phases }

// asked reports whether logits of any row are wanted.
func (r *rows) asked() bool {
	return slices.ContainsFunc(r.laid, func(l grow.Rows) bool { return len(l.Asked) > 0 })
}

// Run computes the rows that were prepared.
func (r *rows) Run(ctx context.Context) error {
	router := r.router
	r.router = nil
	if err := ctx.Err(); err != nil {
		for i := range r.laid {
			r.laid[i].Text.Cache.Reserve(r.laid[i].From, 0)
		}
		return err
	}
	n := r.n
	r.logits.Reset()
	if !r.asked() {
		r.exec.Hold()
		n.Keep(r.exec, &r.forest, r.tokens, r.g, &r.bufs)
		r.exec.Release()
		return nil
	}
	x := r.x
	r.exec.Hold()
	n.Run(r.exec, &r.forest, r.tokens, r.g, x, &r.bufs)
	if len(router) > 0 { // which logits are computed is not known before it is done
		r.exec.Follow(router)
		r.exec.Release()
		r.exec.Hold()
	}

	r.firstLogits = r.firstLogits[:0]
	for i := range r.laid {
		l := &r.laid[i]
		r.firstLogits = append(r.firstLogits, r.logits.Len())
		if len(l.Asked) == 0 {
			continue
		}
		rows := l.Tree.Len() - l.From
		keep(l, x.Slice(r.first[i], r.first[i]+rows))
		for k, node := range l.Asked {
			var list *output.Shortlist
			if l.Lists != nil {
				list = l.Lists[k]
			}
			r.logits.Add(r.first[i]+int(node)-l.From, list)
		}
	}
	r.logits.Run(r.exec, x, n.Norm, &n.Head)
	r.exec.Release()
	return nil
}

func (r *rows) Logits(i, k int) []float32 { return r.logits.Row(r.firstLogits[i] + k) }

// keep notes where the states of a draft's rows are: they are the features of the rows' children.
func keep(l *grow.Rows, x nn.Mat) {
	l.Text.States = l.Text.States[:l.From]
	for i := range x.Rows {
		l.Text.States = append(l.Text.States, x.Row(i))
	}
}
