package merge

import (
	"errors"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/sequence"
)

// Commit passes the rows to every part, even if one fails: the others go on with the text (section 7).
func (d *drafter) Commit(rows []draft.Rows) error {
	for i := range rows {
		if s := rows[i].State.(*state); s.proposed {
			d.learn(s, &rows[i])
			s.proposed = false
		}
	}
	var errs []error
	for k := range d.parts {
		p := &d.parts[k]
		p.rows = append(p.rows[:0], rows...)
		for len(p.passes) < len(rows) {
			p.passes = append(p.passes, sequence.PassOf{Taps: p.taps})
		}
		for i := range p.rows {
			r := &p.rows[i]
			r.State = r.State.(*state).parts[k]
			if r.Pass != nil {
				p.passes[i].Pass = r.Pass
				r.Pass = &p.passes[i]
			}
		}
		if err := p.Drafter.Commit(p.rows); err != nil {
			errs = append(errs, d.fault(k, err))
		}
	}
	return errors.Join(errs...)
}

// learn counts which nodes of each part's tree the target chose, among the children of all nodes on
// its path. The tree is the part's whole proposal: its nodes count whether they were verified or
// not.
func (d *drafter) learn(s *state, r *draft.Rows) {
	if r.Next < 0 || len(r.Tokens) == 0 || r.Tokens[0] != s.root {
		return
	}
	for k, t := range s.trees {
		table := &d.tables[s.class][k]
		d.walk.Start(t)
		for i := range r.Tokens {
			token := r.Next
			if i+1 < len(r.Tokens) {
				token = r.Tokens[i+1]
			}
			for _, parent := range d.walk.Nodes() {
				d.children = t.Children(int(parent), d.children[:0])
				for _, n := range d.children {
					table.Observe(int(t.Depth[n]), s.claims[k][n], t.Token[n] == token)
				}
			}
			if !d.walk.Follow(token) {
				break
			}
		}
		table.Fit()
	}
}
