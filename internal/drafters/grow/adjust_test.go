package grow

import (
	"fmt"
	"slices"
	"testing"

	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// genTree draws a tree with few different tokens, so that other trees have many of its paths.
func genTree(r *rapid.T, name string) *tree.Tree {
	t := tree.New(1)
	for i := range rapid.IntRange(0, 20).Draw(r, name) {
		t.Append(rapid.IntRange(0, t.Len()-1).Draw(r, fmt.Sprintf("%s %d", name, i)), rapid.Int32Range(1, 3).Draw(r, "token"),
			0)
	}
	return t
}

// The acceptance that adapts DynaTree's parameters counts nodes that were drafted and verified: not
// pruned ones, and not those of other drafters.
func TestAcceptanceIsOfVerifiedNodes(t *testing.T) {
	cases.Check(t, 40, func(r *rapid.T) {
		own, verified := genTree(r, "own"), genTree(r, "verified")
		leaf := rapid.IntRange(0, verified.Len()-1).Draw(r, "accepted")
		nodes := verified.Path(leaf, nil)
		path := func(t *tree.Tree, node int) (s string) {
			for _, i := range t.Path(node, nil) {
				s += fmt.Sprint(t.Token[i], " ")
			}
			return s
		}
		paths := map[string]bool{}
		for i := range verified.Len() {
			paths[path(verified, i)] = true
		}
		accepted, depth := 0, 0
		for i := range own.Len() {
			if !paths[path(own, i)] {
				continue
			}
			depth = max(depth, int(own.Depth[i]))
			if slices.ContainsFunc(nodes, func(n int32) bool { return path(verified, int(n)) == path(own, i) }) {
				accepted = max(accepted, int(own.Depth[i]))
			}
		}
		s := &state{growth: growth{tree: *own}}
		if a, d := s.judge(verified, nodes); a != accepted || d != depth {
			r.Fatalf("%d levels of %d were accepted, want %d of %d", a, d, accepted, depth)
		}
		o := DefaultDynaTree()
		o.begin(s)
		o.learn(s, verified, nodes)
		want := float32(o.D0)
		if depth > 0 {
			want = clip(want+o.EtaD*(float32(accepted)/float32(depth)-o.Target), 1, float32(o.DMax-1))
		}
		if s.adapted.d0 != want {
			r.Fatalf("d0 is %g after %d levels of %d, want %g", s.adapted.d0, accepted, depth, want)
		}
	})
}

// A node is expanded if the paper's gate says so, with the D0 from the history, including fractions
// of a level: d(u) < D0, or p(u) > rho-deep.
func TestGateTakesD0AsItIs(t *testing.T) {
	cases.Check(t, 40, func(r *rapid.T) {
		o := DefaultDynaTree()
		s := &state{growth: growth{most: maxNodes, deepest: maxNodes}}
		o.begin(s)
		s.adapted.d0 = rapid.Float32Range(1, 7).Draw(r, "d0")
		p := rapid.Float32Range(o.RhoStop+.01, 1).Draw(r, "p")
		depth := rapid.IntRange(1, 8).Draw(r, "depth")
		s.tree.Reset(1)
		s.row, s.path = []int32{-1}, []float32{0}
		for range depth {
			s.tree.Append(s.tree.Len()-1, 1, 0)
			s.row, s.path = append(s.row, -1), append(s.path, logOf(p))
		}
		s.fresh = depth
		o.choose(s)
		d := float32(depth - 1) // as in the paper, whose first drafted token has depth 0
		if want := d < s.adapted.d0 || p > o.RhoDeep; (len(s.expand) == 1) != want {
			r.Fatalf("depth %g, d0 %g, p %g: expanded %v, want %v", d, s.adapted.d0, p, len(s.expand) == 1, want)
		}
	})
}
