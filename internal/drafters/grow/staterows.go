package grow

import (
	"context"
	"slices"

	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
)

// StateRows is shared by Models whose drafted rows read the states of their parents' rows. Its
// methods are called in this order: Begin, Add for each sequence, Inputs; then Start, RunRouter and
// Answer.
type StateRows struct {
	Exec   *nn.Exec
	Forest nn.Forest // of the pass
	Tokens []int32   // of its rows

	laid        []Rows
	first       []int       // of each sequence: its first row
	from        []int       // of each sequence: that row's node
	step        int         // pass of the draft, from 0
	states      []nn.Buffer // of each pass of a draft: rows of later passes read them
	router      []par.Phase // of the next Run; may be empty
	logits      output.Logits
	firstLogits []int // of each sequence: the first of its rows' logits
}

// Begin starts the layout of a pass.
func (r *StateRows) Begin(laid []Rows) {
	r.laid = laid
	r.router = nil
	r.Forest.Reset()
	r.Tokens = r.Tokens[:0]
	r.first, r.from = r.first[:0], r.from[:0]
	r.step++
	if len(laid) == 0 || laid[0].From == 0 { // drafts of the same batch begin together
		r.step = 0
	}
}

// Add adds the rows of the next sequence's nodes, beginning with node from.
func (r *StateRows) Add(l *Rows, from int) {
	r.first, r.from = append(r.first, len(r.Tokens)), append(r.from, from)
	r.Tokens = append(r.Tokens, l.Tree.Token[from:]...)
}

// States returns memory for the states of the pass's rows, which stays valid until the draft is done.
func (r *StateRows) States(width int) nn.Mat {
	for len(r.states) <= r.step {
		r.states = append(r.states, nn.Buffer{})
	}
	return r.states[r.step].Mat(len(r.Tokens), width)
}

// Inputs sets the rows' inputs: for rows of text those in text, in order, and for drafted rows their parents' states.
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

// Row returns the row of a node of the i-th sequence.
func (r *StateRows) Row(i int, node int32) int { return r.first[i] + int(node) - r.from[i] }

// Asked returns the row of the i-th sequence's k-th node whose logits are wanted.
func (r *StateRows) Asked(i, k int) int { return r.Row(i, r.laid[i].Asked[k]) }

// Follow sets the phases of a router, which chooses the logits to compute.
func (r *StateRows) Follow(phases []par.Phase) { r.router = phases }

// Start starts the pass. If ctx is done it frees the memory of the pass's rows.
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

// RunRouter runs the phases that Follow was given.
func (r *StateRows) RunRouter() {
	router := r.router
	r.router = nil
	if len(router) > 0 { // only after it is it known which logits to compute
		r.Exec.Follow(router)
		r.Exec.Release()
		r.Exec.Hold()
	}
}

// Answer keeps the states that children of rows will read, and computes the wanted logits from outputs x.
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

// keep records where the states of the i-th sequence's rows are. Nodes without a row have none.
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

// Logits returns the logits of the i-th sequence's k-th asked row.
func (r *StateRows) Logits(i, k int) []float32 { return r.logits.Row(r.firstLogits[i] + k) }
