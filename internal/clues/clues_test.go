package clues

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// byPath gives every path candidates of its own: any numbers that its tokens decide.
type byPath struct {
	seed   uint64
	deep   int
	called []int
}

func (b *byPath) of(path []int32) (list []sample.Candidate) {
	if len(path) > b.deep {
		return nil
	}
	h := b.seed
	for _, token := range path {
		h = h*31 + uint64(token)
	}
	rng := rand.New(rand.NewPCG(h, 0))
	for token := range int32(rng.IntN(5)) {
		score := -float64(rng.IntN(40)) / 8 // often equal, and sums exact
		list = append(list, sample.Candidate{Token: token, Score: score, LogProb: float32(score) - 1})
	}
	slices.SortFunc(list, func(a, b sample.Candidate) int { return cmp.Compare(b.Score, a.Score) })
	return list
}

func (b *byPath) Below(t *tree.Tree, node int) []sample.Candidate {
	b.called = append(b.called, node)
	var path []int32
	for _, n := range t.Path(node, nil) {
		path = append(path, t.Token[n])
	}
	return b.of(path)
}

// Growth is best-first whatever candidates a node has: of all paths that there are, the likeliest, in order; and every node is asked
// for its candidates once.
func TestGrowthIsBestFirst(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		from := &byPath{seed: rapid.Uint64().Draw(r, "seed"), deep: rapid.IntRange(1, 4).Draw(r, "deep")}
		budget := rapid.IntRange(1, 60).Draw(r, "budget")
		tr := tree.New(9)
		new(MostProbable).Grow(tr, from, budget)

		var want []float64
		var walk func(path []int32, sum float64)
		walk = func(path []int32, sum float64) {
			for _, c := range from.of(path) {
				want = append(want, sum+c.Score)
				walk(append(slices.Clone(path), c.Token), sum+c.Score)
			}
		}
		walk([]int32{9}, 0)
		slices.SortFunc(want, func(a, b float64) int { return cmp.Compare(b, a) })
		want = want[:min(len(want), budget-1)]
		if tr.Len()-1 != len(want) {
			r.Fatalf("%d nodes below the root, want %d", tr.Len()-1, len(want))
		}
		sums := []float64{0}
		for i := 1; i < tr.Len(); i++ {
			sums = append(sums, sums[tr.Parent[i]]+float64(tr.LogProb[i])+1)
			if sums[i] != want[i-1] {
				r.Fatalf("node %d has %g, the path of that place %g", i, sums[i], want[i-1])
			}
		}
		for i, node := range from.called {
			if i != node || len(from.called) != tr.Len() {
				r.Fatalf("nodes were asked for in the order %v", from.called)
			}
		}
	})
}

// followers are the tokens that followed the occurrences of sub in text, in text order; root follows the text.
func followers(text, sub []int32, root int32) (out []int32) {
	for end := len(sub); end <= len(text); end++ {
		if slices.Equal(text[end-len(sub):end], sub) {
			out = append(out, append(text[end:len(text):len(text)], root)[0])
		}
	}
	return out
}

// What the text says of a node, against brute force: the longest suffix of text and path that the text holds, what followed the
// latest occurrences of it, and how often what followed.
func TestCluesOfTheText(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		token := rapid.Int32Range(0, int32(rapid.IntRange(0, 3).Draw(r, "alphabet")))
		n := rapid.IntRange(1, 40).Draw(r, "length")
		text := rapid.SliceOfN(token, n, n).Draw(r, "text")
		path := rapid.SliceOfN(token, 1, 6).Draw(r, "path") // the root first
		s := NewText(&sample.Params{}, &BlockHead)
		s.Learn(text)
		at := s.automaton.End()
		for _, token := range path {
			at = s.automaton.Match(at, token)
		}
		x, clues := s.gather(path[0], at, len(path), &Row{}, false, nil, nil)

		whole := slices.Concat(text, path)
		length := len(whole)
		for length > 0 && len(followers(text, whole[len(whole)-length:], path[0])) == 0 {
			length--
		}
		if x.class != matchClass(int32(length)) || x.headed {
			r.Fatalf("%v, %v: class %d, the longest match has %d", text, path, x.class, length)
		}
		if length == 0 {
			if len(clues) > 0 {
				r.Fatalf("%v without a match", clues)
			}
			return
		}
		after := followers(text, whole[len(whole)-length:], path[0])
		for i := range clues {
			c := &clues[i]
			if slices.IndexFunc(clues, func(d clue) bool { return d.token == c.token }) != i {
				r.Fatalf("%v: token %d twice", clues, c.token)
			}
			n := len(after)
			if latest := after[n-1] == c.token; c.latest != latest || c.agreed != (latest && n > 1 && after[n-2] == c.token) {
				r.Fatalf("%v, %v: %+v, followed by %v", text, path, *c, after)
			}
			followed := slices.Contains(after, c.token)
			if followed == c.longer || followed && c.class != x.class {
				r.Fatalf("%v, %v: %+v, followed by %v", text, path, *c, after)
			}
			seen := 0
			for _, token := range followers(text, whole[len(whole)-length:], -1) {
				if token == c.token {
					seen++
				}
			}
			if want := math.Log(float64(max(seen, 1)) / float64(n)); followed && math.Abs(float64(c.share)-want) > 1e-5 {
				r.Fatalf("%v, %v: %+v, followed by %v: want a share of %g", text, path, *c, after, want)
			}
		}
		for _, token := range after {
			if !slices.ContainsFunc(clues, func(c clue) bool { return c.token == token }) {
				r.Fatalf("%v, %v: no clue to %d", text, path, token)
			}
		}
	})
}

// Chances come in order, add up to less than 1, and are those of the likeliest of all that was a clue.
func TestChancesOfClues(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := BlockHead.At(rapid.Float32Range(0, 2).Draw(r, "temperature"))
		x := spot{at: rapid.IntRange(1, 30).Draw(r, "depth"), headed: rapid.Bool().Draw(r, "headed"), strays: rapid.Bool().Draw(r, "strays"),
			class: int8(rapid.IntRange(0, matchClasses-1).Draw(r, "class")), beyond: -rapid.Float32Range(0, 16).Draw(r, "beyond"),
			last: rapid.Float32Range(-15, 5).Draw(r, "last")}
		var clues []clue
		for token := range int32(rapid.IntRange(1, 40).Draw(r, "clues")) {
			c := clue{token: token, head: -rapid.Float32Range(0, 15).Draw(r, "head"), class: int8(rapid.IntRange(0, int(x.class)).Draw(r, "own"))}
			if c.class > 0 {
				c.share = -rapid.Float32Range(0, 3).Draw(r, "share")
			}
			clues = append(clues, c)
		}
		all, _ := w.chances(&x, clues, make([]sample.Candidate, 0, 40), nil)
		some, _ := w.chances(&x, clues, make([]sample.Candidate, 0, KeptMost), nil)
		sum := 0.0
		for i, c := range all {
			sum += math.Exp(float64(c.LogProb))
			if i > 0 && c.LogProb > all[i-1].LogProb || i < len(some) && some[i] != c {
				r.Fatalf("%v, %v", all, some)
			}
		}
		if sum > 1+1e-5 || !(sum > 0) || len(all) != len(clues) || len(some) != min(len(clues), KeptMost) {
			r.Fatalf("%d of %d, %d: sum %g", len(all), len(clues), len(some), sum)
		}
	})
}
