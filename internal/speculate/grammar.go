// Sequences constrained by a grammar: package grammar has the state after the text and at a tree's nodes.

package speculate

import (
	"github.com/grovellm/grove/internal/drafters/calibrate"
	"github.com/grovellm/grove/internal/grammar"
	"github.com/grovellm/grove/sample"
)

// form is a sequence's state for its grammar.
type form struct {
	path    *grammar.Path // nil: there is no grammar
	drafted int           // the first nodes of the tree are the drafter's, this many; the later ones are forced
	kids    []int32

	offered, taken int // forced nodes whose parents were accepted, and those accepted themselves
}

// GrammarError says that a sequence cannot go on under its grammar.
type GrammarError = grammar.Error

// beginGrammar finds the state after the part of the prompt that is already output.
func (s *Sequence) beginGrammar() (err error) {
	if s.r.Grammar != nil {
		s.form.path, err = grammar.NewPath(s.r.Grammar, s.r.End, s.text[s.prompt-s.r.Written:])
	}
	return err
}

// chooseAllowed returns the token that the rule chooses among those that the grammar allows.
//
// If the choice among all tokens is allowed, it is also the choice among the allowed ones: scores of
// tokens do not depend on each other, unless top-k, top-p or min-p leave tokens out. So a mask is
// needed only in the other cases.
func (s *Sequence) chooseAllowed(logits []float32, nodes []int32) (int32, error) {
	l := s.loop
	if s.rule == l.coupled && !narrows(&s.r.Sampling) {
		token, err := s.rule.next(s, logits, nodes)
		if err != nil {
			return 0, err
		}
		if ok, err := s.form.path.Follow(token); ok || err != nil {
			return token, err
		}
	}
	if len(l.masked) != len(logits) {
		l.masked = make([]float32, len(logits))
	}
	return s.form.path.Choose(l.masked, logits, func(masked []float32) (int32,
		error) {
		return s.rule.next(s, masked, nodes)
	})
}

// restrict cuts nodes that the grammar forbids off the drafter's tree, and adds text that the grammar forces below the
// root and below leaves. In a drawn tree it keeps the nodes drawn from the allowed part of the distribution.
func (s *Sequence) restrict() {
	f := &s.form
	f.drafted = s.tree.Len()
	if f.path == nil || !s.turn.Drafts {
		return
	}
	if nodes := f.path.Allowed(s.tree); len(nodes) < s.tree.Len() {
		s.pick(nodes)
	}
	f.drafted = s.tree.Len()
	if s.turn.Drawn || s.loop.plan.Refresh {
		return
	}
	f.path.Force(s.tree, s.turn.Budget, s.depth)
	s.proposed += s.tree.Len() - f.drafted
	s.turn.Nodes = max(s.turn.Nodes, s.tree.Len())
	// The chance that the target spells forced text as the tokenizer does starts as if it had done so
	// in PriorWeight of PriorWeight+1 cases.
	s.turn.ForcedChance = float32(f.taken+calibrate.PriorWeight) / float32(f.offered+calibrate.PriorWeight+1)
}

// countForced counts the forced nodes that the target chose.
func (s *Sequence) countForced() {
	f := &s.form
	if f.drafted >= s.tree.Len() {
		return
	}
	for i, node := range s.path {
		f.kids = s.tree.Children(int(node), f.kids[:0])
		for _, kid := range f.kids {
			if int(kid) >= f.drafted {
				f.offered++
				if s.tree.Token[kid] == s.Fresh()[i] {
					f.taken++
				}
			}
		}
	}
}

// narrows reports whether top-k, top-p or min-p leave tokens out, so that the choice of one token
// depends on others' logits.
func narrows(p *sample.Params) bool {
	return p.Temperature > 0 && (p.TopK > 0 || p.TopP > 0 && p.TopP < 1 || p.MinP > 0)
}
