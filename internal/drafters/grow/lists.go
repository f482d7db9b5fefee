// The drafter's output head over part of the vocabulary: package shortlist.

package grow

import (
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/shortlist"
)

// list gives each asked row its shortlist, whose contents may be known only after the pass has run.
func (d *Drafter) list() {
	if d.Lists == nil {
		return
	}
	phased, _ := d.Lists.(shortlist.Phased)
	output := phased != nil && phased.ReadsOutput()
	d.queries = d.queries[:0]
	for slot, s := range d.live {
		if len(s.Words) == 0 {
			continue
		}
		for i, node := range s.expand {
			d.queries = append(d.queries, shortlist.Query{
				State: s.Words[0], Step: int(s.tree.Depth[node]), Token: s.tree.Token[node],
				Hidden: d.Model.RouterInput(slot, i, output),
			})
		}
	}
	if len(d.queries) == 0 {
		return
	}
	d.lists = slices.Grow(d.lists[:0], len(d.queries))[:len(d.queries)]
	if phased != nil {
		d.Model.Follow(phased.Start(d.queries, d.lists))
	} else {
		d.Lists.Choose(d.queries, d.lists)
	}
	lists := d.lists
	for slot, s := range d.live {
		if len(s.Words) == 0 {
			continue
		}
		s.lists, lists = lists[:len(s.expand)], lists[len(s.expand):]
		s.listed = s.listed[:0]
		for _, l := range s.lists {
			s.listed = append(s.listed, &l.Shortlist)
		}
		s.listOf = append(s.listOf, s.lists...)
		d.rows[slot].Lists = s.listed
	}
}

// tally counts the lists of the computed rows.
func (d *Drafter) tally() {
	if d.Lists == nil {
		return
	}
	for _, l := range d.lists[:len(d.queries)] {
		d.Stats.Row(l)
	}
}

// compare compares the lists along the target's path with the tokens that it chose there.
func (s *state) compare(r *draft.Rows) {
	if len(s.Words) == 0 || r.Next < 0 {
		return
	}
	node := 0
	for i := range r.Tokens {
		at := int(s.row[node] - s.shift)
		if s.row[node] < 0 || at >= len(s.listOf) {
			return
		}
		next := r.Next
		if i+1 < len(r.Tokens) {
			next = r.Tokens[i+1]
		}
		s.d.Stats.Choice(s.listOf[at], next)
		node = s.tree.Child(node, next)
		if node < 0 {
			return
		}
	}
}
