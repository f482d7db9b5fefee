package medusa

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/testing/cases"
)

// The tree of Medusa's release has the same counts as its authors' list (FasterDecoding/Medusa),
// and begins and ends with the same paths.
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
	cases.Check(t, 40, func(r *rapid.T) {
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
