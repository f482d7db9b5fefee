// What the target made of a round, told to the parts and learned from.

package merge

import (
	"errors"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/tree"
)

// pass shows a part the taps that it asked for, in its own order.
type pass struct {
	draft.Pass
	taps []int
}

func (p *pass) Tap(t, sequence, node int) []float32 { return p.Pass.Tap(p.taps[t], sequence, node) }

// Commit tells every part, also when one fails: the others go on with the text (paper 000 §7).
func (d *drafter) Commit(rows []draft.Rows) error {
	for i := range rows {
		s := rows[i].State.(*state)
		if s.valid {
			d.learn(s, &rows[i])
		}
		s.valid = false
	}
	var errs []error
	for k := range d.parts {
		p := &d.parts[k]
		p.rows = append(p.rows[:0], rows...)
		for len(p.passes) < len(rows) {
			p.passes = append(p.passes, pass{taps: p.taps})
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

// learn goes down what was proposed with the tokens that the target chose, the last of which had no node that was
// verified. All children of a node that it comes through have been judged.
func (d *drafter) learn(s *state, r *draft.Rows) {
	u := &s.union
	if r.Next < 0 || len(r.Tokens) == 0 || r.Tokens[0] != s.root {
		return
	}
	w := &d.worlds[s.world]
	d.walk.Start(u.tree)
	for i := range r.Tokens {
		token := r.Next
		if i+1 < len(r.Tokens) {
			token = r.Tokens[i+1]
		}
		for _, parent := range d.walk.Nodes() {
			d.kids = u.tree.Children(int(parent), d.kids[:0])
			for _, node := range d.kids {
				depth, came := int(u.tree.Depth[node]), u.tree.Token[node] == token
				for k := range d.parts {
					if p := u.claim(int(node), k); p >= 0 {
						w.parts[k].learn(depth, p, came)
					}
				}
				if d.o.Mode == Spliced { // side by side no node is of two parts: what it takes to be its kind says nothing
					w.kinds[u.kind(int(node))].learn(depth, u.best[node], came)
				}
			}
		}
		if !d.walk.Follow(token) {
			return
		}
	}
}

// scratch is memory that lasts for a call.
type scratch struct {
	walk   tree.Walk
	kids   []int32
	chance []float32 // by node
	sum    []float32 // by node: of its children
	order  []uint64
	nodes  []int32
	index  []int32
	where  []int32
}
