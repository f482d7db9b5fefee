package grow

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tree"
)

// A node of a whole static tree has the children that its place in the lists prescribes, whatever
// the order in which nodes are added.
func TestStaticChildren(t *testing.T) {
	cases.Check(t, 40, func(r *rapid.T) {
		o, width := Static{}, 1
		for range rapid.IntRange(1, 4).Draw(r, "depth") {
			level := rapid.SliceOfN(rapid.IntRange(0, 4), 1, width).Draw(r, "level")
			level[0]++
			o.Children, width = append(o.Children, level), 0
			for _, n := range level {
				width += n
			}
		}
		l, err := o.limits()
		if err != nil {
			r.Fatal(err)
		}
		grown := tree.New(0)
		places, at := []int{0}, 0 // of the nodes of a level
		first := 0
		for depth, level := range o.Children {
			var next []int
			last := grown.Len()
			for i := range places {
				want := 0
				if i < len(level) {
					want = level[i]
				}
				if got := o.children(grown, first+i); got != want {
					r.Fatalf("node %d at depth %d has %d children, want %d: %v", i, depth, got, want, o.Children)
				}
				for rank := range want {
					grown.Append(first+i, int32(rank), 0)
					next = append(next, at)
					at++
				}
			}
			first, places = last, next
		}
		if grown.Len() != l.nodes || l.depth != len(o.Children) ||
			l.children != slices.Max(slices.Concat(o.Children...)) {
			r.Fatalf("limits %+v of a tree of %d nodes: %v", l, grown.Len(), o.Children)
		}
	})
	for want, children := range map[string][][]int{"has 1 nodes": {{0}}, "for 2 nodes": {{1, 1}},
		"has 65 children": {{65}}, "has -1 children": {{-1}}} {
		if _, err := (&Static{children}).limits(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want an error with %q", children, err, want)
		}
	}
}
