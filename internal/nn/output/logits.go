package output

import "github.com/grovellm/grove/internal/nn"

// Logits are the logits of some rows of a pass, for all tokens or for a shortlist.
type Logits struct {
	// for each row added: its number among those for all tokens, or -1 less its number among those with a list
	at             []int32
	all, some      []int32 // rows of x
	lists          []*Shortlist
	out, few       nn.Buffer
	outMat, fewMat nn.Mat
	products       Lists
}

// Reset drops all rows.
func (l *Logits) Reset() {
	l.at = l.at[:0]
	l.all = l.all[:0]
	l.some = l.some[:0]
	l.lists = l.lists[:0]
}

// Add requests the logits of a row, for the tokens of a list or, without one, for all.
func (l *Logits) Add(row int, list *Shortlist) {
	if list == nil {
		l.at = append(l.at, int32(len(l.all)))
		l.all = append(l.all, int32(row))
		return
	}
	l.at = append(l.at, int32(-1-len(l.some)))
	l.some = append(l.some, int32(row))
	l.lists = append(l.lists, list)
}

// Len is the number of rows added.
func (l *Logits) Len() int { return len(l.at) }

// Run computes the logits of the rows of x that were added, under a norm, which may be nil: Head of norm(x).
func (l *Logits) Run(e *nn.Exec, x nn.Mat, norm *nn.Norm, head *nn.Linear) {
	n, width := len(l.all), 0
	for _, list := range l.lists {
		width = max(width, list.Width())
	}
	l.outMat, l.fewMat = nn.Mat{}, nn.Mat{}
	e.Hold()
	if n > 0 {
		l.outMat = l.out.Mat(n, head.W.Out())
		e.Linear(nn.Source{X: x, At: l.all, Norm: norm}, nn.Proj{Linear: head, Dst: l.outMat})
	}
	if len(l.some) > 0 {
		l.fewMat = l.few.Mat(len(l.some), width)
		l.products.Run(e, nn.Source{X: x, At: l.some, Norm: norm}, l.lists, l.fewMat)
	}
	e.Release()
}

// Row returns the logits of the i-th row added, or the results that its shortlist asks for.
func (l *Logits) Row(i int) []float32 {
	if at := int(l.at[i]); at < 0 {
		return l.fewMat.Row(-1 - at)[:l.lists[-1-at].Width()]
	} else {
		return l.outMat.Row(at)
	}
}
