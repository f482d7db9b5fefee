package speculate

import (
	"context"
	"math"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/grammar"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// Small exact models, and a drafter that draws its candidates, correctly or not.

// lawVocab is the vocabulary of the small exact models on which laws are tested.
const lawVocab = 4

// lawTarget has known logits, which depend on a token and its position.
type lawTarget struct {
	*clock
	logits  [8][lawVocab][]float32
	grammar *grammar.Constraint // may be nil
}

// constrain makes the tokens the letters a to d, constrained by a grammar.
func (t *lawTarget) constrain(source string) {
	g, err := grammar.GBNF(source)
	if err != nil {
		panic(err)
	}
	t.grammar = &grammar.Constraint{Grammar: g, Vocab: grammar.NewVocab([][]byte{{'a'}, {'b'}, {'c'}, {'d'}})}
}

func newLaw(salt uint64) *lawTarget {
	t := &lawTarget{clock: &clock{}}
	for at := range t.logits {
		for token := range t.logits[at] {
			t.logits[at][token] = lawLogits(salt, at, int32(token))
		}
	}
	return t
}

// lawLogits returns logits with a roughly normal distribution and a spread of 1.2.
func lawLogits(salt uint64, at int, token int32) []float32 {
	l := make([]float32, lawVocab)
	for v := range l {
		for k := range uint64(4) {
			l[v] += 2 * (unit(hash(salt, uint64(at), uint64(token), uint64(v), k)) - .5)
		}
	}
	return l
}

func (t *lawTarget) Vocab() int      { return lawVocab }
func (t *lawTarget) Context() int    { return 8 }
func (t *lawTarget) NewCache() Cache { return new(stillCache) }
func (t *lawTarget) NewPass() Pass   { return &lawPass{t: t} }

type lawPass struct {
	t    *lawTarget
	rows []Rows
	at   []int
}

func (p *lawPass) Tap(_, _, _ int) []float32 { return nil }
func (p *lawPass) Run(_ context.Context, rows []Rows, _ []int) error {
	p.rows, p.at = rows, p.at[:0]
	p.t.spend(ms)
	for _, r := range rows {
		p.at = append(p.at, r.Cache.Len())
		p.t.spend(1e-5 * float64(r.Tree.Len()))
	}
	return nil
}
func (p *lawPass) Logits(s, i int) []float32 {
	r := p.rows[s]
	node := int(r.Logits[i])
	return p.t.logits[p.at[s]+int(r.Tree.Depth[node])][r.Tree.Token[node]]
}

// law returns the exact distribution of the first n tokens after a prompt of one token, by plain
// decoding at every step.
func (t *lawTarget) law(params sample.Params, n int) []float64 {
	s, err := sample.New(params, lawVocab)
	if err != nil {
		panic(err)
	}
	joint := make([]float64, int(math.Pow(lawVocab, float64(n))))
	var visit func(text []int32, cell int, p float64)
	visit = func(text []int32, cell int, p float64) {
		if len(text) == n+1 {
			joint[cell] = p
			return
		}
		h := sample.NewHistory(&params)
		for _, token := range text {
			h.Push(token)
		}
		q := make([]float32, lawVocab)
		logits := slices.Clone(t.logits[len(text)-1][text[len(text)-1]])
		if g := t.grammar; g != nil {
			place, err := g.Start()
			for _, token := range text[1:] {
				if place != nil && err == nil {
					place, err = g.Next(place, token, 0)
				}
			}
			if err != nil {
				panic(err)
			}
			if place == nil {
				return // the preceding tokens have no chance
			}
			if _, err := mask(Request{Grammar: g}, place, logits); err != nil {
				panic(err)
			}
		}
		s.Probs(q, logits, h)
		for token, v := range q {
			visit(append(slices.Clone(text), int32(token)), cell*lawVocab+token, p*float64(v))
		}
	}
	visit([]int32{0}, 0, 1)
	return joint
}

// drawer drafts trees of random tokens, drawn without replacement from its own distributions.
type drawer struct {
	draft.Base
	salt   uint64
	widths []int // children of a node, by depth
	heads  int   // 2: two trees, spliced
	silent bool  // does not report what it drew from
	fault  string

	drawn map[draft.State][][]float32
}

type drawerState struct {
	at   int
	seed uint64
}

func (*drawerState) Close() {}

func (d *drawer) Begin(o draft.Options) (draft.State, error) {
	return &drawerState{seed: o.Seed}, nil
}
func (d *drawer) Commit(rows []draft.Rows) error {
	for _, r := range rows {
		r.State.(*drawerState).at += len(r.Tokens)
	}
	return nil
}

// from returns the distribution from which a head draws after a token.
func (d *drawer) from(head, at int, token int32) []float32 {
	q := lawLogits(d.salt+uint64(head), at, token)
	sum := float32(0)
	for i, l := range q {
		q[i] = float32(math.Exp(float64(l) * float64(1+2*head))) // the second is more confident
		sum += q[i]
	}
	for i := range q {
		q[i] /= sum
	}
	return q
}

func (d *drawer) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	proposals := make([]draft.Proposal, len(requests))
	d.drawn = map[draft.State][][]float32{}
	for i, r := range requests {
		s := r.State.(*drawerState)
		if !d.silent {
			proposals[i].Drawn = drawnFrom{d, s}.of
		}
		if d.heads < 2 {
			d.drawn[s] = d.grow(s, r.Tree, 0, r.Budget, r.Depth)
			continue
		}
		one, two := tree.New(r.Tree.Token[0]), tree.New(r.Tree.Token[0])
		drawn, more := d.grow(s, one, 0, r.Budget, r.Depth), d.grow(s, two, 1, r.Budget, r.Depth)
		splice(r.Tree, one, two)
		drawn[0] = nil // the root's children are from both
		d.drawn[s] = append(drawn, more[1:]...)
		if d.fault == "drops duplicates" {
			d.merge(s, r.Tree)
		}
	}
	return proposals, nil
}

// grow draws a tree and returns what each node's children were drawn from.
func (d *drawer) grow(s *drawerState, t *tree.Tree, head, budget, depth int) (drawn [][]float32) {
	for node := 0; node < t.Len(); node++ {
		drawn = append(drawn, nil)
		at := int(t.Depth[node])
		if at >= depth || at >= len(d.widths) {
			continue
		}
		q := d.from(head, s.at+at, t.Token[node])
		order := []int32{0, 1, 2, 3} // in the order in which Gumbel-top-k draws them
		slices.SortFunc(order, func(a, b int32) int {
			score := func(x int32) float64 {
				return math.Log(float64(q[x])) + sample.Noise(s.seed+uint64(head), s.at+at+1, x)
			}
			if score(a) > score(b) {
				return -1
			}
			return 1
		})
		order = order[:d.widths[at]]
		likelier := func(a, b int32) int {
			if q[a] > q[b] {
				return -1
			}
			return 1
		}
		switch d.fault {
		case "sorts siblings":
			slices.SortFunc(order, likelier)
		case "keeps the likelier":
			slices.SortFunc(order, likelier)
			order = order[:1]
		}
		for _, token := range order {
			if t.Len() < budget {
				t.Append(node, token, float32(math.Log(float64(q[token]))))
			}
		}
		drawn[node] = q
		if d.fault == "wrong distribution" {
			drawn[node] = d.from(head, s.at+at+1, t.Token[node])
		}
	}
	return drawn
}

// merge does what must not be done: of two draws of one token after the same text it keeps only the
// first.
func (d *drawer) merge(s *drawerState, t *tree.Tree) {
	merged, drawn := tree.New(t.Token[0]), [][]float32{nil}
	to := make([]int, t.Len())
	for i := 1; i < t.Len(); i++ {
		n := merged.Len()
		to[i] = merged.Append(to[t.Parent[i]], t.Token[i], t.LogProb[i])
		if to[i] == n {
			drawn = append(drawn, d.drawn[s][i])
		}
	}
	t.Copy(merged)
	d.drawn[s] = drawn
}

// drawnFrom reports what a sequence's tree was drawn from.
type drawnFrom struct {
	d *drawer
	s draft.State
}

func (d drawnFrom) of(node int) []float32 {
	q := d.d.drawn[d.s][node]
	if d.d.fault == "short" && q != nil {
		q = q[:lawVocab-1]
	}
	return q
}

// unsure is the same drafter without a report of what it drew from.
type unsure struct{ draft.Drafter }

func (d unsure) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	proposals, err := d.Drafter.Propose(ctx, requests)
	for i := range proposals {
		proposals[i].Drawn = nil
	}
	return proposals, err
}
