// Sequences that a grammar constrains. The grammar's state follows the text; a node of a draft tree has the state of its parent
// and of its token.

package speculate

import (
	"errors"
	"fmt"

	"github.com/grovellm/grove/internal/grammar"
)

// form is what a sequence keeps of its grammar.
type form struct {
	place  *grammar.State   // after the text
	mask   *grammar.Mask    // at place, while a rule chooses; nil: every token may be chosen
	places []*grammar.State // of a tree's nodes; nil where the grammar forbids the node, or the text ends
	nodes  []int32
	kids   []int32

	drafted        int // nodes of the tree that are the drafter's; the later ones are forced
	offered, taken int // forced nodes whose parents were accepted; accepted themselves
}

// GrammarError says that a sequence cannot go on under its grammar.
type GrammarError struct{ Err error }

func (e *GrammarError) Error() string { return e.Err.Error() }
func (e *GrammarError) Unwrap() error { return e.Err }

func grammarError(err *error) {
	if *err != nil {
		*err = &GrammarError{*err}
	}
}

// beginGrammar finds the state after the part of the prompt that is output already.
func (s *Sequence) beginGrammar() (err error) {
	defer grammarError(&err)
	g := s.r.Grammar
	if g == nil {
		return nil
	}
	if s.form.place, err = g.Start(); err != nil {
		return err
	}
	for n, token := range s.text[s.prompt-s.r.Written:] {
		if s.form.place, err = g.Next(s.form.place, token, n); err != nil {
			return err
		} else if s.form.place == nil {
			return errors.New("the grammar does not allow the output so far")
		}
	}
	return nil
}

// written is the number of tokens of the output, those of earlier sequences included.
func (s *Sequence) written() int { return len(s.text) - s.prompt + s.r.Written }

// ends reports whether a token ends the text.
func (s *Sequence) ends(token int32) bool { return s.r.End != nil && s.r.End(token) }

// chooseAllowed is the token that the rule chooses among those that the grammar allows.
//
// What is chosen among all tokens, and is allowed, is also what is chosen among the allowed ones: scores of tokens do not depend on
// each other, unless top-k, top-p or min-p leave tokens out. So a mask is needed in the other cases alone.
func (s *Sequence) chooseAllowed(logits []float32, nodes []int32) (int32, error) {
	g, f, l := s.r.Grammar, &s.form, s.loop
	if s.rule == l.coupled && !s.r.Sampling.Narrows() {
		token, err := s.rule.next(s, logits, nodes)
		if err != nil {
			return 0, err
		}
		if ok, err := s.follow(token); ok || err != nil {
			return token, err
		}
	}
	var err error
	if f.mask, err = g.Mask(f.place); err != nil {
		return 0, &GrammarError{err}
	}
	defer func() { f.mask = nil }()
	if len(l.masked) != len(logits) {
		l.masked = make([]float32, len(logits))
	}
	f.mask.Apply(l.masked, logits)
	if f.place.Accepting() && s.r.End != nil {
		for i := range logits {
			if s.r.End(int32(i)) {
				l.masked[i] = logits[i]
			}
		}
	}
	token, err := s.rule.next(s, l.masked, nodes)
	if err != nil {
		return 0, err
	}
	ok, err := s.follow(token)
	if err == nil && !ok {
		err = &GrammarError{fmt.Errorf("the grammar allows %d tokens here, and none of them has a chance: look at the biases and at the vocabulary", f.mask.Count())}
	}
	return token, err
}

// follow takes the state past a token. It returns false where the grammar does not allow the token.
func (s *Sequence) follow(token int32) (ok bool, err error) {
	defer grammarError(&err)
	f := &s.form
	if s.ends(token) {
		return f.place.Accepting(), nil
	}
	next, err := s.r.Grammar.Next(f.place, token, s.written())
	if next != nil {
		f.place = next
	}
	return next != nil, err
}

// complete reports whether the grammar allows no further text.
func (s *Sequence) complete() bool { return s.r.Grammar != nil && s.form.place.Complete() }

// restrict cuts the nodes that the grammar forbids off the drafter's tree, and adds the text that it forces below the root and below
// leaves. Of a drawn tree it keeps what was drawn from the part of the distribution that is allowed. Where the grammar cannot follow
// a node it is cut: plain decoding may never come there.
func (s *Sequence) restrict() {
	f, g := &s.form, s.r.Grammar
	if f.drafted = s.tree.Len(); g == nil || !s.turn.may {
		return
	}
	f.places, f.nodes = append(f.places[:0], f.place), append(f.nodes[:0], 0)
	for i := 1; i < s.tree.Len(); i++ {
		var next *grammar.State
		if above := f.places[s.tree.Parent[i]]; above != nil {
			token := s.tree.Token[i]
			if s.ends(token) {
				if above.Accepting() {
					f.nodes = append(f.nodes, int32(i))
				}
			} else if next, _ = g.Next(above, token, s.written()+int(s.tree.Depth[i])-1); next != nil {
				f.nodes = append(f.nodes, int32(i))
			}
		}
		f.places = append(f.places, next)
	}
	if len(f.nodes) < s.tree.Len() {
		s.index = s.tree.Pick(s.cut, f.nodes, s.index)
		s.tree, s.cut = s.cut, s.tree
		for to, from := range f.nodes {
			f.places[to] = f.places[from]
			if len(s.origin) > 0 {
				f.nodes[to] = s.origin[from]
			}
		}
		if s.sampled {
			s.origin = append(s.origin[:0], f.nodes...)
		}
		f.places = f.places[:len(f.nodes)]
	}
	if f.drafted = s.tree.Len(); s.sampled || s.loop.plan.refresh {
		return
	}
	proposed := f.drafted
	for i := range proposed {
		if f.places[i] == nil || i > 0 && !s.tree.Leaf(i) {
			continue
		}
		s.force(i)
	}
	s.turn.proposed += s.tree.Len() - proposed
	s.turn.budget = max(s.turn.budget, s.tree.Len())
}

// force appends the text that must follow a node.
func (s *Sequence) force(i int) {
	g, at, place := s.r.Grammar, i, s.form.places[i]
	tokens, _ := g.Forced(place)
	for _, token := range tokens {
		if s.tree.Len() >= s.r.Budget || int(s.tree.Depth[at]) >= s.depth {
			return
		}
		if place, _ = g.Next(place, token, s.written()+int(s.tree.Depth[at])); place == nil {
			return
		}
		at = s.tree.Append(at, token, 0)
	}
}

// forcedChance is how likely the target is to spell forced text as the tokenizer does. It begins at 4 of 5.
func (f *form) forcedChance() float32 { return float32(f.taken+4) / float32(f.offered+5) }

// countForced notes which forced nodes the target chose.
func (s *Sequence) countForced() {
	f := &s.form
	if f.drafted >= s.tree.Len() {
		return
	}
	emitted := s.text[len(s.text)-s.fresh:]
	for i, node := range s.path {
		f.kids = s.tree.Children(int(node), f.kids[:0])
		for _, kid := range f.kids {
			if int(kid) >= f.drafted {
				f.offered++
				if s.tree.Token[kid] == emitted[i] {
					f.taken++
				}
			}
		}
	}
}
