package grow

import (
	"context"
	"slices"

	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
)

// StateRows is what Models share whose drafted rows read the states of their parents' rows. Its
// methods are called in this order: Begin, Add for each sequence, Inputs; then Start, RunRouter and
// Answer.
type StateRows struct {
	Exec   *nn.Exec
	Forest nn.Forest // of the pass
	Tokens []int32   // of its rows

	laid        []Rows
	first       []int       // of each sequence, its first row
	from        []int       // and that row's node
	step        int         // of the draft, whose first pass is 0
	states      []nn.Buffer // of each pass of a draft: rows of later ones read them
	router      []par.Phase // of the Run to come; may be none
	logits      output.Logits
	firstLogits []int // of each sequence, the first of its rows' logits
}

// Begin begins to lay out a pass.
func (r *StateRows) Begin(laid []Rows) {
	r.laid = laid
	r.router = nil
	r.Forest.Reset()
	r.Tokens = r.Tokens[:0]
	r.first, r.from = r.first[:0], r.from[:0]
	r.step++
	if len(laid) == 0 || laid[0].From == 0 { // drafts that are made together begin together
		r.step = 0
	}
}

// Add adds the rows of the next sequence's nodes from one on.
func (r *StateRows) Add(l *Rows, from int) {
	r.first, r.from = append(r.first, len(r.Tokens)), append(r.from, from)
	r.Tokens = append(r.Tokens, l.Tree.Token[from:]...)
}

// States is memory for the states of the pass's rows, which stays until the draft is done.
func (r *StateRows) States(width int) nn.Mat {
	for len(r.states) <= r.step {
		r.states = append(r.states, nn.Buffer{})
	}
	return r.states[r.step].Mat(len(r.Tokens), width)
}

// Inputs sets what the rows read: rows of text those of text, one after the other, drafted ones their parents' states.
func (r *StateRows) Inputs(text, inputs nn.Mat) {
	at := 0
	for i := range r.laid {
		l := &r.laid[i]
		for node := r.from[i]; node < l.Tree.Len(); node++ {
			row := inputs.Row(r.Row(i, int32(node)))
			if node < l.Known {
				copy(row, text.Row(at))
				at++
			} else {
				copy(row, l.Text.States[l.Tree.Parent[node]])
			}
		}
	}
}

// Row is the row of a node of the i-th sequence.
func (r *StateRows) Row(i int, node int32) int { return r.first[i] + int(node) - r.from[i] }

// Asked is the row of the k-th node of the i-th sequence whose logits are wanted.
func (r *StateRows) Asked(i, k int) int { return r.Row(i, r.laid[i].Asked[k]) }

// Follow is for a router, which chooses the logits that are computed.
func (r *StateRows) Follow(phases []par.Phase) { r.router = phases }

// Start begins to run the pass. If ctx is done it gives back the memory of its rows.
func (r *StateRows) Start(ctx context.Context) error {
	r.logits.Reset()
	err := ctx.Err()
	if err == nil {
		return nil
	}
	for i := range r.laid {
		r.laid[i].Text.Cache.Reserve(r.laid[i].From, 0)
	}
	return err
}

// RunRouter does what Follow was given.
func (r *StateRows) RunRouter() {
	router := r.router
	r.router = nil
	if len(router) > 0 { // which logits are computed is not known before it is done
		r.Exec.Follow(router)
		r.Exec.Release()
		r.Exec.Hold()
	}
}

// Answer keeps the states that rows give their children, and computes the logits that are wanted, of outputs x.
func (r *StateRows) Answer(states, x nn.Mat, norm *nn.Norm, head *nn.Linear) {
	r.firstLogits = r.firstLogits[:0]
	for i := range r.laid {
		l := &r.laid[i]
		r.firstLogits = append(r.firstLogits, r.logits.Len())
		if len(l.Asked) == 0 {
			continue
		}
		r.keep(i, states)
		for k, node := range l.Asked {
			var list *output.Shortlist
			if l.Lists != nil {
				list = l.Lists[k]
			}
			r.logits.Add(r.Row(i, node), list)
		}
	}
	r.logits.Run(r.Exec, x, norm, head)
}

// keep notes where the states of the i-th sequence's rows are. Nodes that had no row have none.
func (r *StateRows) keep(i int, states nn.Mat) {
	l := &r.laid[i]
	list := slices.Grow(l.Text.States[:min(l.From, len(l.Text.States))], l.Tree.Len())
	for len(list) < r.from[i] {
		list = append(list, nil)
	}
	for node := r.from[i]; node < l.Tree.Len(); node++ {
		list = append(list, states.Row(r.Row(i, int32(node))))
	}
	l.Text.States = list
}

// Logits are those of the k-th asked row of the i-th sequence.
func (r *StateRows) Logits(i, k int) []float32 { return r.logits.Row(r.firstLogits[i] + k) }
