// What is known of a sequence beside what a head says, and the growth of its trees.

package clues

import (
	"math"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/suffix"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// Text is the committed text of a sequence, and what the target said beside it.
type Text struct {
	Asides draft.Asides

	automaton   *suffix.Automaton
	tokens      []int32
	weights     Weights
	temperature float32
	seed        uint64
	chosen      bool // the target's choice goes by more than logits and noise
}

// NewText is that of a sequence whose tokens are chosen as p has it.
func NewText(p *sample.Params, f *Fit) *Text {
	return &Text{
		automaton: suffix.New(), weights: f.At(p.Temperature), temperature: p.Temperature, seed: p.Seed,
		chosen: p.Penalised() || len(p.LogitBias) > 0 || p.Temperature > 0 && (p.TopK > 0 || p.TopP > 0 && p.TopP < 1 || p.MinP > 0),
	}
}

// Learn takes in tokens that were committed.
func (x *Text) Learn(tokens []int32) {
	x.automaton.Grow(len(tokens))
	for _, token := range tokens {
		x.automaton.Extend(token)
	}
	x.tokens = append(x.tokens, tokens...)
}

// Rows is a head's part in a tree.
type Rows interface {
	// Row is what the head says below the node of t that was added last; its Level is empty where it says nothing. strays: the
	// path to the node left the head's first guesses, to which alone the row belongs.
	Row(t *tree.Tree, node int) (row Row, strays bool)
}

// Grower grows trees, one at a time.
type Grower struct {
	Least float64 // chance of a path at least, for its node to be proposed; 0: any

	best MostProbable

	text    *Text
	rows    Rows
	deepest int
	at      []Place // of each node

	lists   [][]sample.Candidate
	chance  []float32 // of each node of a tree by the text
	scratch Scratch
}

// Scratch is memory for making candidates, of one worker.
type Scratch struct {
	clues []clue
	score []float32
	heard Heard
}

// KeptMost candidates below a node can become nodes; Asides may bring up to AsideRoom more.
const (
	KeptMost  = 16
	AsideRoom = 8
)

// Place is the longest end of a text and a path after it that occurred before in the text.
type Place = suffix.Place

// End is the whole text, as a place.
func (x *Text) End() Place { return x.automaton.End() }

// Match is the place that is reached from another by a token.
func (x *Text) Match(from Place, token int32) Place { return x.automaton.Match(from, token) }

// Candidates makes the candidates of a depth, the likeliest first and up to the capacity of dst, below a path of which at is the place:
// root is the path's first token, which follows the text. The text is read alone, so that many goroutines may ask at once, each with
// scratch of its own.
func (x *Text) Candidates(dst []sample.Candidate, root int32, at Place, depth int, row *Row, strays bool, s *Scratch) []sample.Candidate {
	var p spot
	p, s.clues = x.gather(root, at, depth, row, strays, s.clues[:0], &s.heard)
	dst, s.score = x.weights.chances(&p, s.clues, dst, s.score)
	return dst
}

// Grow appends to t, which holds its root, the nodes of the likeliest paths: up to budget nodes in all, no deeper than deepest, and of a
// node no more than width children (0: any number). The root follows the text.
func (g *Grower) Grow(t *tree.Tree, text *Text, rows Rows, budget, deepest, width int, guide draft.Guide) {
	g.grow(t, text, rows, budget, deepest, width, guide, g.Least)
}

func (g *Grower) grow(t *tree.Tree, text *Text, rows Rows, budget, deepest, width int, guide draft.Guide, least float64) {
	g.text, g.rows, g.deepest = text, rows, deepest
	g.at = g.at[:0]
	g.best.Width, g.best.Least, g.best.Value, g.best.Guide = width, least, true, guide
	g.best.Grow(t, g, budget)
	g.text, g.rows, g.best.Guide = nil, nil, nil
}

// Below makes the candidates of the node that was added last.
func (g *Grower) Below(t *tree.Tree, node int) []sample.Candidate {
	x := g.text
	from := x.End()
	if parent := t.Parent[node]; parent >= 0 {
		from = g.at[parent]
	}
	g.at = append(g.at, x.Match(from, t.Token[node]))
	for len(g.lists) <= node {
		g.lists = append(g.lists, make([]sample.Candidate, 0, KeptMost+AsideRoom))
	}
	row, strays := g.rows.Row(t, node)
	list := g.lists[node][:0]
	if depth := int(t.Depth[node]) + 1; depth <= g.deepest {
		list = x.Candidates(list[:0:KeptMost], t.Token[0], g.at[node], depth, &row, strays, &g.scratch)
		list = x.Asides.Weigh(g.lists[node][:len(list)], t, node)
	}
	g.lists[node] = list
	return list
}

// Surest is the chance of the likeliest candidate below a node of the last tree, 0 where there is none.
func (g *Grower) Surest(node int) float64 {
	if len(g.lists[node]) == 0 {
		return 0
	}
	return math.Exp(g.lists[node][0].Score)
}
