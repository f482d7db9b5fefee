// The output head over part of the vocabulary: package shortlist.

package onepass

import (
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
)

// listing has the shortlists of a proposal.
type listing struct {
	queries  []shortlist.Query
	rows     []int32             // rows of the queries, or the wanted rows of a depth
	chosen   []*shortlist.List   // of each query
	lists    []*shortlist.List   // of each wanted row
	listed   []*output.Shortlist // the same, for their products
	products output.Lists
}

// head computes the logits of all blocks' wanted rows.
func (d *Drafter) head(rows nn.Mat) {
	norm, head, _ := d.Model.Output()
	src := nn.Source{X: rows, Norm: norm}
	if len(d.Methods) == 0 {
		d.out = d.logits.Mat(rows.Rows, d.outputs)
		if heads, ok := d.Model.(Heads); ok && len(heads.Heads()) > 0 {
			d.eachHead(src, heads.Heads())
		} else {
			d.exec.Linear(src, nn.Proj{Linear: head, Dst: d.out})
		}
		return
	}
	d.lists = slices.Grow(d.lists[:0], rows.Rows)[:rows.Rows]
	for i, m := range d.Methods {
		d.queries, d.rows = d.queries[:0], d.rows[:0]
		for _, s := range d.live {
			for step := range s.depth {
				if len(d.Methods) == 1 || step == i {
					q := shortlist.Query{State: s.Words[i], Step: step, Token: s.request.Tree.Token[0]}
					d.queries = append(d.queries, q)
					d.rows = append(d.rows, int32(s.first+step))
				}
			}
		}
		d.chosen = slices.Grow(d.chosen[:0], len(d.queries))[:len(d.queries)]
		m.Choose(d.queries, d.chosen)
		for k, row := range d.rows {
			d.lists[row] = d.chosen[k]
		}
	}
	d.listed = d.listed[:0]
	for _, s := range d.live {
		s.lists = append(s.lists[:0], d.lists[s.first:s.first+s.depth]...)
	}
	width := 0
	for _, l := range d.lists {
		d.listed = append(d.listed, &l.Shortlist)
		width = max(width, l.Width())
		d.Stats.Row(l)
	}
	d.out = d.logits.Mat(rows.Rows, width)
	d.products.Run(d.exec, src, d.listed, d.out)
}

// eachHead multiplies the rows of each depth by its matrix. It computes depth by depth, and then
// sorts the results into the rows' order.
func (d *Drafter) eachHead(src nn.Source, heads []nn.Linear) {
	ordered := d.ordered.Mat(d.out.Rows, d.out.Cols)
	d.rows = d.rows[:0]
	for step := range heads {
		from := len(d.rows)
		for _, s := range d.live {
			if step < s.depth {
				d.rows = append(d.rows, int32(s.first+step))
			}
		}
		src.At = d.rows[from:]
		if len(src.At) > 0 {
			d.exec.Linear(src, nn.Proj{Linear: &heads[step], Dst: ordered.Slice(from, len(d.rows))})
		}
	}
	d.exec.PerRow(len(d.rows), d.out.Cols, (*ordering)(d))
}

// ordering is the drafter as the job that sorts the results of eachHead.
type ordering Drafter

func (d *ordering) Do(_, i int) {
	copy(d.out.Row(int(d.rows[i])), d.ordered.Mat(d.out.Rows, d.out.Cols).Row(i))
}

// list returns the shortlist of a depth, or nil if the head computes all tokens.
func (s *state) list(depth int) *shortlist.List {
	if len(s.Words) == 0 {
		return nil
	}
	return s.lists[depth-1]
}

// compare compares the lists of the last draft with the tokens that the target then chose.
func (s *state) compare(r *draft.Rows) {
	if r.Next >= 0 {
		for i, l := range s.lists[:min(len(s.lists), len(r.Tokens))] {
			next := r.Next
			if i+1 < len(r.Tokens) {
				next = r.Tokens[i+1]
			}
			s.d.Stats.Choice(l, next)
		}
	}
	s.lists = s.lists[:0]
}

// output returns the row of a depth.
func (s *state) output(depth int) textrank.Output {
	_, _, tokens := s.d.Model.Output()
	return textrank.Output{Logits: s.d.out.Row(s.first + depth - 1), List: s.list(depth), Tokens: tokens,
		Places: s.d.place}
}
