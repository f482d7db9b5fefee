package medusa

import (
	"slices"
	"testing"

	"github.com/grovellm/grove/internal/drafters/medusa"
	"github.com/grovellm/grove/internal/testing/cases"
	"pgregory.net/rapid"
)

// genTemplate draws a template's parents.
func genTemplate(r *rapid.T, nodes int) (t medusa.Template) {
	for i := range nodes {
		t = append(t, rapid.Int32Range(0, int32(i)).Draw(r, "parent"))
	}
	return t
}

// pathsOf returns the ranks on the path to each node.
func pathsOf(t medusa.Template) [][]int {
	paths, children := [][]int{{}}, make([]int, len(t)+1)
	for _, parent := range t {
		paths = append(paths, append(slices.Clone(paths[parent]), children[parent]))
		children[parent]++
	}
	return paths[1:]
}

// accepted returns the number of a template's nodes that are right, over all places.
func accepted(t medusa.Template, ranks [][]int) (n int) {
	for _, path := range pathsOf(t) {
		for _, r := range ranks {
			if len(path) <= len(r) && slices.Equal(r[:len(path)], path) {
				n++
			}
		}
	}
	return n
}

// sortRanks renames ranks so that at the end of every path lower ranks are right at least as often.
func sortRanks(places [][]int, depth int) {
	if len(places) == 0 || depth == len(places[0]) {
		return
	}
	by := map[int][][]int{}
	for _, r := range places {
		by[r[depth]] = append(by[r[depth]], r)
	}
	var groups [][][]int
	for _, g := range by {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b [][]int) int { return len(b) - len(a) })
	for rank, g := range groups {
		for _, r := range g {
			r[depth] = rank
		}
		sortRanks(g, depth+1)
	}
}

// No template with the same number of nodes is accepted more often than the fitted one.
func TestFit(t *testing.T) {
	cases.Check(t, 40, func(r *rapid.T) {
		depths := rapid.IntRange(1, 4).Draw(r, "depths")
		ranks := make([][]int, rapid.IntRange(1, 60).Draw(r, "places"))
		for i := range ranks {
			for range depths {
				ranks[i] = append(ranks[i], rapid.IntRange(0, 3).Draw(r, "rank"))
			}
		}
		sortRanks(ranks, 0)
		best := fitTemplate(ranks, rapid.IntRange(1, 12).Draw(r, "nodes"))
		for range 10 {
			if other := genTemplate(r, len(best)); accepted(other, ranks) > accepted(best, ranks) {
				r.Fatalf("%v is accepted %d times, the fitted %v %d times", other, accepted(other, ranks), best,
					accepted(best, ranks))
			}
		}
	})
	// Tokens that were not ranked are never right.
	if got := fitTemplate([][]int{{0, -1}, {-1, 0}, {0, 0}, {1, -1}}, 9); !slices.Equal(got, medusa.Template{0, 0, 1}) {
		t.Errorf("fitted %v", got)
	}
}

// A template with enough nodes has every path that was right anywhere, even if ranks
// before it never were.
func TestFitGoesOnBehindGaps(t *testing.T) {
	cases.Check(t, 40, func(r *rapid.T) {
		depths := rapid.IntRange(1, 3).Draw(r, "depths")
		ranks := make([][]int, rapid.IntRange(1, 20).Draw(r, "places"))
		all := 0
		for i := range ranks {
			for range depths {
				ranks[i] = append(ranks[i], rapid.IntRange(-1, 9).Draw(r, "rank"))
			}
			n := slices.Index(ranks[i], -1)
			if n < 0 {
				n = depths
			}
			all += n
		}
		if got := accepted(fitTemplate(ranks, 1<<10), ranks); got != all {
			r.Fatalf("%d nodes of %d are right", got, all)
		}
	})
}

// Levelled counts fall, keep their sum, and stay as they are if they fell already.
func TestLevel(t *testing.T) {
	cases.Check(t, 40, func(r *rapid.T) {
		count := rapid.SliceOfN(rapid.Float64Range(0, 9), 0, 12).Draw(r, "count")
		got := slices.Clone(count)
		level(got)
		before := 0.0
		after := 0.0
		falls := true
		for i := range count {
			if i > 0 && got[i] > got[i-1]+1e-9 {
				r.Fatalf("%v rises: of %v", got, count)
			}
			falls = falls && (i == 0 || count[i] <= count[i-1])
			before, after = before+count[i], after+got[i]
			if after < before-1e-9 { // earlier ranks only gain
				r.Fatalf("%v has less than %v before place %d", got, count, i)
			}
		}
		if d := before - after; d > 1e-9 || d < -1e-9 || falls && !slices.Equal(got, count) {
			r.Fatalf("%v was made of %v", got, count)
		}
	})
}
