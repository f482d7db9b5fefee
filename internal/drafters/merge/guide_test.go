package merge

import (
	"context"
	"math"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// fakeGuide calibrates by a function, accepts every level, and records what it was asked.
type fakeGuide struct {
	chance func(depth int, p float32) float32
	asked  []question
	tree   *tree.Tree
}

type question struct {
	expected, more float32
	deep           int // depth of the tree that it was shown
}

func (g *fakeGuide) Chance(depth int, logProb float32) float32 {
	return g.chance(depth, float32(math.Exp(float64(logProb))))
}

func log(x float32) float32 { return float32(math.Log(float64(x))) }

func (g *fakeGuide) Value(chance float32) float32 { return chance }

func (g *fakeGuide) Deeper(expected, more float32) bool {
	if g.tree != nil {
		g.asked = append(g.asked, question{expected, more, g.tree.MaxDepth()})
	}
	return true
}

// line drafts chains of nodes of probability p, and asks before each level.
type line struct {
	circle
	p     float32
	depth int
	late  bool // adds its nodes at the end
}

func (l *line) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	for _, r := range requests {
		expected, path := float32(0), float32(1)
		t := r.Tree
		if l.late {
			t = tree.New(r.Tree.Token[0])
		}
		for depth := 1; depth <= l.depth; depth++ {
			c := r.Guide.Chance(depth, log(l.p))
			if !r.Guide.Deeper(expected, path*c) {
				break
			}
			path *= c
			expected += path
			t.Append(depth-1, (t.Token[depth-1]+l.step)%16, log(l.p))
		}
		if l.late {
			r.Tree.Copy(t)
		}
	}
	return make([]draft.Proposal, len(requests)), nil
}

// The second part's levels are requested in view of the first part's tree: it is expected to bring
// at least as much, and a level adds nothing where the first part is right at that depth.
func TestGuideKnowsTheOtherParts(t *testing.T) {
	cases.Check(t, 40, func(r *rapid.T) {
		p, q := rapid.Float32Range(.05, .95).Draw(r, "p"), rapid.Float32Range(.05, .95).Draw(r, "q")
		m, n := rapid.IntRange(0, 6).Draw(r, "m"), rapid.IntRange(1, 6).Draw(r, "n")
		first := &line{circle: circle{step: 1}, p: p, depth: m}
		second := &line{circle: circle{step: 2}, p: q, depth: n, late: rapid.Bool().Draw(r, "late")}
		d, err := New(Options{Mode: Spliced}, 16, Part{"first", first}, Part{"second", second})
		if err != nil {
			r.Fatal(err)
		}
		s, err := d.Begin(draft.Options{})
		if err != nil {
			r.Fatal(err)
		}
		lower := func(_ int, p float32) float32 { return p * .97 } // what the loop has learned
		g := &fakeGuide{chance: lower, tree: tree.New(0)}
		if _, err := d.Propose(context.Background(), []draft.Request{{State: s, Tree: g.tree, Budget: 20, Depth: 10,
			Guide: g}}); err != nil {
			r.Fatal(err)
		}
		if got, want := len(g.asked), m+n; got != want {
			r.Fatalf("asked %d times, want %d", got, want)
		}
		reach := func(p float32, depth int) float64 { return math.Pow(float64(p)*.97, float64(depth)) }
		sum := func(p float32, depth int) (s float64) {
			for k := 1; k <= depth; k++ {
				s += reach(p, k)
			}
			return s
		}
		near := func(a float32, b float64) bool { return math.Abs(float64(a)-b) < 1e-4 }
		for i, a := range g.asked {
			level := i + 1
			expected, more := sum(p, level-1), reach(p, level)
			if i >= m {
				level = i - m + 1
				expected, more = max(sum(q, level-1), sum(p, m)), reach(q, level)
				if level <= m {
					more = min(more, 1-reach(p, level))
				}
			}
			if !near(a.expected, expected) || !near(a.more, more) {
				r.Fatalf("question %d was %+v, want %g and %g", i, a, expected, more)
			}
			if a.deep != 0 { // a failing part leaves nothing proposed
				r.Fatalf("question %d of level %d: the request's tree is of depth %d already", i, level, a.deep)
			}
		}
		if g.tree.Len() != 1+m+n {
			r.Fatalf("the tree:\n%s", g.tree)
		}
	})
}

// Of several earlier parts, the one counts that is most often right at that depth.
func TestGuideKnowsTheBestOfTheOthers(t *testing.T) {
	deep := &line{circle: circle{step: 1}, p: .9, depth: 5}
	shallow := &line{circle: circle{step: 2}, p: .3, depth: 2}
	last := &line{circle: circle{step: 3}, p: .8, depth: 3}
	for _, parts := range [][]Part{{{"", deep}, {"", shallow}, {"", last}}, {{"", shallow}, {"", deep}, {"", last}}} {
		d, err := New(Options{Mode: Spliced}, 16, parts...)
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Begin(draft.Options{})
		if err != nil {
			t.Fatal(err)
		}
		g := &fakeGuide{chance: func(_ int, p float32) float32 { return p }, tree: tree.New(0)}
		if _, err := d.Propose(context.Background(), []draft.Request{{State: s, Tree: g.tree, Budget: 20, Depth: 10,
			Guide: g}}); err != nil {
			t.Fatal(err)
		}
		a := g.asked[len(g.asked)-1]
		if want := .9 + .81 + .729 + .6561 + .59049; math.Abs(float64(a.expected)-want) > 1e-4 ||
			math.Abs(float64(a.more)-(1-.729)) > 1e-4 {
			t.Errorf("asked %+v, want %g and %g", a, want, 1-.729)
		}
	}
}

// Without a guide the parts have none; with guides, each request has its own.
func TestGuidesOfABatch(t *testing.T) {
	p := &teller{luck: 1, width: 3}
	g := newGame(t, Spliced, 9, 4, &teller{}, p)
	g.begin(3)
	if err := g.propose(context.Background(), 9, 9, 2, 0); err != nil {
		t.Fatal(err)
	}
	if p.batch != 2 || p.guides[0] != nil {
		t.Errorf("a batch of %d, guides %v: want one of 2 and none", p.batch, p.guides)
	}
	g.guide = &fakeGuide{chance: func(_ int, p float32) float32 { return p }}
	if err := g.propose(context.Background(), 9, 9, 0, 1, 2); err != nil {
		t.Fatal(err)
	}
	if p.batch != 3 || p.guides[0] == nil || p.guides[0] == p.guides[1] {
		t.Errorf("a batch of %d, guides %v", p.batch, p.guides)
	}
}

// A guide that answers nonsense costs only nodes.
func TestGuideOfNoSense(t *testing.T) {
	for _, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), -3, 0} {
		g := newGame(t, Spliced, 9, 4, &teller{luck: .8, width: 20}, &teller{luck: .8, width: 20})
		g.guide = &fakeGuide{chance: func(int, float32) float32 { return v }}
		g.begin(1)
		for range 5 {
			g.round(context.Background(), 6, 4)
			if tr := g.seqs[0].tree; tr.Len() > 6 || tr.MaxDepth() > 4 {
				t.Fatalf("chances of %g: %d nodes of depth %d", v, tr.Len(), tr.MaxDepth())
			}
		}
		g.inStep()
	}
}
