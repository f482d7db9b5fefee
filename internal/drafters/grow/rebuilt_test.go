package grow

import (
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// textSource ranks what may follow a node in the plainest way: with a row where the state has
// computed one, here in passes of one row, and elsewhere without.
type textSource struct {
	*oracle
	t    fataler
	text []int32 // its last token is the root
	rank *textrank.Text
	s    *state
}

func (k *textSource) Below(tr *tree.Tree, node int) []sample.Candidate {
	own := slices.Clone(k.text)
	at := k.rank.Match(k.rank.End(), k.text[len(k.text)-1])
	in := 0
	for _, v := range tr.Path(node, nil)[1:] {
		own = append(own, tr.Token[v])
		at = k.rank.Match(at, tr.Token[v])
		if in >= 0 {
			in = k.s.tree.Child(in, tr.Token[v])
		}
	}
	row := textrank.Row{}
	if in >= 0 && k.s.row[in] >= 0 {
		logits := k.logits(k.t, own)
		s := must(sample.New(k.p, vocab))(k.t)
		row.Top = s.Top(make([]sample.Candidate, 0, textrank.RowMost), slices.Clone(logits), len(own),
			pushAll(k.p, own))
		row.Depth, row.Output = 1, &textrank.Output{Logits: logits}
	}
	return k.rank.Candidates(make([]sample.Candidate, 0, textrank.CandidatesMost), tr, node, at, &row, false,
		new(textrank.Scratch))
}

// With +text, a best-first tree is the most probable one by rows and text. Only nodes whose parents
// have a row have one.
func TestBestFirstByText(t *testing.T) {
	m := openModels(t)
	cases.Check(t, 40, func(r *rapid.T) {
		shape := &BestFirst{Width: rapid.IntRange(1, 9).Draw(r, "width"),
			Branch: rapid.IntRange(1, 6).Draw(r, "branch"), Depth: rapid.IntRange(1, 8).Draw(r, "depth")}
		dm := m.draws(r)
		text := genText(r, "text", 1, 30)
		text = append(text, text[:rapid.IntRange(0, len(text)).Draw(r, "again")]...) // so that the text predicts something
		p := genParams(r)
		budget := rapid.IntRange(2, 30).Draw(r, "budget")
		g := &guide{power: rapid.SampledFrom([]float64{0, 1, 2}).Draw(r, "power"),
			levels: rapid.IntRange(1, 9).Draw(r, "levels")}
		d := must(ofModel(withText{shape}, dm, m.as()))(r)
		s := prompted(r, d, draft.Options{Sampling: p}, text[:len(text)-1])
		defer s.Close()
		got := propose(r, d, s, text[len(text)-1], budget, 100, g)

		st := s.(*state)
		for node, row := range st.row {
			if parent := st.tree.Parent[node]; row >= 0 && (int(st.tree.Depth[node]) >= min(shape.Depth, g.levels) ||
				parent >= 0 && st.row[parent] < 0) {
				r.Fatalf("node %d of depth %d has a row: %d passes were allowed", node, st.tree.Depth[node], g.levels)
			}
		}
		k := &textSource{&oracle{one: *newOne(dm), p: p}, r, text, textrank.NewText(&p, textrank.NewModel(), nil), st}
		new(textrank.Commits).Learn(k.rank, nil, &draft.Rows{Tokens: text[:len(text)-1], Next: -1}, nil, nil)
		want := tree.New(got.Token[0])
		(&treebuild.Builder{Width: shape.Branch, Guide: g}).Build(want, k, budget)
		if !sameTree(got, want) {
			r.Fatalf("%+v, %+v, budget %d: drafted\n%swant\n%s", shape, p, budget, got, want)
		}
	})
}
