package eagle

import (
	"fmt"
	"math"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
)

// heldTree is EAGLE-2's dynamic tree, with its authors' numbers.
var heldTree = grow.DefaultDynamic()

// Validate measures, on each held-out source, the loss of the first test step; for chains that the
// head drafts from its own states, the share correct at each depth among those correct so far; and
// τ, the tokens per round with such a chain or with a tree.
func (l *learner) Validate() (losses, figures map[string]float64, err error) {
	return l.Heads.Validate(func(t *train.HeldText, figure func(string, float64)) (autograd.Loss, error) {
		m, err := l.head.measure(t)
		if err != nil {
			return autograd.Loss{}, err
		}
		figure("chain", m.tokens/m.rounds)
		figure(fmt.Sprintf("tree of %d", heldTree.N), float64(m.treeTokens)/float64(m.treeRounds))
		for d, n := range m.reached {
			if n > 0 {
				figure(fmt.Sprintf("depth %02d", d+1), float64(m.right[d])/float64(n))
			}
		}
		return m.loss, nil
	})
}

// chains is the result of a head on held-out text.
type chains struct {
	loss           autograd.Loss
	reached, right [train.HeldDepth]int // by depth: chains correct so far, and those of them correct here too
	tokens, rounds float64              // when decoding with these chains

	treeTokens, treeRounds int // the same with trees
}

// measure makes the head draft after every token that the target generated.
func (h *Head) measure(t *train.HeldText) (*chains, error) {
	h.Tape.Detach()
	m := new(chains)
	err := t.Each(train.HeldTexts, train.HeldTokens, train.HeldDepth, func(text []int32, places []int) error {
		l := example{texts: [][]int32{text}, places: [][]int{places}}
		m.loss.Add(h.loss(&l, goal{scale: []float32{1}, hard: 1}))
		m.add(text, places, h.draft(text, places))
		rounds, tokens, err := h.rounds(text, places[0], len(places), &heldTree, heldTree.N)
		m.treeRounds, m.treeTokens = m.treeRounds+rounds, m.treeTokens+tokens
		return err
	})
	return m, err
}

// rounds decodes a text, whose taps are still in the target, from token first on with trees of the
// drafter that serving uses: see train.Rounds.
func (h *Head) rounds(text []int32, first, most int, shape grow.Shape, budget int) (rounds, tokens int, err error) {
	d, err := eagle.New(h.net, shape, false, nil, h.Exec.Pool())
	if err != nil {
		return 0, 0, err
	}
	return train.Rounds(d, h.Target.Taps, h.net.Hidden, text, first, most, budget)
}

// draft lets the head continue by itself after some tokens of a text: it returns chains of its
// likeliest tokens, by place and depth.
func (h *Head) draft(text []int32, places []int) [][]int32 {
	_, _, x := h.begin([][]int32{text}, nil)
	from, guesses := make([]int32, len(places)), make([][]int32, len(places))
	for i, p := range places {
		from[i] = int32(p - 1)
	}
	rows := h.asked.Mat(len(from), h.net.Hidden)
	h.Exec.Gather(x, from, rows)
	for depth := range train.HeldDepth {
		next := h.likeliest(rows)
		for i, token := range next {
			guesses[i] = append(guesses[i], token)
		}
		if depth == train.HeldDepth-1 {
			break
		}
		x = h.grow(x, from, next)
		rows = x
		for i := range from {
			from[i] = int32(i)
		}
	}
	return guesses
}

// likeliest returns the likeliest token after each row.
func (h *Head) likeliest(x nn.Mat) []int32 {
	tokens := make([]int32, x.Rows)
	train.EachLogits(h.Exec, &h.logits, h.net.Output(x), &h.net.Head, func(_, i int, logits []float32) {
		tokens[i] = int32(simd.ArgMax(logits))
		if h.net.Tokens != nil {
			tokens[i] = h.net.Tokens[tokens[i]]
		}
	})
	return tokens
}

// add compares the chains after neighbouring places of a text with the text, and steps through
// the text as decoding would.
func (m *chains) add(text []int32, places []int, guesses [][]int32) {
	accepted := make([]int, len(places))
	for i, p := range places {
		for d, token := range guesses[i] {
			m.reached[d]++
			if token != text[p+1+d] {
				break
			}
			m.right[d]++
			accepted[i]++
		}
	}
	for i := 0; i < len(places); i += accepted[i] + 1 {
		m.rounds++
		m.tokens += math.Min(float64(accepted[i]+1), float64(len(places)-i)) // the accepted ones plus the target's own
	}
}
