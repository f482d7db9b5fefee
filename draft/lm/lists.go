// The draft model's head over part of the vocabulary: package shortlist.

package lm

import (
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/shortlist"
)

// openLists is the method that o names, nil where it names none. Its tables are made once for a target.
func openLists(o shortlist.Options, m *model.Model, target draft.Target) (shortlist.Method, error) {
	if o.Method == "" {
		return nil, nil
	}
	type key struct {
		m *model.Model
		o shortlist.Options
	}
	v, err := target.Shared.Get(key{m, o}, func() (any, error) {
		return shortlist.Open(o, shortlist.Drafter{Pool: m.Pool(), Head: &m.Head, Norm: &m.Norm, Vocab: min(m.Config.Vocab, target.Vocab), Tokenizer: m.Tokenizer})
	})
	if err != nil {
		return nil, err
	}
	return v.(shortlist.Method).Fork(), nil
}

// listing chooses shortlists for the rows of a step.
type listing struct {
	method  shortlist.Method // nil: the head computes all tokens
	queries []shortlist.Query
	lists   []*shortlist.List
}

// list gives each expanded node its shortlist.
func (d *drafter) list() {
	d.queries = d.queries[:0]
	for _, s := range d.live {
		if s.words == nil {
			continue
		}
		for _, node := range s.expand {
			d.queries = append(d.queries, shortlist.Query{State: s.words, Step: int(s.tree.Depth[node]), Token: s.tree.Token[node]})
		}
	}
	if len(d.queries) == 0 {
		return
	}
	d.lists = slices.Grow(d.lists[:0], len(d.queries))[:len(d.queries)]
	d.method.Choose(d.queries, d.lists)
	lists := d.lists
	for _, s := range d.live {
		if s.words == nil {
			continue
		}
		s.lists, lists = lists[:len(s.expand)], lists[len(s.expand):]
		s.listed = s.listed[:0]
		for _, l := range s.lists {
			s.listed = append(s.listed, &l.Shortlist)
		}
	}
}

// tell lets the shortlists know what the target committed, and what else it thought of there.
func (s *state) tell(r *draft.Rows) {
	if s.words == nil {
		return
	}
	s.words.Commit(r.Tokens)
	if r.Pass != nil && r.Next >= 0 {
		for _, node := range r.Nodes {
			s.words.Alternatives(r.Pass.Logits(r.Sequence, int(node)))
		}
	}
}
