// Rows of text and of blocks for package grow: where the features of each come from, and what is
// kept of a sequence.

package falcon

import (
	"context"
	"slices"

	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
	"github.com/grovellm/grove/tree"
)

// rows computes rows of a head. A node of a draft whose depth is a multiple of k begins a block:
// the rows of the last k tokens of its path, with the states of the block before as features. The
// other rows of that block predict what follows the nodes below, up to the next multiple.
type rows struct {
	n     *Network
	exec  *nn.Exec
	pages nn.Pages

	// The current pass.
	laid   []grow.Rows
	forest nn.Forest
	tokens []int32
	before []int32     // of each row of a recurrent head: see Order.Set
	carry  [][]float32 // the same
	order  Order
	taps   nn.Buffer
	g      nn.Buffer // features of all rows
	bufs   Buffers
	passes []*pass // of the current draft
	step   int     // of the draft; its first pass is 0
}

// pass is the memory of one pass. It lasts as long as the draft.
type pass struct {
	x, memory, asked nn.Buffer
	logits           output.Logits
}

// text is what a draft keeps of a sequence in addition to its cache.
type text struct {
	tree   tree.Tree   // rows: first those of text that are not in the cache, then those of blocks
	state  [][]float32 // of each row
	memory [][]float32 // of each row of a recurrent head: the LSTM's state
	logits []logitsAt  // of each row; zero: not computed yet
	row    []int32     // of each node of the draft, the row that predicts what follows it
	slot   []int32     // of each node of the draft, the index of that row in its block
	path   []int32

	from  int // number of rows of earlier passes
	first int // index in the pass of the first row after those
	asked int // with shortlists, index of the first logits of the requested nodes

	kept, next memory
}

// logitsAt locates the logits of a row.
type logitsAt struct {
	pass   *pass
	number int
}

// memory is the LSTM's state after the rows in the cache up to a position.
type memory struct {
	at    int
	state []float32
}

func newRows(n *Network, pool *par.Pool) *rows {
	return &rows{n: n, exec: nn.NewExec(pool), pages: n.Pages()}
}

func (r *rows) Taps() []int { return r.n.Taps }

func (r *rows) Context() int { return 0 }

func (r *rows) NewText() *grow.Text {
	n := r.n
	o := sequence.TextOptions{
		Layers: 1, Ahead: true, Rows: 1, Window: max(n.Config.Context, n.Block), Block: n.Block, Alone: n.Recurrent,
	}
	return &grow.Text{Text: sequence.NewText(o, r.pages.NewCache()), More: new(text)}
}

// Keeps is false: a drafted row comes from the head's own states, a committed token's row from the target's.
func (r *rows) Keeps() bool { return false }

// Known reports whether a row came with its children's candidates, as the rows of a block do except the last.
func (r *rows) Known(t *grow.Text, row int32) bool {
	return int(t.More.(*text).slot[row])+1 < r.n.Block
}

// RouterInput is nil: only EAGLE heads have routers.
func (r *rows) RouterInput(int, int, bool) []float32 { return nil }
func (r *rows) Follow([]par.Phase)                   {}

// Prepare lays out the rows and computes their features.
func (r *rows) Prepare(laid []grow.Rows) {
	r.laid = laid
	r.forest.Reset()
	r.tokens = r.tokens[:0]
	r.before = r.before[:0]
	r.carry = r.carry[:0]
	r.step++
	if len(laid) == 0 || laid[0].From == 0 { // drafts that are made together start together
		r.step = 0
	}
	known := 0
	for i := range laid {
		l, t := &laid[i], laid[i].Text.More.(*text)
		t.from, t.first = t.tree.Len(), len(r.tokens)
		if l.From == 0 {
			known += l.Known
			r.begin(l, t)
		} else {
			for node := l.From; node < l.Tree.Len(); node++ {
				r.extend(l, t, node)
			}
		}
		if t.tree.Len() > t.from {
			r.forest.Add(l.Text.Cache, &t.tree, t.from)
			l.Text.Cache.Reserve(t.from, t.tree.Len()-t.from)
			r.tokens = append(r.tokens, t.tree.Token[t.from:]...)
		}
	}
	g := r.g.Mat(len(r.tokens), r.n.Hidden)
	if known > 0 {
		taps, at := r.taps.Mat(known, r.n.Hidden), 0
		for i := range laid {
			at += copy(taps.Data[at:], laid[i].Text.Taps[:laid[i].Known*r.n.Hidden])
		}
		r.n.Features(r.exec, taps, g.Slice(0, known))
		return
	}
	for i := range laid {
		t := laid[i].Text.More.(*text)
		for row := t.from; row < t.tree.Len(); row++ {
			copy(g.Row(t.first+row-t.from), t.state[r.above(t, row)])
		}
	}
}

// begin lays out the rows of text that are not in the cache. If any logits are requested, the last
// k of them are a block that drafts.
func (r *rows) begin(l *grow.Rows, t *text) {
	n, k := l.Known, r.n.Block
	t.from = 0
	r.n.LayOut(&t.tree, l.Tree.Token[:n], len(l.Asked) > 0)
	t.row, t.slot = t.row[:0], t.slot[:0]
	for node := range n { // the last one is the root
		t.row, t.slot = append(t.row, int32(max(n-k, 0))), append(t.slot, int32(min(node+1-n, 0)))
	}
	t.state = t.state[:0]
	t.memory = t.memory[:0]
	t.logits = t.logits[:0]
	if !r.n.Recurrent {
		return
	}
	at := l.Text.Cache.Position()
	switch {
	case at == 0:
		t.kept = memory{state: t.kept.state[:0]}
	case at == t.next.at:
		t.kept, t.next = t.next, t.kept
	}
	r.follow(t.kept.state)
	for range n - 1 {
		r.before = append(r.before, int32(len(r.before)-1))
	}
}

// follow records that the next row of the pass follows a row of an earlier pass, whose LSTM state
// is given.
func (r *rows) follow(state []float32) {
	if len(state) == 0 {
		state = nil
	}
	r.before = append(r.before, int32(-1-len(r.carry)))
	r.carry = append(r.carry, state)
}

// extend assigns a node of the draft the row that predicts what follows it: the next row of the
// block, or the first row of a new one.
func (r *rows) extend(l *grow.Rows, t *text, node int) {
	k, parent := r.n.Block, l.Tree.Parent[node]
	row, slot := t.row[parent]+1, t.slot[parent]+1
	if int(slot) == k {
		t.path = append(t.path[:0], l.Tree.Token[node])
		for p := parent; len(t.path) < k; p = l.Tree.Parent[p] {
			t.path = append(t.path, l.Tree.Token[p])
		}
		slices.Reverse(t.path)
		if r.n.Recurrent {
			first := len(r.before)
			r.follow(t.memory[row-1])
			for i := range k - 1 {
				r.before = append(r.before, int32(first+i))
			}
		}
		row, slot = int32(r.n.Branch(&t.tree, int(row-1), t.path)), 0
	}
	t.row, t.slot = append(t.row, row), append(t.slot, slot)
}

// above returns the row whose state is the feature of a row of a block: k rows up the path.
func (r *rows) above(t *text, row int) int {
	for range r.n.Block {
		row = int(t.tree.Parent[row])
	}
	return row
}

// Run computes the rows that were prepared. If logits cover all tokens, those of all rows of a
// block are computed at once.
func (r *rows) Run(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		for i := range r.laid {
			t := r.laid[i].Text.More.(*text)
			r.laid[i].Text.Cache.Reserve(t.from, 0)
		}
		return err
	}
	for len(r.passes) <= r.step {
		r.passes = append(r.passes, new(pass))
	}
	p := r.passes[r.step]
	if len(r.tokens) > 0 {
		r.compute(p)
	}
	r.head(p)
	return nil
}

// compute runs the rows of the pass.
func (r *rows) compute(p *pass) {
	n := r.n
	g, o := r.g.Mat(len(r.tokens), n.Hidden), (*Order)(nil)
	if n.Recurrent {
		o = &r.order
		o.Set(r.before, r.carry)
	}
	drafts := slices.ContainsFunc(r.laid, func(l grow.Rows) bool { return len(l.Asked) > 0 })
	x := p.x.Mat(len(r.tokens), n.Hidden)
	if drafts {
		n.Run(r.exec, &r.forest, r.tokens, g, o, x, &r.bufs)
	} else {
		n.Keep(r.exec, &r.forest, r.tokens, g, o, &r.bufs)
	}
	var states nn.Mat
	if o != nil {
		states = p.memory.Mat(len(r.tokens), 4*n.Hidden)
	}
	for i := range r.laid {
		l, t := &r.laid[i], r.laid[i].Text.More.(*text)
		for row := t.from; row < t.tree.Len(); row++ {
			at := t.first + row - t.from
			t.state, t.logits = append(t.state, x.Row(at)), append(t.logits, logitsAt{})
			if o != nil {
				t.memory = append(t.memory, o.State(states.Row(at)[:0], at))
			}
		}
		if o != nil && l.From == 0 {
			keep := l.Known
			if len(l.Asked) > 0 {
				keep = l.Text.Whole(l.Known)
			}
			t.next.at = -1
			if keep > 0 {
				t.next = memory{l.Text.Cache.Position() + keep, append(t.next.state[:0], t.memory[keep-1]...)}
			}
		}
	}
}

// head computes logits: of the new rows that predict, or, with shortlists, of the requested nodes.
func (r *rows) head(p *pass) {
	p.logits.Reset()
	wanted := 0
	for i := range r.laid {
		wanted += max(r.laid[i].Text.More.(*text).tree.Len(), len(r.laid[i].Asked))
	}
	asked := p.asked.Mat(wanted, r.n.Hidden)
	add := func(state []float32, list *output.Shortlist) {
		copy(asked.Row(p.logits.Len()), state)
		p.logits.Add(p.logits.Len(), list)
	}
	for i := range r.laid {
		l, t := &r.laid[i], r.laid[i].Text.More.(*text)
		t.asked = p.logits.Len()
		switch {
		case len(l.Asked) == 0:
		case l.Lists != nil:
			for k, node := range l.Asked {
				add(t.state[t.row[node]], l.Lists[k])
			}
		default:
			for row := max(t.from, int(t.row[l.Known-1])); row < t.tree.Len(); row++ {
				t.logits[row] = logitsAt{p, p.logits.Len()}
				add(t.state[row], nil)
			}
		}
	}
	if p.logits.Len() > 0 {
		p.logits.Run(r.exec, asked, nil, &r.n.Head)
	}
}

// Logits returns the logits of what follows the i-th sequence's k-th requested node.
func (r *rows) Logits(i, k int) []float32 {
	l, t := &r.laid[i], r.laid[i].Text.More.(*text)
	if l.Lists != nil {
		return r.passes[r.step].logits.Row(t.asked + k)
	}
	at := t.logits[t.row[l.Asked[k]]]
	return at.pass.logits.Row(at.number)
}
