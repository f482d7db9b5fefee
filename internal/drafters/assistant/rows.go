package assistant

import (
	"context"
	"math"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
)

// rows computes rows of an assistant, for package grow. Text needs none: of it the state of the last token alone counts, and the
// text's cache, which has no layers, only counts its tokens.
type rows struct {
	n     *Network
	exec  *nn.Exec
	pages nn.Pages  // of texts
	read  *nn.Pages // the target's

	// The pass under way.
	laid        []grow.Rows
	forest      nn.Forest
	tokens      []int32
	first       []int // of each sequence, its first row
	from        []int // and that row's node
	tap, normed nn.Buffer
	sBuf, xBuf  nn.Buffer
	s           nn.Mat      // states that rows read
	x           nn.Mat      // outputs of rows, before the last norm
	nextBufs    []nn.Buffer // of each pass of a draft, the states that its rows give their children
	step        int         // of the draft, whose first pass is 0
	bufs        Buffers
	logits      output.Logits
	router      []par.Phase // of the Run to come; may be none
	firstLogits []int       // of each sequence, the first of its rows' logits
}

func newRows(n *Network, pool *par.Pool, read *nn.Pages) *rows {
	return &rows{n: n, exec: nn.NewExec(pool), read: read}
}

func (r *rows) Taps() []int  { return r.n.Taps }
func (r *rows) Context() int { return 0 }

// Keeps: a drafted row's state is the assistant's own guess.
func (r *rows) Keeps() bool { return false }

// NewText is one of which the tap of the last token is wanted: of a cached prefix the target computes that row again.
func (r *rows) NewText() *grow.Text {
	o := sequence.TextOptions{Layers: 1, Ahead: true, Rows: 1, Window: math.MaxInt32, Alone: true, Recall: 1}
	return &grow.Text{Text: sequence.NewText(o, r.pages.NewCache())}
}

// Reads reports whether a cache is one of the target's, and has a row for every token of the text.
func (r *rows) Reads(c draft.Cache, tokens int) bool {
	cache, ok := c.(*nn.Cache)
	return ok && cache.Pages() == r.read && cache.Len() == tokens && tokens > 0
}

// Prepare lays out the rows of roots and of drafted tokens, and their states.
func (r *rows) Prepare(laid []grow.Rows) {
	n := r.n
	r.laid = laid
	r.forest.Reset()
	r.tokens = r.tokens[:0]
	r.first, r.from = r.first[:0], r.from[:0]
	r.step++
	if len(laid) == 0 || laid[0].From == 0 { // drafts that are made together begin together
		r.step = 0
	}
	roots := 0
	for i := range laid {
		l := &laid[i]
		l.Text.Cache.Reserve(l.From, l.Tree.Len()-l.From)
		from := max(l.From, l.Known-1)
		if len(l.Asked) == 0 {
			from = l.Tree.Len()
		}
		r.first, r.from = append(r.first, len(r.tokens)), append(r.from, from)
		if from == l.Tree.Len() {
			continue
		}
		r.forest.AddReaders(l.Cache.(*nn.Cache), l.Tree.Len()-from)
		r.tokens = append(r.tokens, l.Tree.Token[from:]...)
		if from < l.Known {
			roots++
		}
	}
	tap, root := r.tap.Mat(roots, n.Backbone), 0
	for i := range laid {
		if l := &laid[i]; r.from[i] < l.Known {
			copy(tap.Row(root), l.Text.Taps[(l.Known-1)*n.Backbone:])
			root++
		}
	}
	normed := r.normed.Mat(roots, n.Backbone)
	if roots > 0 {
		r.exec.Normalise(&n.TargetNorm, tap, normed)
	}
	r.s = r.sBuf.Mat(len(r.tokens), n.Backbone)
	r.x = r.xBuf.Mat(len(r.tokens), n.Hidden)
	root = 0
	for i := range laid {
		l := &laid[i]
		for node := r.from[i]; node < l.Tree.Len(); node++ {
			row := r.s.Row(r.first[i] + node - r.from[i])
			if node < l.Known {
				copy(row, normed.Row(root))
				root++
			} else {
				copy(row, l.Text.States[l.Tree.Parent[node]])
			}
		}
	}
}

// RouterInput is a row's output: clusters are scored by it.
func (r *rows) RouterInput(i, k int, _ bool) []float32 { return r.x.Row(r.row(i, r.laid[i].Asked[k])) }

// row is that of a node of the i-th sequence.
func (r *rows) row(i int, node int32) int { return r.first[i] + int(node) - r.from[i] }

// Follow is for what chooses the logits that are computed.
func (r *rows) Follow(phases []par.Phase) { r.router = phases }

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
	r.logits.Reset()
	if len(r.tokens) == 0 {
		return nil
	}
	for len(r.nextBufs) <= r.step {
		r.nextBufs = append(r.nextBufs, nn.Buffer{})
	}
	next := r.nextBufs[r.step].Mat(len(r.tokens), r.n.Backbone)
	r.exec.Hold()
	r.n.Run(r.exec, &r.forest, r.tokens, r.s, r.x, &r.bufs)
	r.n.Next(r.exec, r.x, next)
	if len(router) > 0 { // which logits are computed is not known before it is done
		r.exec.Follow(router)
		r.exec.Release()
		r.exec.Hold()
	}
	r.firstLogits = r.firstLogits[:0]
	for i := range r.laid {
		l := &r.laid[i]
		r.firstLogits = append(r.firstLogits, r.logits.Len())
		r.keep(i, next)
		for k, node := range l.Asked {
			var list *output.Shortlist
			if l.Lists != nil {
				list = l.Lists[k]
			}
			r.logits.Add(r.row(i, node), list)
		}
	}
	r.logits.Run(r.exec, r.x, &r.n.Norm, &r.n.Head)
	r.exec.Release()
	return nil
}

func (r *rows) Logits(i, k int) []float32 { return r.logits.Row(r.firstLogits[i] + k) }

// keep notes where the states are that rows of the i-th sequence give their children. Nodes of text before the root have none.
func (r *rows) keep(i int, next nn.Mat) {
	l := &r.laid[i]
	states := slices.Grow(l.Text.States[:min(l.From, len(l.Text.States))], l.Tree.Len())
	for len(states) < r.from[i] {
		states = append(states, nil)
	}
	for node := r.from[i]; node < l.Tree.Len(); node++ {
		states = append(states, next.Row(r.row(i, int32(node))))
	}
	l.Text.States = states
}
