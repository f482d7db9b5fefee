package grow

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/calibrate"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// oracle ranks the candidates after texts in the plainest way: one row per pass, with its own
// sampler.
type oracle struct {
	one
	p      sample.Params
	ranked int
}

// below returns the candidates after a text with the drafter's chances, and its confidence in the
// first.
func (o *oracle) below(t fataler, text []int32) ([]sample.Candidate, float32) {
	t.Helper()
	s := must(sample.New(o.p, vocab))(t)
	c := s.Top(make([]sample.Candidate, 0, o.ranked), o.logits(t, text), len(text), pushAll(o.p, text))
	confidence := float32(0) // the probability of the most probable token, whatever the noise
	for _, x := range c {
		confidence = max(confidence, exp(x.LogProb))
	}
	if o.p.Temperature > 0 {
		treebuild.CoupledChances(c, o.ranked, o.p.Temperature)
	}
	return c, confidence
}

// levels grows a tree as linear, fixed and DynaTree do, by the paper's description.
func (o *oracle) levels(t fataler, shape Shape, text []int32, budget, depth int) *tree.Tree {
	t.Helper()
	tr := tree.New(text[len(text)-1])
	path := []float32{0}
	l, _ := shape.limits()
	most := min(budget, l.nodes)
	expandable := func(u int) bool {
		d := int(tr.Depth[u])
		switch s := shape.(type) {
		case *Linear:
			return d < s.K
		case *Fixed:
			return d < s.D+1 && path[u] >= logOf(s.Tau)
		case *DynaTree:
			d--
			if d < 0 { // the last committed token, below which the paper's tree is drafted
				return true
			}
			return d < s.DMax && path[u] >= logOf(s.RhoStop) && path[u] >= logOf(s.Tau) &&
				(d < s.D0 || path[u] > logOf(s.RhoDeep))
		}
		panic("no such shape")
	}
	breadth := func(u int, c float32) int {
		switch s := shape.(type) {
		case *Fixed:
			return s.B
		case *DynaTree:
			if u == 0 && s.BRoot > 0 {
				return s.BRoot
			} else if c >= s.TauH {
				return s.BMin
			} else if c < s.TauL {
				return s.BMax
			}
			return s.BMid
		}
		return 1
	}
	for level := []int{0}; len(level) > 0; {
		var next []int
		slices.SortStableFunc(level, func(a, b int) int { return cmp.Compare(path[b], path[a]) })
		for _, u := range level {
			if int(tr.Depth[u]) >= depth || !expandable(u) || tr.Len() >= most {
				continue
			}
			own := slices.Clone(text)
			for _, v := range tr.Path(u, nil)[1:] {
				own = append(own, tr.Token[v])
			}
			cands, c := o.below(t, own)
			for _, x := range cands[:min(breadth(u, c), len(cands))] {
				if tr.Len() < most {
					v := tr.Append(u, x.Token, x.LogProb)
					path = append(path, path[u]+tr.LogProb[v])
					next = append(next, v)
				}
			}
		}
		level = next
	}
	// A true prune: leaves below τ are removed.
	floor, index := shape.floor(), []int{0}
	pruned := tree.New(tr.Token[0])
	for i := 1; i < tr.Len(); i++ {
		if at := index[tr.Parent[i]]; at >= 0 && path[i] >= floor {
			index = append(index, pruned.Append(at, tr.Token[i], tr.LogProb[i]))
		} else {
			index = append(index, -1)
		}
	}
	return pruned
}

// Linear, fixed and DynaTree follow the paper's rules, computed one row at a time: breadth from
// confidence, depth gates, pruning, and the three budgets.
func TestShapesAreTheRules(t *testing.T) {
	m := openModels(t)
	cases.Check(t, 40, func(r *rapid.T) {
		shape := genShape(r)
		switch shape.(type) {
		case *BestFirst, *Dynamic, withText:
			r.Skip("they have tests of their own")
		}
		dm := m.draws(r)
		text := genText(r, "text", 1, 40)
		l, _ := shape.limits()
		o := oracle{*newOne(dm), genParams(r), max(l.children, rankedLeast)}
		budget, depth := rapid.IntRange(2, 50).Draw(r, "budget"), rapid.IntRange(1, 10).Draw(r, "depth")
		d := must(ofModel(shape, dm, m.as()))(r)
		s := prompted(r, d, draft.Options{Sampling: o.p}, text[:len(text)-1])
		defer s.Close()
		got := propose(r, d, s, text[len(text)-1], budget, depth, nil)
		if want := o.levels(r, shape, text, budget, depth); !sameTree(got, want) {
			r.Fatalf("%+v, %+v, budget %d, depth %d: drafted\n%swant\n%s", shape, o.p, budget, depth, got, want)
		}
		st := s.(*state)
		for node := range st.tree.Token { // leaves are never run, except where others took the room that they were to have
			if st.row[node] >= 0 && !slices.Contains(st.tree.Parent, int32(node)) && st.room() > 0 {
				r.Fatalf("node %d was computed for nothing:\n%s", node, &st.tree)
			}
		}
		if l.children == 1 && st.steps > depth {
			r.Fatalf("%d passes for a depth of %d", st.steps, depth)
		}
	})
}

// guide calibrates by a power that grows with depth (power 0: many nodes have the same value), and
// stops after some levels.
type guide struct {
	power  float64
	levels int
	asked  int
}

func (g *guide) Chance(depth int, logProb float32) float32 {
	if g.power == 0 {
		if logProb > -1 {
			return 0.5
		}
		return 0.25
	}
	return float32(math.Exp(float64(logProb) * g.power * (1 + float64(depth)/10)))
}
func (g *guide) Value(chance float32) float32 { return chance }

func (g *guide) Deeper(expected, more float32) bool {
	g.asked++
	return g.asked <= g.levels
}
func (g *guide) Part(int) draft.Guide { return g }

// Best-first proposes the best: no candidate that was left out is worth more than a node of the
// tree, and the budget is used up if there are enough candidates.
func TestBestFirstIsTheBest(t *testing.T) {
	m := openModels(t)
	cases.Check(t, 40, func(r *rapid.T) {
		shape := &BestFirst{Width: rapid.IntRange(1, 9).Draw(r, "width"),
			Branch: rapid.IntRange(1, 6).Draw(r, "branch"), Depth: rapid.IntRange(1, 8).Draw(r, "d")}
		dm := m.draws(r)
		text := genText(r, "text", 1, 40)
		o := oracle{*newOne(dm), genParams(r), max(shape.Branch, rankedLeast)}
		budget := rapid.IntRange(2, 24).Draw(r, "budget")
		g := &guide{power: rapid.SampledFrom([]float64{0, .5, 1, 2}).Draw(r, "power"), levels: math.MaxInt}
		d := must(ofModel(shape, dm, m.as()))(r)
		s := prompted(r, d, draft.Options{Sampling: o.p}, text[:len(text)-1])
		defer s.Close()
		tr := propose(r, d, s, text[len(text)-1], budget, 100, g)
		if tr.Len() > budget {
			r.Fatalf("%d nodes for a budget of %d", tr.Len(), budget)
		}
		worth := []float32{1}
		least := float32(1)
		for i := 1; i < tr.Len(); i++ {
			worth = append(worth, worth[tr.Parent[i]]*min(g.Chance(int(tr.Depth[i]), tr.LogProb[i]), 1))
			least = min(least, worth[i])
		}
		for u := range tr.Token {
			if int(tr.Depth[u]) >= shape.Depth {
				continue
			}
			own := slices.Clone(text)
			for _, v := range tr.Path(u, nil)[1:] {
				own = append(own, tr.Token[v])
			}
			cands, _ := o.below(r, own)
			for _, c := range cands[:min(len(cands), shape.Branch)] {
				w := worth[u] * min(g.Chance(int(tr.Depth[u])+1, c.LogProb), 1)
				if tr.Child(u, c.Token) < 0 && w > 0 && (tr.Len() < budget || w > least) {
					r.Fatalf("token %d below node %d, worth %g, was left out of\n%s(least %g)", c.Token, u, w, tr,
						least)
				}
			}
		}
	})
}

// A guide that refuses ends every shape's tree. What it is told of the tree so far is the sum of
// its nodes' values.
func TestGuideStops(t *testing.T) {
	m := openModels(t)
	cases.Check(t, 40, func(r *rapid.T) {
		shape := genShape(r)
		g := &guide{power: 1, levels: rapid.IntRange(1, 5).Draw(r, "levels")}
		d := must(ofModel(shape, m.draws(r), m.as()))(r)
		s := prompted(r, d, draft.Options{Sampling: genParams(r)}, genText(r, "text", 1, 30))
		defer s.Close()
		tr := propose(r, d, s, 3, rapid.IntRange(2, 40).Draw(r, "budget"), 100, g)
		_, goesOn := shape.(withText) // as the text does, without a pass
		if tr.MaxDepth() > g.levels && !goesOn || s.(*state).steps > g.levels {
			r.Fatalf("depth %d and %d passes where %d were allowed", tr.MaxDepth(), s.(*state).steps, g.levels)
		}
	})
}

// History adaptation: after every round, in proportion to the mean of the last W, within the
// paper's clips, and separately for each sequence.
func TestHistoryAdapts(t *testing.T) {
	m := openModels(t)
	o := DefaultDynaTree()
	o.Window = 3
	o.EtaD = .5
	o.EtaH = .1
	o.EtaL = .2
	d := must(ofModel(&o, m.rounded, m.as()))(t)
	// round drafts a chain and commits a part of it. If the tree that was verified is another one, as
	// in a merge, the round teaches nothing.
	round := func(s draft.State, accepted, depth int) {
		rows := draft.Rows{State: s, Tokens: make([]int32, accepted+1), Tree: tree.Chain(make([]int32, 30)), Next: 1}
		for i := range rows.Tokens {
			rows.Nodes = append(rows.Nodes, int32(i))
		}
		if depth > 0 {
			propose(t, d, s, 0, 2, 1, nil)
			st := s.(*state)
			st.tree.ResetChain(make([]int32, depth+1))
			st.row = slices.Repeat([]int32{-1}, depth+1)
			if accepted == depth {
				rows.Next = 0 // the text continued as the next node would have, if it had been verified
			}
		}
		if err := d.Commit([]draft.Rows{rows}); err != nil {
			t.Fatal(err)
		}
	}
	one, other := prompted(t, d, draft.Options{}, []int32{1}), prompted(t, d, draft.Options{}, []int32{1})
	defer one.Close()
	defer other.Close()
	d0 := float32(5)
	tauH := float32(.9)
	tauL := float32(.4)
	rates := []float32{}
	for _, r := range [][2]int{{4, 4}, {4, 4}, {0, 5}, {1, 4}, {7, 7}, {7, 7}, {7, 7}, {7, 7}, {7, 7}, {7, 7}, {7, 7}} {
		round(one, r[0], r[1])
		rates = append(rates, float32(r[0])/float32(r[1]))
		last := rates[max(0, len(rates)-3):]
		mean := float32(0)
		for _, x := range last {
			mean += x
		}
		over := mean/float32(len(last)) - .7
		d0, tauH = clip(d0+.5*over, 1, 7), clip(tauH-.1*over, 0, 1)
		tauL = clip(tauL-.2*over, 0, tauH)
		a := one.(*state).adapted
		if math.Abs(float64(a.d0-d0))+math.Abs(float64(a.tauH-tauH))+math.Abs(float64(a.tauL-tauL)) > 1e-5 {
			t.Fatalf("after %v: %g %g %g, want %g %g %g", rates, a.d0, a.tauH, a.tauL, d0, tauH, tauL)
		}
	}
	for range 200 {
		round(one, 7, 7)
	}
	if a := one.(*state).adapted; a.d0 != 7 || a.tauL != 0 {
		t.Errorf("always accepted: %+v, want the clips", a)
	}
	for range 200 {
		round(one, 0, 7)
	}
	if a := one.(*state).adapted; a.d0 != 1 || a.tauH != 1 {
		t.Errorf("never accepted: %+v, want the clips", a)
	}
	if a := other.(*state).adapted; a.d0 != 5 || a.tauH != .9 || a.tauL != .4 {
		t.Errorf("another sequence: %+v", a)
	}
	round(other, 0, 0) // a plain round teaches nothing
	if a := other.(*state).adapted; a.rounds != 0 {
		t.Errorf("after a plain round: %+v", a)
	}
}

// Another level is expected to bring the chances of its nodes minus the cost of their rows: many
// nodes that are not worth their rows bring nothing.
func TestGainIsOfNodesWorthTheirRows(t *testing.T) {
	cases.Check(t, 100, func(r *rapid.T) {
		y := newYield(rapid.IntRange(1, 12).Draw(r, "children"))
		g := &growth{}
		for i := range rapid.IntRange(1, 8).Draw(r, "nodes") {
			g.expand, g.worth = append(g.expand, int32(i)), append(g.worth, rapid.Float32Range(0, 1).Draw(r, "worth"))
		}
		row, want := rapid.Float32Range(0, .5).Draw(r, "row"), float32(0)
		for _, node := range g.expand {
			for _, chance := range y.chance {
				want += max(g.worth[node]*chance-row, 0)
			}
		}
		if got := y.gain(g, row); math.Abs(float64(got-want)) > 1e-5 {
			r.Fatalf("nodes of %v, children of %v, rows of %g tokens: %g, want %g", g.worth, y.chance, row, got, want)
		}
	})
}

// The yield of expanding a node is learned quickly: the guess counts as a few trees.
func TestYieldIsSoonLearned(t *testing.T) {
	cases.Check(t, 100, func(r *rapid.T) {
		y, brings := newYield(1), rapid.Float32Range(0, 1).Draw(r, "brings")
		guess, trees := y.chance[0], float32(rapid.IntRange(1, calibrate.Memory-calibrate.PriorWeight).Draw(r, "trees"))
		for range int(trees) {
			weight := rapid.Float32Range(.1, 4).Draw(r, "weight")
			y.learn(&yield{chance: []float32{brings * weight}, weight: weight})
		}
		want := (guess*calibrate.PriorWeight + brings*trees) / (calibrate.PriorWeight + trees)
		if got := y.chance[0]; math.Abs(float64(got-want)) > 1e-5 {
			r.Fatalf("after %g trees that bring %g: %g, want %g", trees, brings, got, want)
		}
	})
}
