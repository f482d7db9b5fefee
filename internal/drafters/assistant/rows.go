package assistant

import (
	"context"
	"math"

	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
)

// rows computes rows of an assistant for package grow. Text needs no rows: only the state of its
// last token counts. The text's cache has no layers and only counts its tokens.
type rows struct {
	grow.StateRows
	n     *Network
	pages nn.Pages  // of texts
	read  *nn.Pages // the target's

	// The current pass.
	tap, normed nn.Buffer
	sBuf, xBuf  nn.Buffer
	s           nn.Mat // states that the rows read
	x           nn.Mat // outputs of the rows, before the last norm
	bufs        Buffers
}

func newRows(n *Network, pool *par.Pool, read *nn.Pages) *rows {
	return &rows{n: n, StateRows: grow.StateRows{Exec: nn.NewExec(pool)}, read: read}
}

func (r *rows) Taps() []int  { return r.n.Taps }
func (r *rows) Context() int { return 0 }

// Keeps is false: a drafted row's state is the assistant's own guess.
func (r *rows) Keeps() bool { return false }

// NewText returns a text that needs the tap of its last token: the target computes that row of a cached prefix again.
func (r *rows) NewText() *grow.Text {
	o := sequence.TextOptions{Layers: 1, Ahead: true, Rows: 1, Window: math.MaxInt32, Alone: true, Recall: 1}
	return &grow.Text{Text: sequence.NewText(o, r.pages.NewCache())}
}

// Reads reports whether a cache is one of the target's and has a row for every token of the text.
func (r *rows) Reads(c any, tokens int) bool {
	cache, ok := c.(*nn.Cache)
	return ok && cache.Pages() == r.read && cache.Len() == tokens && tokens > 0
}

// Prepare lays out the rows of roots and of drafted tokens, with their states.
func (r *rows) Prepare(laid []grow.Rows) {
	n := r.n
	r.Begin(laid)
	roots := r.tap.Mat(len(laid), n.TargetHidden)
	count := 0
	for i := range laid {
		l := &laid[i]
		l.Text.Cache.Reserve(l.From, l.Tree.Len()-l.From)
		from := max(l.From, l.Known-1)
		if len(l.Asked) == 0 {
			from = l.Tree.Len()
		}
		r.Add(l, from)
		if from == l.Tree.Len() {
			continue
		}
		r.Forest.AddReaders(l.Cache.(*nn.Cache), l.Tree.Len()-from)
		if from < l.Known {
			copy(roots.Row(count), l.Text.Taps[(l.Known-1)*n.TargetHidden:])
			count++
		}
	}
	normed := r.normed.Mat(count, n.TargetHidden)
	if count > 0 {
		r.Exec.Normalise(&n.TargetNorm, roots.Slice(0, count), normed)
	}
	r.s = r.sBuf.Mat(len(r.Tokens), n.TargetHidden)
	r.x = r.xBuf.Mat(len(r.Tokens), n.Hidden)
	r.Inputs(normed, r.s)
}

// RouterInput is a row's output, by which clusters are scored.
func (r *rows) RouterInput(i, k int, _ bool) []float32 { return r.x.Row(r.Asked(i, k)) }

// Run computes the rows that were prepared.
func (r *rows) Run(ctx context.Context) error {
	if err := r.Start(ctx); err != nil || len(r.Tokens) == 0 {
		return err
	}
	next := r.States(r.n.TargetHidden)
	r.Exec.Hold()
	r.n.Run(r.Exec, &r.Forest, r.Tokens, r.s, r.x, &r.bufs)
	r.n.Next(r.Exec, r.x, next)
	r.RunRouter()
	r.Answer(next, r.x, &r.n.Norm, &r.n.Head)
	r.Exec.Release()
	return nil
}
