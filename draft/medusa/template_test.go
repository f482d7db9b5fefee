package medusa

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The tree of Medusa's release has the counts that its authors' list has (FasterDecoding/Medusa),
// and the paths that it begins and ends with.
func TestPaperTemplate(t *testing.T) {
	var depths [5]int
	for _, path := range PaperTemplate.paths() {
		depths[len(path)]++
	}
	if want := [5]int{0, 10, 28, 23, 2}; depths != want {
		t.Errorf("nodes by depth %v, want %v", depths, want)
	}
	paths := PaperTemplate.paths()
	if want := [][]int{{0}, {0, 0}, {1}, {0, 1}, {2}, {0, 0, 0}}; !reflect.DeepEqual(paths[:6], want) {
		t.Errorf("it begins %v, want %v", paths[:6], want)
	}
	if want := [][]int{{0, 6, 0}, {0, 0, 0, 1}, {1, 6}, {0, 7, 0}}; !reflect.DeepEqual(paths[59:], want) {
		t.Errorf("it ends %v, want %v", paths[59:], want)
	}
}

func genTemplate(r *rapid.T, nodes int) (t Template) {
	for i := range nodes {
		t = append(t, rapid.Int32Range(0, int32(i)).Draw(r, "parent"))
	}
	return t
}

// Paths are another form of a template.
func TestPaths(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := genTemplate(r, rapid.IntRange(0, 80).Draw(r, "nodes"))
		got, err := templateOf(want.paths())
		if err != nil || !slices.Equal(got, want) {
			r.Fatalf("%v comes back as %v, %v", want, got, err)
		}
	})
	for _, paths := range [][][]int{{{}}, {{1}}, {{0}, {0, 1}}, {{0, 0}}, {{0}, {0}}, {{0}, {2}}} {
		if got, err := templateOf(paths); err == nil {
			t.Errorf("%v is the template %v", paths, got)
		}
	}
	for _, bad := range []Template{{1}, {0, -1}, {0, 3}} {
		if bad.check() == nil {
			t.Errorf("%v is a template", bad)
		}
	}
}

// accepted is how many nodes of a template are right, over all places.
func accepted(t Template, ranks [][]int) (n int) {
	for _, path := range t.paths() {
		for _, r := range ranks {
			if len(path) <= len(r) && slices.Equal(r[:len(path)], path) {
				n++
			}
		}
	}
	return n
}

// sortRanks renames ranks, so that at the end of every path lower ones are right at least as often.
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

// No template of as many nodes is accepted more often than the one that is fitted.
func TestFit(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		depths := rapid.IntRange(1, 4).Draw(r, "depths")
		ranks := make([][]int, rapid.IntRange(1, 60).Draw(r, "places"))
		for i := range ranks {
			for range depths {
				ranks[i] = append(ranks[i], rapid.IntRange(0, 3).Draw(r, "rank"))
			}
		}
		sortRanks(ranks, 0)
		best := Fit(ranks, rapid.IntRange(1, 12).Draw(r, "nodes"))
		if err := best.check(); err != nil {
			r.Fatal(err)
		}
		for range 10 {
			if other := genTemplate(r, len(best)); accepted(other, ranks) > accepted(best, ranks) {
				r.Fatalf("%v is accepted %d times, the fitted %v %d times", other, accepted(other, ranks), best, accepted(best, ranks))
			}
		}
	})
	// Tokens that were not ranked are right nowhere.
	if got := Fit([][]int{{0, -1}, {-1, 0}, {0, 0}, {1, -1}}, 9); !slices.Equal(got, Template{0, 0, 1}) {
		t.Errorf("fitted %v", got)
	}
}
