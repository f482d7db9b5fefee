package onepass_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// genLevels draws the candidates of a few depths. Probabilities are powers of one half, and often equal.
func genLevels(r *rapid.T, depths, width int) [][]sample.Candidate {
	levels := make([][]sample.Candidate, rapid.IntRange(0, depths).Draw(r, "depths"))
	for d := range levels {
		scores := rapid.SliceOfN(rapid.IntRange(0, 40), 0, width).Draw(r, "scores")
		slices.Sort(scores)
		for i, s := range scores {
			c := sample.Candidate{Token: int32(100*d + 7*i), LogProb: -float32(s) * math.Ln2}
			if s == 40 {
				c.LogProb = float32(math.Inf(-1))
			}
			c.Score = math.Log(float64(float32(math.Exp(float64(c.LogProb))))) // as in the builder
			levels[d] = append(levels[d], c)
		}
	}
	return levels
}

func shape(t Fataler, name string, width int, lambda float64) *onepass.Shape {
	t.Helper()
	s, err := onepass.NewShape(name, width, lambda)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Whatever the shape, trees keep to the budget, parents come first, every node is a candidate of
// its depth among the first Ranked, with its log-probability, and siblings come in the order of
// their ranks without a gap.
func TestTreesAreOfTheirLevels(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		levels := genLevels(r, 6, 6)
		budget := rapid.IntRange(1, 60).Draw(r, "budget")
		name := rapid.SampledFrom([]string{onepass.AccumLogP, onepass.Entropy, onepass.Hybrid, onepass.DDTree,
			onepass.Chain}).Draw(r, "shape")
		s := shape(r, name, rapid.IntRange(1, 7).Draw(r, "width"), rapid.Float64Range(0.1, 5).Draw(r, "lambda"))
		tr := tree.New(3)
		s.Build(tr, levels, budget, nil)
		again := tree.New(3)
		s.Build(again, levels, budget, nil) // its memory makes no difference
		if err := tr.Check(1000); err != nil || tr.Token[0] != 3 || tr.Len() > budget {
			r.Fatalf("%d nodes for a budget of %d: %v", tr.Len(), budget, err)
		}
		if !slices.Equal(tr.Token, again.Token) || !slices.Equal(tr.Parent, again.Parent) {
			r.Fatalf("a second tree differs: %v, %v", tr, again)
		}
		kids := map[int32]int{}
		for i := 1; i < tr.Len(); i++ {
			level := levels[tr.Depth[i]-1]
			rank := kids[tr.Parent[i]]
			kids[tr.Parent[i]]++
			if rank >= s.Ranked(budget) || tr.Token[i] != level[rank].Token || tr.LogProb[i] != level[rank].LogProb ||
				math.IsInf(level[rank].Score, -1) {
				r.Fatalf("node %d is child %d of %d and carries %d: the level is %v, %d ranked", i, rank,
					tr.Parent[i], tr.Token[i], level, s.Ranked(budget))
			}
		}
	})
}

// prefix is a combination of the levels' candidates.
type prefix struct {
	tokens []int32
	sum    float64
}

// all lists every prefix of positive probability.
func all(levels [][]sample.Candidate, width int) (out []prefix) {
	last := []prefix{{}}
	for _, level := range levels {
		var next []prefix
		for _, p := range last {
			for i, c := range level {
				if i < width && !math.IsInf(c.Score, -1) {
					next = append(next, prefix{append(slices.Clone(p.tokens), c.Token), p.sum + c.Score})
				}
			}
		}
		out = append(out, next...)
		last = next
	}
	return out
}

// DDTree's tree has the most probable prefixes: they are, one by one, as likely as the best of all
// possible ones, and no likelier prefix is left out.
func TestDDTreeIsTheMostProbablePrefixes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		levels := genLevels(r, 4, 4)
		budget, width := rapid.IntRange(1, 50).Draw(r, "budget"), rapid.IntRange(0, 5).Draw(r, "width")
		tr := tree.New(3)
		shape(r, onepass.DDTree, width, 0).Build(tr, levels, budget, nil)
		if width == 0 {
			width = math.MaxInt
		}
		want := all(levels, width)
		slices.SortFunc(want, func(a, b prefix) int { return cmp.Compare(b.sum, a.sum) })
		want = want[:min(len(want), budget-1)]
		if tr.Len()-1 != len(want) {
			r.Fatalf("%d nodes below the root, want %d", tr.Len()-1, len(want))
		}
		for i, w := range want { // nodes come in the order of their probability
			if got := pathScore(tr, i+1, levels); got != w.sum {
				r.Fatalf("node %d has %v, the prefix of that place %v", i+1, got, w)
			}
		}
	})
}

// pathScore sums the scores of a node's path in the order in which the builder adds them.
func pathScore(t *tree.Tree, i int, levels [][]sample.Candidate) float64 {
	if i == 0 {
		return 0
	}
	level := levels[t.Depth[i]-1]
	at := slices.IndexFunc(level, func(c sample.Candidate) bool { return c.Token == t.Token[i] })
	return pathScore(t, int(t.Parent[i]), levels) + level[at].Score
}

// algorithm1 is Algorithm 1 of JetSpec to the letter, with a list in place of the queue.
func algorithm1(t *tree.Tree, levels [][]sample.Candidate, width, budget int, score func(node int) float64) {
	var queue []int
	for queue = []int{0}; len(queue) > 0 && t.Len() < budget; {
		best := 0
		for i, node := range queue { // of equal scores, the one inserted first
			if score(node) > score(queue[best]) {
				best = i
			}
		}
		node := queue[best]
		queue = slices.Delete(queue, best, best+1)
		d := int(t.Depth[node])
		if d >= len(levels) {
			continue
		}
		for k := range min(width, len(levels[d]), budget-t.Len()) {
			if c := levels[d][k]; !math.IsInf(c.Score, -1) {
				queue = append(queue, t.Append(node, c.Token, c.LogProb))
			}
		}
	}
}

func TestExpansionIsAlgorithm1(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		levels := genLevels(r, 6, 5)
		budget, width := rapid.IntRange(1, 80).Draw(r, "budget"), rapid.IntRange(1, 6).Draw(r, "width")
		lambda := rapid.SampledFrom([]float64{.25, 1, 8}).Draw(r, "lambda")
		entropy := []float64{0}
		for _, level := range levels {
			h := 0.0
			rest := 1.0
			last := 1.0
			for _, c := range level {
				if p := math.Exp(float64(c.LogProb)); p > 0 {
					h -= p * float64(c.LogProb)
					rest, last = rest-p, min(last, p)
				}
			}
			if rest > 0 { // tokens as likely as the last candidate
				h -= rest * math.Log(min(rest, last))
			}
			entropy = append(entropy, h)
		}
		for name, score := range map[string]func(t *tree.Tree, node int) float64{
			onepass.AccumLogP: func(t *tree.Tree, i int) float64 { return pathScore(t, i, levels) },
			onepass.Entropy:   func(t *tree.Tree, i int) float64 { return entropy[t.Depth[i]] },
			onepass.Hybrid: func(t *tree.Tree, i int) float64 {
				return pathScore(t, i,
					levels) + lambda*entropy[t.Depth[i]]
			},
		} {
			got, want := tree.New(3), tree.New(3)
			shape(r, name, width, lambda).Build(got, levels, budget, nil)
			algorithm1(want, levels, width, budget, func(node int) float64 { return score(want, node) })
			if !slices.Equal(got.Token, want.Token) || !slices.Equal(got.Parent, want.Parent) {
				r.Fatalf("%s: got %v, want %v", name, got, want)
			}
		}
	})
}

// With one child per node, accum-logp and ddtree are the chain.
func TestShapesIntersect(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		levels := genLevels(r, 6, 5)
		budget := rapid.IntRange(1, 60).Draw(r, "budget")
		same := func(name string, width int, other string) {
			a, b := tree.New(3), tree.New(3)
			shape(r, name, width, 0).Build(a, levels, budget, nil)
			shape(r, other, width, 0).Build(b, levels, budget, nil)
			if !slices.Equal(a.Token, b.Token) || !slices.Equal(a.Parent, b.Parent) {
				r.Fatalf("%s and %s of width %d: %v, %v", name, other, width, a, b)
			}
		}
		same(onepass.AccumLogP, 1, onepass.Chain)
		same(onepass.DDTree, 1, onepass.Chain)
	})
}

func TestShapesRefuse(t *testing.T) {
	for _, o := range []struct {
		name   string
		width  int
		lambda float64
	}{
		{"", 4, 0}, {"fixed", 4, 0}, {onepass.AccumLogP, -1, 0}, {onepass.DDTree, -1, 0}, {onepass.Hybrid, 4, 0},
		{onepass.Hybrid, 4, -1}, {onepass.Hybrid, 4, math.NaN()}, {onepass.Entropy, 1 << 20, 0},
	} {
		if _, err := onepass.NewShape(o.name, o.width, o.lambda); err == nil {
			t.Errorf("%+v makes a shape", o)
		}
	}
}
