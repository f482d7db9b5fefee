package specblock_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/nn"
)

// place is a node of the tree that the rules make, identified by the tokens that lead to it.
type place struct {
	path    []int32
	logProb float64 // given its parent
	order   int
}

// rules grows the whole tree of algorithm 2 at temperature 0, over an oracle whose last entry is
// the root's. Each block contributes the first b candidates of each slot, below the likeliest
// candidate of the slot before. Later blocks start from all candidates of a slot that has more than
// one, and from the last slot's unless the first uncertain slot is given up, if they are among the
// likeliest that fit the budget. It fails if that is a matter of rounding.
func rules(o *oracle, widths [specblock.RankBuckets]int, blocks, budget int) (all []*place, ok bool) {
	nodes, ok := map[string]*place{}, true
	name := func(path []int32) string { return fmt.Sprint(path) }
	type from struct {
		row  int
		path []int32
	}
	type block struct {
		first int
		path  []int32
	}
	level := []block{{o.layout.Tree.Len() - o.n.Block, nil}}
	for m := range blocks {
		var starts []from
		for i, b := range level {
			logits := o.logits(b.first, o.n.Block)
			at := b.path
			sure := true
			lost := false
			for k := range o.n.Block {
				tokens, logProbs := ranked(o.n, logits.Row(k))
				width, bucket := widths[0], 0
				if widths != [specblock.RankBuckets]int{width, width, width, width} {
					bucket = bucketOf(o, b.first+k, logits.Row(k))
					width = widths[bucket]
				}
				lost = lost || sure && bucket == 3
				sure = sure && bucket == 0
				width = min(width, len(tokens))
				if m == 0 && i == 0 && k == 0 {
					width = max(width, 1)
				}
				if width == 0 {
					break
				}
				for j := range width {
					path := append(slices.Clone(at), tokens[j])
					if p := nodes[name(path)]; p != nil {
						p.logProb = max(p.logProb, logProbs[j])
					} else {
						nodes[name(path)] = &place{path, logProbs[j], len(nodes)}
					}
					if width > 1 || k == o.n.Block-1 && !lost {
						if !slices.ContainsFunc(starts, func(f from) bool { return name(f.path) == name(path) }) {
							starts = append(starts, from{b.first + k, path})
						}
					}
				}
				at = append(slices.Clone(at), tokens[0])
			}
		}
		sums := map[string]float64{}
		for _, p := range nodes {
			sums[name(p.path[:len(p.path)-1])] += math.Exp(p.logProb)
		}
		for _, p := range nodes {
			p.logProb -= math.Log(max(sums[name(p.path[:len(p.path)-1])], 1))
		}
		if m == blocks-1 {
			break
		}
		starts = slices.DeleteFunc(starts, func(f from) bool {
			in, sure := likeliest(nodes, f.path, budget-1)
			ok = ok && sure
			return !in
		})
		if !ok {
			return nil, false
		}
		var rows []int
		var tokens []int32
		for _, s := range starts {
			rows, tokens = append(rows, s.row), append(tokens, s.path[len(s.path)-1])
		}
		if len(rows) == 0 {
			break
		}
		level = level[:0]
		for i, first := range o.branch(rows, tokens, o.n.Block) {
			level = append(level, block{first, starts[i].path})
		}
	}
	for _, p := range nodes {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *place) int { return cmp.Compare(a.order, b.order) })
	return all, true
}

// likeliest reports whether a path is among the n likeliest, and whether it is clearly separated
// from the first that is not, or from the last that is.
func likeliest(nodes map[string]*place, path []int32, n int) (in, sure bool) {
	value := func(path []int32) float64 {
		sum := 0.0
		for i := range path {
			sum += nodes[fmt.Sprint(path[:i+1])].logProb
		}
		return math.Exp(sum)
	}
	own := value(path)
	more := 0
	close := 0
	for _, p := range nodes {
		switch v := value(p.path); {
		case v > own*(1+1e-4):
			more++
		case v > own*(1-1e-4):
			close++
		}
	}
	return more < n, more >= n || more+close <= n
}

// ranked returns the target's tokens by logit, with their log-probabilities.
func ranked(n *specblock.Network, logits []float32) (tokens []int32, logProbs []float64) {
	sum := 0.0
	order := make([]int, len(logits))
	for i, l := range logits {
		order[i] = i
		sum += math.Exp(float64(l))
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(logits[b], logits[a]) })
	for _, i := range order {
		token := int32(i)
		if n.Tokens != nil {
			token = n.Tokens[i]
		}
		tokens, logProbs = append(tokens, token), append(logProbs, float64(logits[i])-math.Log(sum))
	}
	return tokens, logProbs
}

// bucketOf returns the rank head's bucket for one row.
func bucketOf(o *oracle, row int, logits []float32) int {
	top := slices.Clone(logits)
	slices.SortFunc(top, func(a, b float32) int { return cmp.Compare(b, a) })
	features := nn.NewMat(1, specblock.Features)
	states := nn.NewMat(1, o.n.Hidden)
	out := nn.NewMat(1, specblock.RankBuckets)
	var beyond specblock.Beyond
	top = top[:min(len(top), specblock.FeatureLogits)]
	if o.n.RankFull {
		beyond = specblock.BeyondOf(logits, top)
	}
	specblock.FeaturesOf(top, beyond, features.Row(0))
	copy(states.Row(0), o.states[row])
	o.n.Rank(o.e, states, features, out, &o.bufs)
	best := 0
	for i, v := range out.Row(0) {
		if v+o.n.RankOffset[i] > out.Row(0)[best]+o.n.RankOffset[best] {
			best = i
		}
	}
	return best
}
