// A round: every part proposes, and what is worth most of the union of the trees is kept.

package merge

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/tree"
)

// Propose asks every part for trees of the whole budget. When a part fails it fails, and the trees are roots.
func (d *drafter) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	d.proposals = draft.Proposals(d.proposals, len(requests))
	for i := range requests {
		s := requests[i].State.(*state)
		s.valid = false
		s.root = requests[i].Tree.Token[0]
		s.reach, s.expected = s.reach[:0], 0
	}
	for k := range d.parts {
		err := ctx.Err()
		began := time.Now()
		if err == nil {
			err = d.ask(ctx, k, requests)
		}
		if err != nil {
			return nil, err
		}
		d.spent[k].Time = time.Since(began)
	}
	for i := range requests {
		r := &requests[i]
		s := r.State.(*state)
		if err := d.unite(s); err != nil {
			return nil, err
		}
		d.weigh(s)
		d.keep(s, r)
		s.valid = true
		d.proposals[i].Parts = d.spent
	}
	return d.proposals, nil
}

// ask has part k propose for all sequences, and checks what it made of them.
func (d *drafter) ask(ctx context.Context, k int, requests []draft.Request) error {
	p := &d.parts[k]
	p.requests = p.requests[:0]
	for i := range requests {
		r := requests[i]
		s := r.State.(*state)
		s.trees[k].Reset(s.root)
		if v := &s.views[k]; r.Guide != nil {
			v.guide, v.asked = r.Guide, 0
			r.Guide = v
		}
		r.State, r.Tree = s.parts[k], s.trees[k]
		p.requests = append(p.requests, r)
	}
	proposals, err := p.Drafter.Propose(ctx, p.requests)
	if err != nil {
		return d.fault(k, err)
	}
	d.spent[k].Levels = 0
	for i := range requests {
		d.spent[k].Levels = max(d.spent[k].Levels, proposals[i].Levels)
		d.proposals[i].Levels += proposals[i].Levels
		s := requests[i].State.(*state)
		t := s.trees[k]
		if err := t.Check(d.vocab); err != nil {
			return d.fault(k, err)
		}
		if t.Token[0] != s.root {
			return d.fault(k, fmt.Errorf("the root of its tree is token %d: want %d, the last of the text", t.Token[0], s.root))
		}
		if g := requests[i].Guide; g != nil && k+1 < len(d.parts) {
			d.expect(s, k, g)
		}
	}
	return nil
}

// expect notes what part k is expected to get accepted, for the guides of those that come after it.
func (d *drafter) expect(s *state, k int, g draft.Guide) {
	t := s.trees[k]
	d.chance = append(d.chance[:0], 1)
	for i := 1; i < t.Len(); i++ {
		depth := int(t.Depth[i])
		d.chance = append(d.chance, g.Chance(depth, log(d.worlds[s.world].parts[k].of(depth, exp(t.LogProb[i])))))
	}
	d.alternatives(t)
	paths(t, d.chance)
	d.sum = d.sum[:0] // by depth
	for i, c := range d.chance {
		for len(d.sum) <= int(t.Depth[i]) {
			d.sum = append(d.sum, 0)
		}
		d.sum[t.Depth[i]] += c
	}
	for depth, c := range d.sum {
		if depth >= len(s.reach) {
			s.reach = append(s.reach, 0)
		}
		s.reach[depth] = max(s.reach[depth], c)
	}
	s.expected = 0
	for _, c := range s.reach[1:] {
		s.expected += c
	}
}

// unite makes the union of the sequence's trees.
func (d *drafter) unite(s *state) (err error) {
	if d.o.Mode == Disjoint {
		d.where, err = s.union.align(s.trees, d.where)
		return err
	}
	d.where = s.union.splice(s.trees, d.where)
	return nil
}

// weigh sets the log-probabilities of the union: what the surest of the parts says, put right by what came of its
// claims, and then by what came of such claims alone, against others, or together with them.
func (d *drafter) weigh(s *state) {
	u, w := &s.union, &d.worlds[s.world]
	t := u.tree
	d.chance = append(d.chance[:0], 1)
	for i := 1; i < t.Len(); i++ {
		depth := int(t.Depth[i])
		best := float32(0)
		for k := range d.parts {
			if p := u.claim(i, k); p >= 0 {
				best = max(best, w.parts[k].of(depth, p))
			}
		}
		u.best[i] = best
		d.chance = append(d.chance, w.kinds[u.kind(i)].of(depth, best))
	}
	d.alternatives(t)
	for i := 1; i < t.Len(); i++ {
		t.LogProb[i] = log(d.chance[i])
	}
}

// keep makes the request's tree of those nodes of the union that fit budget and depth, the likeliest paths first. The
// loop's own calibration, where there is a guide, is of the merged tree's probabilities.
func (d *drafter) keep(s *state, r *draft.Request) {
	t := s.union.tree
	if r.Guide != nil {
		for i := 1; i < t.Len(); i++ {
			d.chance[i] = r.Guide.Chance(int(t.Depth[i]), t.LogProb[i])
		}
		d.alternatives(t)
	}
	paths(t, d.chance)
	d.order = d.order[:0]
	for i := 1; i < t.Len(); i++ {
		if int(t.Depth[i]) <= r.Depth {
			// Bits of numbers that are not negative order like the numbers; among equals the first comes first, so
			// a node never before its parent.
			d.order = append(d.order, uint64(^math.Float32bits(d.chance[i]))<<32|uint64(i))
		}
	}
	slices.Sort(d.order)
	d.nodes = append(d.nodes[:0], 0)
	for _, o := range d.order[:min(len(d.order), max(r.Budget-1, 0))] {
		d.nodes = append(d.nodes, int32(uint32(o)))
	}
	slices.Sort(d.nodes)
	d.index = t.Pick(r.Tree, d.nodes, d.index)
}

// alternatives makes the chances d.chance of siblings, only one of which can come next, add up to 1 at most.
func (d *drafter) alternatives(t *tree.Tree) {
	d.sum = d.sum[:0]
	for i, c := range d.chance {
		d.sum = append(d.sum, 0)
		if c = min(c, 1); !(c > 0) { // NaN too
			c = 0
		}
		d.chance[i] = c
		if i > 0 {
			d.sum[t.Parent[i]] += c
		}
	}
	for i := 1; i < t.Len(); i++ {
		if sum := d.sum[t.Parent[i]]; sum > 1 {
			d.chance[i] /= sum
		}
	}
}

// paths makes chances of nodes, given their parents, into those of the paths to them.
func paths(t *tree.Tree, chance []float32) {
	for i := 1; i < t.Len(); i++ {
		chance[i] *= chance[t.Parent[i]]
	}
}
