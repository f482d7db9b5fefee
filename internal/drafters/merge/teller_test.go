package merge

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/tree"
)

func mix(h uint64, v ...uint64) uint64 {
	for _, x := range v {
		h = (h ^ x) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

func hashText(h uint64, text []int32) uint64 {
	for _, token := range text {
		h = mix(h, uint64(token)+1)
	}
	return h
}

// feature is the tap of a layer after a text: a number that is unique to it.
func feature(layer int, text []int32) float32 {
	return float32(hashText(uint64(layer)+77, text)>>40) / (1 << 24)
}

// teller is a drafter that knows the true text. Its trees depend only on the text, so that it
// proposes the same alone and in a merge. It checks that it receives the text and its taps in order
// and without gaps.
type teller struct {
	draft.Base
	truth func(text []int32) int32 // the next token
	vocab int
	seed  uint64
	luck  float64 // how often a node is the true one
	width int     // maximum number of nodes that it draws
	quiet float64 // how often it proposes nothing
	over  bool    // it exceeds budget and depth, with siblings that have the same token
	taps  []int

	claim func(rng *rand.Rand, right bool) float64 // probability that it gives a node; nil: random
	rank  bool                                     // one child per node: a chain

	refuse, refuseCommit error
	otherRoot, rootless  bool
	token                int32 // added below the root of each tree, if not 0

	begun  draft.Options
	open   int
	guides []draft.Guide // of the last requests
	batch  int
}

type listener struct {
	t    *teller
	text []int32
	next int32
}

func (s *listener) Close() { s.t.open-- }

func (d *teller) Taps() []int { return d.taps }

func (d *teller) Begin(o draft.Options) (draft.State, error) {
	d.begun = o
	if d.refuse != nil {
		return nil, d.refuse
	}
	d.open++
	return &listener{t: d, next: -1}, nil
}

func (d *teller) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	d.guides, d.batch = d.guides[:0], len(requests)
	for _, r := range requests {
		s := r.State.(*listener)
		d.guides = append(d.guides, r.Guide)
		if r.Tree.Len() != 1 || s.next >= 0 && r.Tree.Token[0] != s.next {
			return nil, fmt.Errorf("a request of %d nodes with root %d where %d was to come", r.Tree.Len(),
				r.Tree.Token[0], s.next)
		}
		d.grow(s, r)
		if r.Guide != nil {
			r.Guide.Deeper(1, 1)
		}
		switch {
		case d.refuse != nil:
			return nil, d.refuse
		case d.otherRoot:
			r.Tree.Reset((r.Tree.Token[0] + 1) % int32(d.vocab))
		case d.rootless:
			r.Tree.ResetChain(nil)
		case d.token != 0:
			r.Tree.Append(0, d.token, 0)
		}
	}
	return make([]draft.Proposal, len(requests)), nil
}

func (d *teller) grow(s *listener, r draft.Request) {
	rng := rand.New(rand.NewPCG(d.seed, hashText(1, append(slices.Clone(s.text), r.Tree.Token[0]))))
	if rng.Float64() < d.quiet || d.width == 0 {
		return
	}
	n := 1 + rng.IntN(d.width)
	t := r.Tree
	if d.over {
		other := tree.New(t.Token[0])
		d.fill(other, s, rng, n, math.MaxInt, math.MaxInt)
		d.fill(t, s, rng, n, math.MaxInt, math.MaxInt)
		both := tree.New(0)
		splice(both, other, t, nil)
		t.Copy(both)
		return
	}
	d.fill(t, s, rng, n, r.Budget, r.Depth)
}

func (d *teller) fill(t *tree.Tree, s *listener, rng *rand.Rand, n, budget, depth int) {
	for range n {
		parent := rng.IntN(t.Len())
		if d.rank || rng.IntN(2) == 0 {
			parent = t.Len() - 1
		}
		if t.Len() >= budget || int(t.Depth[parent]) >= depth {
			continue
		}
		text := slices.Clone(s.text)
		for _, node := range t.Path(parent, nil) {
			text = append(text, t.Token[node])
		}
		token, right := d.truth(text), true
		if rng.Float64() >= d.luck {
			token, right = (token+1+rng.Int32N(int32(d.vocab)-1))%int32(d.vocab), false
		}
		p := 1 - rng.Float64()
		if d.claim != nil {
			p = d.claim(rng, right)
		}
		t.Append(parent, token, float32(math.Log(p)))
	}
}

func (d *teller) Commit(rows []draft.Rows) error {
	for _, r := range rows {
		s := r.State.(*listener)
		if s.next >= 0 && r.Tokens[0] != s.next {
			return fmt.Errorf("rows start with %d, want %d", r.Tokens[0], s.next)
		}
		for i, token := range r.Tokens {
			s.text = append(s.text, token)
			if r.Tree == nil {
				if r.Pass != nil || r.Tap(0, i) != nil {
					return fmt.Errorf("a pass, or a tap, of rows that were not computed")
				}
				continue
			}
			if r.Tree.Token[r.Nodes[i]] != token {
				return fmt.Errorf("row %d carries %d, its node %d", i, token, r.Tree.Token[r.Nodes[i]])
			}
			for k, layer := range d.taps {
				if got, want := r.Tap(k, i)[0], feature(layer, s.text); got != want {
					return fmt.Errorf("tap %d, of layer %d, after %v: %g, want %g", k, layer, s.text, got, want)
				}
			}
			if l := r.Pass.Logits(r.Sequence, int(r.Nodes[i])); r.Next >= 0 && l[0] != feature(-1, s.text) {
				return fmt.Errorf("logits of row %d are not those of its context", i)
			}
		}
		s.next = r.Next
	}
	return d.refuseCommit
}
