// Texts: what is known about a sequence's text, and the trees built from it.

package textrank

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/suffix"
	"github.com/grovellm/grove/internal/drafters/textstore"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// Text is the committed text of a sequence, with its n-grams, and the target's candidates off the
// accepted path.
type Text struct {
	offPath OffPath

	automaton   *suffix.Automaton
	tokens      []int32
	memory      draft.Memory
	recalled    textstore.Recalled // of the text and the root of the current tree
	model       *learned
	kept        []kept    // features of the nodes of the last proposed tree
	Built       tree.Tree // that tree, if a Builder built it
	scratch     Scratch
	temperature float32
	seed        uint64
	processed   bool // the target's choice depends on more than logits and noise
}

// NewText returns the Text of a sequence whose tokens are chosen according to p. memory has past
// texts, and may be nil.
func NewText(p *sample.Params, m *Model, memory draft.Memory) *Text {
	set := &m.sets[0]
	if p.Temperature > 0 {
		set = &m.sets[1]
	}
	return &Text{
		automaton: suffix.New(), memory: memory, model: set, temperature: p.Temperature, seed: p.Seed,
		processed: sample.NewHistory(p) != nil || len(p.LogitBias) > 0 || p.Temperature > 0 &&
			(p.TopK > 0 || p.TopP > 0 && p.TopP < 1 || p.MinP > 0),
	}
}

// learn takes in committed tokens.
func (x *Text) learn(tokens []int32) {
	x.automaton.Grow(len(tokens))
	for _, token := range tokens {
		x.automaton.Extend(token)
	}
	x.tokens = append(x.tokens, tokens...)
}

// Place is what occurred before at the end of a text and a path: the longest n-gram in the text,
// and matches in texts of the past.
type Place struct {
	suffix.Place
	alive textstore.Alive
	depth int16 // of the path, including the root; 0: there is none
}

// End returns the place of the whole text.
func (x *Text) End() Place { return Place{Place: x.automaton.End()} }

// Match returns the place that a token leads to from another. The first token after the text is the
// root of a tree: call Match for it before others, on one goroutine.
func (x *Text) Match(from Place, token int32) Place {
	to := Place{Place: x.automaton.Match(from.Place, token), depth: from.depth + 1}
	if from.depth > 0 {
		to.alive = x.recalled.Follow(from.alive, int(from.depth), token)
	} else if x.memory != nil {
		var room [textstore.MatchMost]int32
		tail := append(room[:0], x.tokens[max(0, len(x.tokens)-len(room)+1):]...)
		to.alive = x.recalled.Find(x.memory, append(tail, token))
	}
	return to
}

// CandidatesMost is the maximum number of candidates below a node.
const CandidatesMost = 24

// Candidates ranks the candidates below a node of a tree, the most probable first, in the memory of
// dst, which must have room for CandidatesMost. The node's path ends at a place of the text. If
// there is a row and Keep has made room for the node, its features are kept for learning. Several
// goroutines may call it at once for different nodes, each with its own scratch.
func (x *Text) Candidates(dst []sample.Candidate, t *tree.Tree, node int, at Place, row *Row, offTop bool,
	s *Scratch) []sample.Candidate {
	var n nodeFeatures
	n, s.features = x.gather(t.Token[0], at, x.contextOf(t, node), row, offTop, s.features[:0], &s.cache)
	if n.hasRow && node < len(x.kept) {
		k := &x.kept[node]
		k.filled = true
		k.node = n
		k.list = append(k.list[:0], s.features...)
	}
	dst, s.logits = x.model.w.probabilities(&n, s.features, dst, s.logits)
	return dst
}

// Scratch is one worker's memory for ranking candidates.
type Scratch struct {
	features []features
	logits   []float32
	gradient Weights
	cache    RowCache
}

// Rows provides a drafter's part in a tree.
type Rows interface {
	// Row returns the drafter's row below the node of t that was added last; its Top is empty if there
	// is none. offTop says that the path left the drafter's first candidates, although the row was
	// computed for these only.
	Row(t *tree.Tree, node int) (row Row, offTop bool)
}

// Builder builds trees from a text and a drafter's rows, one tree at a time.
type Builder struct {
	treebuild.Builder

	text    *Text
	rows    Rows
	deepest int
	at      []Place // of each node

	lists   [][]sample.Candidate
	chance  []float32 // of each node of a tree built from the text
	scratch Scratch
}

// Build appends the nodes of the most probable paths to t, which holds its root: up to budget nodes
// in all, no deeper than deepest. The root follows the text.
func (b *Builder) Build(t *tree.Tree, text *Text, rows Rows, budget, deepest int) {
	b.text = text
	b.rows = rows
	b.deepest = deepest
	b.at = b.at[:0]
	text.Keep(0, budget)
	b.Builder.Build(t, (*source)(b), budget)
	text.Built.Copy(t)
	b.text = nil
	b.rows = nil
	b.Guide = nil
}

// source is the builder as its own treebuild.Source.
type source Builder

func (b *source) Below(t *tree.Tree, node int) []sample.Candidate {
	x := b.text
	from := x.End()
	if parent := t.Parent[node]; parent >= 0 {
		from = b.at[parent]
	}
	b.at = append(b.at, x.Match(from, t.Token[node]))
	for len(b.lists) <= node {
		b.lists = append(b.lists, make([]sample.Candidate, 0, CandidatesMost))
	}
	row, offTop := b.rows.Row(t, node)
	list := b.lists[node][:0]
	if int(t.Depth[node]) < b.deepest {
		list = x.Candidates(list, t, node, b.at[node], &row, offTop, &b.scratch)
	}
	b.lists[node] = list
	return list
}

// Expected returns the sum of the values of a tree's nodes by a guide's measurements, or, without a
// guide, the number of tokens expected to be accepted by the drafter's probabilities. chances has,
// for each node, the probability that the target's text goes through it, in the memory of chance.
func Expected(t *tree.Tree, guide draft.Guide, chance []float32) (sum float32, chances []float32) {
	chance = append(chance[:0], 1)
	for i := 1; i < t.Len(); i++ {
		p := chance[t.Parent[i]] * treebuild.Chance(guide, int(t.Depth[i]), t.LogProb[i])
		chance = append(chance, p)
		sum += treebuild.Value(guide, p)
	}
	return sum, chance
}
