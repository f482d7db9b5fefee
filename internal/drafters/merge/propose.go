package merge

import (
	"context"
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/batch"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/kernels/fineclock"
	"github.com/grovellm/grove/tree"
)

// Propose asks the parts one after the other, and merges their trees. If a part fails, Propose fails,
// and the trees are roots.
func (d *drafter) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	d.proposals = batch.Proposals(d.proposals, len(requests))
	for i := range requests {
		s := requests[i].State.(*state)
		s.root, s.proposed = requests[i].Tree.Token[0], false
		s.reach, s.expected = s.reach[:0], 0
	}
	for k := range d.parts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		began := fineclock.Now()
		if err := d.ask(ctx, k, requests); err != nil {
			return nil, d.fault(k, err)
		}
		d.spent[k].Time = fineclock.Since(began)
	}
	for i := range requests {
		r := &requests[i]
		s := r.State.(*state)
		d.merge(s.trees)
		d.index = d.union.Sub(r.Tree, nil, r.Budget, r.Depth, d.index)
		s.proposed = true
	}
	return d.proposals, nil
}

// ask asks part k for the proposals of all sequences, checks its trees and replaces their
// probabilities by measured ones.
func (d *drafter) ask(ctx context.Context, k int, requests []draft.Request) error {
	p := &d.parts[k]
	p.requests = p.requests[:0]
	for i := range requests {
		r := requests[i]
		s := r.State.(*state)
		if g := &s.guides[k]; r.Guide != nil {
			g.loop, g.asked = r.Guide, 0
			r.Guide = g
		}
		r.State = s.parts[k]
		r.Tree = s.trees[k]
		r.Budget = d.share(s, k, r.Budget)
		r.Tree.Reset(s.root)
		p.requests = append(p.requests, r)
	}
	proposals, err := p.Drafter.Propose(ctx, p.requests)
	if err != nil {
		return err
	}
	d.spent[k].Levels = 0
	for i := range requests {
		d.spent[k].Levels = max(d.spent[k].Levels, proposals[i].Levels)
		d.proposals[i].Levels += proposals[i].Levels
		r, s := &p.requests[i], requests[i].State.(*state)
		t := s.trees[k]
		if err := t.Check(d.vocab); err != nil {
			return err
		}
		if t.Token[0] != s.root {
			return fmt.Errorf("the root of its tree is token %d: want %d, the last of the text", t.Token[0], s.root)
		}
		if t.Len() > max(r.Budget, 1) || t.MaxDepth() > r.Depth {
			d.index = t.Sub(d.spare, nil, r.Budget, r.Depth, d.index)
			t.Copy(d.spare)
		}
		s.claims[k] = append(s.claims[k][:0], t.LogProb...)
		for n := 1; n < t.Len(); n++ {
			t.LogProb[n] = d.logChance(s, k, int(t.Depth[n]), t.LogProb[n])
		}
		if g := requests[i].Guide; g != nil && k+1 < len(d.parts) {
			d.expect(s, t, g)
		}
	}
	return nil
}

// share returns the budget of part k. In the paper's form the parts divide the nodes below the root
// evenly. Nodes that a part leaves unused go to the parts after it.
func (d *drafter) share(s *state, k, budget int) int {
	if d.o.Mode != Disjoint {
		return budget
	}
	left := budget - 1
	for _, t := range s.trees[:k] {
		left -= t.Len() - 1
	}
	parts := len(d.parts) - k
	return 1 + (left+parts-1)/parts
}

// route returns the tree with the most expected accepted tokens (section 8).
func (d *drafter) route(trees []*tree.Tree) (best *tree.Tree) {
	most := float32(-1)
	for _, t := range trees {
		var expected float32
		expected, d.path = textrank.Expected(t, nil, d.path) // its probabilities are measured chances
		if expected > most {
			best, most = t, expected
		}
	}
	return best
}

// merge makes d.union the union of the parts' trees, or one of them.
func (d *drafter) merge(trees []*tree.Tree) {
	if d.o.Mode == Routed {
		d.union.Copy(d.route(trees))
		return
	}
	d.union.Reset(trees[0].Token[0])
	for _, t := range trees {
		if d.o.Mode == Disjoint { // section 4.1: φ
			d.index = splice(d.spare, d.union, t, d.index)
			d.union, d.spare = d.spare, d.union
			continue
		}
		d.index = append(d.index[:0], 0) // node i of t is node index[i] of the union
		for i := 1; i < t.Len(); i++ {
			d.index = append(d.index, int32(d.union.Append(int(d.index[t.Parent[i]]), t.Token[i], t.LogProb[i])))
		}
	}
}

// splice makes dst the union of a and b under their root: a's nodes at their own indices, b's after them, no
// link between the two. It returns φ, the index in dst of each node of b: φ(0) = 0, φ(i) = n₁ + i, where n₁ is
// the number of a's nodes below the root. phi's memory is used for it. The same candidate may come from both;
// it then has a node in each half.
func splice(dst, a, b *tree.Tree, phi []int32) []int32 {
	dst.Copy(a)
	phi = append(phi[:0], 0)
	for i := 1; i < b.Len(); i++ { // π∪(j) = φ(π₂(j − n₁))
		n := dst.AppendApart(int(phi[b.Parent[i]]), b.Token[i])
		dst.LogProb[n] = b.LogProb[i]
		phi = append(phi, int32(n))
	}
	return phi
}
