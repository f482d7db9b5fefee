package falcon

import (
	"fmt"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/falcon"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/train"
)

// heldDepth is the depth to which held-out text is drafted with chains.
const heldDepth = 8

// heldTree is EAGLE-2's, with its authors' numbers.
var heldTree = grow.DefaultDynamic()

// Validate measures on every held-out source the loss; the share of right first guesses by their
// number in a block, where the target has been in all places before the block; and τ, the tokens
// that a round of a chain, or of a tree, brings.
func (l *learner) Validate() (losses, figures map[string]float64, err error) {
	return l.Heads.Validate(func(t *train.HeldText, figure func(string, float64)) (autograd.Loss, error) {
		m, err := l.head.measure(t, l.r.objective())
		if err != nil {
			return autograd.Loss{}, err
		}
		for _, s := range m.shapes {
			figure(s.name, float64(s.tokens)/float64(s.rounds))
		}
		for d, l := range m.slots {
			figure(fmt.Sprintf("depth %02d", d+1), float64(l.Correct)/float64(l.Rows))
		}
		return m.loss, nil
	})
}

// measure is what a head makes of held-out text.
type measure struct {
	loss   autograd.Loss
	slots  []autograd.Loss // by the number in a block
	shapes []*shape
}

type shape struct {
	name string
	grow.Shape
	nodes, rounds, tokens int
}

// measure has the head draft after every token that the target said.
func (h *Head) measure(t *train.HeldText, o objective) (*measure, error) {
	m := &measure{slots: make([]autograd.Loss, h.net.Block), shapes: []*shape{
		{name: "chain", Shape: &grow.Linear{K: heldDepth}, nodes: heldDepth + 1},
		{name: fmt.Sprintf("tree of %d", heldTree.N), Shape: &heldTree, nodes: heldTree.N},
	}}
	err := t.Each(train.HeldTexts, train.HeldTokens, heldDepth, func(text []int32, places []int) error {
		all := texts{list: [][]int32{text}, places: [][]int{places}}
		h.read(&all, o.temperature)
		x := h.run(&all, nil)
		for slot := range m.slots {
			l := h.loss(&all, x, h.rowsOf(&all, slot), o, 1, false)
			m.slots[slot].Add(l)
			m.loss.Add(l)
		}
		for _, s := range m.shapes {
			target := registry.Target{Vocab: h.net.Vocab, Context: h.net.Context}
			d, err := falcon.New(h.net, s.Shape, false, nil, h.Exec.Pool(), target)
			if err != nil {
				return err
			}
			rounds, tokens, err := train.Rounds(d, h.Target.Taps, h.net.Hidden, text, places[0], len(places), s.nodes)
			if err != nil {
				return err
			}
			s.rounds, s.tokens = s.rounds+rounds, s.tokens+tokens
		}
		return nil
	})
	return m, err
}
