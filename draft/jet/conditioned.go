// Conditioned trees: what the head says of a depth, put right at every node by the path to it.

package jet

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/suffix"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// knowledge is what conditioned trees know of a sequence beside its context: its text, and what the target said beside the path.
type knowledge struct {
	text    *suffix.Automaton // nil where trees are not conditioned
	tokens  []int32           // of text
	asides  draft.Asides
	weights weights
	chosen  bool // the target's choice goes by more than logits and noise
}

func (k *knowledge) begin(p *sample.Params) {
	k.text = suffix.New()
	k.weights = weightsAt(p.Temperature)
	k.chosen = p.Penalised() || len(p.LogitBias) > 0 || p.Temperature > 0 && (p.TopK > 0 || p.TopP > 0 && p.TopP < 1 || p.MinP > 0)
}

func (k *knowledge) learn(tokens []int32) {
	k.text.Grow(len(tokens))
	for _, token := range tokens {
		k.text.Extend(token)
	}
	k.tokens = append(k.tokens, tokens...)
}

// hearing is one of the asides that a Commit brought; see draft.Asides.
type hearing struct {
	s      *state
	r      *draft.Rows
	number int
}

// hearings is the drafter as the pool's job.
type hearings drafter

func (d *hearings) Do(worker, number int) {
	h := &d.heard[number]
	sampler := d.workers[worker]
	sampler.Like(h.s.sampler)
	h.s.asides.Hear(h.number, h.r, sampler, d.n.Vocab, h.s.history)
}

// keptMost candidates below a node can become nodes; Asides may bring more.
const (
	keptMost  = 16
	asideRoom = 8
)

// paths are the nodes of a conditioned tree under way, as a source of candidates.
type paths struct {
	s       *state
	deepest int
	at      []suffix.Place // of each node
	strays  []bool         // of each node: its path left the head's first guesses

	lists [][]sample.Candidate
	clues []clue
	score []float32
}

func (p *paths) reset(s *state) {
	p.s, p.deepest = s, s.request.Depth
	if s.d.deepest > 0 {
		p.deepest = min(p.deepest, s.d.deepest)
	}
	p.at, p.strays = p.at[:0], p.strays[:0]
}

// below makes the candidates of the node that was added last.
func (p *paths) below(t *tree.Tree, node int) []sample.Candidate {
	s := p.s
	from, strays := s.text.End(), false
	if parent := t.Parent[node]; parent >= 0 {
		from = p.at[parent]
		first := s.firstGuess(int(t.Depth[node]))
		strays = p.strays[parent] || first >= 0 && first != t.Token[node]
	}
	p.at = append(p.at, s.text.Match(from, t.Token[node]))
	p.strays = append(p.strays, strays)
	for len(p.lists) <= node {
		p.lists = append(p.lists, make([]sample.Candidate, 0, keptMost+asideRoom))
	}
	list := p.lists[node][:0]
	if int(t.Depth[node]) < p.deepest {
		var x spot
		x, p.clues = s.gather(t.Token[0], p.at[node], int(t.Depth[node])+1, strays, p.clues[:0])
		var kept []sample.Candidate
		kept, p.score = s.weights.chances(&x, p.clues, list[:0:keptMost], p.score)
		list = s.asides.Weigh(list[:len(kept)], t, node)
		value(s.request.Guide, int(t.Depth[node])+1, list)
	}
	p.lists[node] = list
	return list
}

// firstGuess is the head's likeliest token of a depth, -1 where it has none.
func (s *state) firstGuess(depth int) int32 {
	if depth > len(s.levels) || len(s.levels[depth-1]) == 0 {
		return -1
	}
	return s.levels[depth-1][0].Token
}
