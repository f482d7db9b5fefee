package grammar

import (
	"errors"
	"fmt"
	"slices"

	"github.com/grovellm/grove/tree"
)

// Path is the written part of a text under a constraint, and the draft tree that may continue it. A
// node of the tree has the state after its parent's state and its token.
type Path struct {
	Constraint *Constraint
	End        func(token int32) bool // tokens that end the text where it may end; nil: there are none

	Place   *State // after the text
	written int    // the number of its tokens
	mask    *Mask  // at Place, while a token is being chosen; nil: every token may be chosen

	places []*State // of a tree's nodes; nil if the node is not allowed, or the text ends
	nodes  []int32
}

// Error reports that a text cannot continue under its grammar.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func wrap(err error) error {
	if err != nil {
		return &Error{err}
	}
	return nil
}

// NewPath returns the path of a text that begins with tokens already written.
func NewPath(c *Constraint, end func(token int32) bool, written []int32) (*Path, error) {
	p := &Path{Constraint: c, End: end}
	var err error
	if p.Place, err = c.Start(); err != nil {
		return nil, wrap(err)
	}
	for n, token := range written {
		if p.Place, err = c.Next(p.Place, token, n); err == nil && p.Place == nil {
			err = errors.New("the grammar does not allow the output so far")
		}
		if err != nil {
			return nil, wrap(err)
		}
	}
	p.written = len(written)
	return p, nil
}

// Ends reports whether a token ends the text.
func (p *Path) Ends(token int32) bool { return p.End != nil && p.End(token) }

// Complete reports whether no further text is allowed.
func (p *Path) Complete() bool { return p.Place.Complete() }

// Follow advances the path past a token. It returns false if the token is not allowed.
func (p *Path) Follow(token int32) (ok bool, err error) {
	if p.Ends(token) {
		return p.Place.Accepting(), nil
	}
	next, err := p.Constraint.Next(p.Place, token, p.written)
	if next != nil {
		p.Place = next
		p.written++
	}
	return next != nil, wrap(err)
}

// Choose chooses a token among those allowed by calling choose with logits of which the others are
// minus infinity, made in the memory of masked. It then follows the token.
func (p *Path) Choose(masked, logits []float32, choose func(logits []float32) (int32, error)) (token int32, err error) {
	if p.mask, err = p.Constraint.Mask(p.Place); err != nil {
		return 0, wrap(err)
	}
	defer func() { p.mask = nil }()
	p.mask.Apply(masked, logits)
	if p.Place.Accepting() && p.End != nil {
		for i := range logits {
			if p.End(int32(i)) {
				masked[i] = logits[i]
			}
		}
	}
	if token, err = choose(masked); err != nil {
		return 0, err
	}
	ok, err := p.Follow(token)
	if err == nil && !ok {
		err = wrap(fmt.Errorf("the grammar allows %d tokens here, and none of them has a chance: look at the biases and at the vocabulary",
			p.mask.Count()))
	}
	return token, err
}

// Forbids returns which tokens cannot be chosen while Choose is choosing, or nil if all can.
func (p *Path) Forbids() func(token int32) bool {
	if p == nil || p.mask == nil {
		return nil
	}
	return func(token int32) bool { return !p.mask.Has(token) && !(p.Ends(token) && p.Place.Accepting()) }
}

// Allowed lists the nodes of a tree below the text that are allowed, the root first. A node that
// the grammar cannot follow is not: plain decoding may never reach it. The list is valid until the
// next call.
func (p *Path) Allowed(t *tree.Tree) []int32 {
	p.places, p.nodes = append(p.places[:0], p.Place), append(p.nodes[:0], 0)
	for i := 1; i < t.Len(); i++ {
		var next *State
		if above := p.places[t.Parent[i]]; above != nil {
			token := t.Token[i]
			ends := p.Ends(token)
			if !ends {
				next, _ = p.Constraint.Next(above, token, p.written+int(t.Depth[i])-1)
			}
			if next != nil || ends && above.Accepting() {
				p.nodes = append(p.nodes, int32(i))
			}
		}
		p.places = append(p.places, next)
	}
	for to, from := range p.nodes {
		p.places[to] = p.places[from]
	}
	p.places = p.places[:len(p.nodes)]
	return p.nodes
}

// Force appends the text that must follow the root and the leaves of a tree, which must have
// exactly the nodes that Allowed listed: up to the given nodes and depth.
func (p *Path) Force(t *tree.Tree, budget, depth int) {
	for i, n := 0, t.Len(); i < n; i++ {
		if p.places[i] != nil && (i == 0 || !slices.Contains(t.Parent, int32(i))) {
			p.force(t, i, budget, depth)
		}
	}
}

func (p *Path) force(t *tree.Tree, at, budget, depth int) {
	place := p.places[at]
	tokens, _ := p.Constraint.Forced(place)
	for _, token := range tokens {
		if t.Len() >= budget || int(t.Depth[at]) >= depth {
			return
		}
		place, _ = p.Constraint.Next(place, token, p.written+int(t.Depth[at]))
		if place == nil {
			return
		}
		at = t.Append(at, token, 0)
	}
}
