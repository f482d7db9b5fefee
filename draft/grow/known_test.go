package grow

import (
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/clues"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// above is a head's row in the plainest way.
type above []float32

func (a above) Above(_ int, token, other int32) (float32, bool) { return a[token] - a[other], true }

// knowing makes what is known below the node of a tree that was added last: with a row where the state has computed one, here a pass of
// one row at a time, without one elsewhere.
type knowing struct {
	*oracle
	t     fataler
	text  []int32 // the root is its last
	known *clues.Text
	s     *state
	guide draft.Guide
}

func (k *knowing) Below(tr *tree.Tree, node int) []sample.Candidate {
	own, at, in := slices.Clone(k.text), k.known.Match(k.known.End(), k.text[len(k.text)-1]), 0
	for _, v := range tr.Path(node, nil)[1:] {
		own = append(own, tr.Token[v])
		at = k.known.Match(at, tr.Token[v])
		if in >= 0 {
			in = k.s.tree.Child(in, tr.Token[v])
		}
	}
	row := clues.Row{}
	if in >= 0 && k.s.row[in] >= 0 {
		logits := k.logits(k.t, own)
		s := must(sample.New(k.p, vocab))(k.t)
		row.Level = s.Top(make([]sample.Candidate, 0, clues.HeadMost), slices.Clone(logits), len(own), pushAll(k.p, own))
		row.At, row.Head = 1, above(logits)
	}
	depth := int(tr.Depth[node]) + 1
	list := k.known.Candidates(make([]sample.Candidate, 0, clues.KeptMost), own[len(k.text)-1], at, depth, &row, false, new(clues.Scratch))
	clues.Value(k.guide, depth, list)
	return list
}

// A best-first tree is the most probable one by all that is known below its nodes: what a row says where there is one, and what the
// text says. Rows are of nodes whose parents have one.
func TestBestByAllThatIsKnown(t *testing.T) {
	m := openModels(t)
	rapid.Check(t, func(r *rapid.T) {
		shape := &BestFirst{Width: rapid.IntRange(1, 9).Draw(r, "width"), Branch: rapid.IntRange(1, 6).Draw(r, "branch"), Depth: rapid.IntRange(1, 8).Draw(r, "depth"), Clues: true}
		dm := m.draws(r)
		text := genText(r, "text", 1, 30)
		text = append(text, text[:rapid.IntRange(0, len(text)).Draw(r, "again")]...) // so that the text says something
		p := genParams(r)
		budget := rapid.IntRange(2, 30).Draw(r, "budget")
		g := &guide{power: rapid.SampledFrom([]float64{0, 1, 2}).Draw(r, "power"), levels: rapid.IntRange(1, 9).Draw(r, "levels")}
		d := must(ofModel(shape, dm, m.as()))(r)
		s := prompted(r, d, draft.Options{Sampling: p}, text[:len(text)-1])
		defer s.Close()
		got := propose(r, d, s, text[len(text)-1], budget, 100, g)

		st := s.(*state)
		for node, row := range st.row {
			if parent := st.tree.Parent[node]; row >= 0 && (int(st.tree.Depth[node]) >= min(shape.Depth, g.levels) || parent >= 0 && st.row[parent] < 0) {
				r.Fatalf("node %d of depth %d has a row: %d passes were allowed", node, st.tree.Depth[node], g.levels)
			}
		}
		k := &knowing{&oracle{one: *newOne(dm), p: p}, r, text, clues.NewText(&p, &clues.BlockHead), st, g}
		k.known.Learn(text[:len(text)-1])
		want := tree.New(got.Token[0])
		(&clues.MostProbable{Width: shape.Branch}).Grow(want, k, budget)
		if !sameTree(got, want) {
			r.Fatalf("%+v, %+v, budget %d: drafted\n%swant\n%s", shape, p, budget, got, want)
		}
	})
}

// Without fitted weights clues are refused; a drafter at its word needs none.
func TestCluesWantWeights(t *testing.T) {
	m := openModels(t)
	for _, c := range []struct {
		shape Shape
		ok    bool
	}{{ptr(DefaultBestFirst()), false}, {&BestFirst{Width: 8, Branch: 8, Depth: 20}, true}, {&BestFirst{Width: 8, Branch: 8, Depth: 20, Clues: true, Raw: Raw{true}}, true}} {
		dm := m.rounded
		if _, err := New(Config{Shape: c.shape, Model: NewDraftModel(dm), Pool: dm.Pool(), Vocab: vocab, Target: vocab}); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.shape, err)
		}
	}
}
