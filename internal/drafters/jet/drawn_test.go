package jet_test

import (
	"math"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"pgregory.net/rapid"
)

// For a drawn tree, Drawn gives the distribution of the block's row, processed as requested. Children
// are distinct, can be drawn, and depend only on the drawing seed, not on the coupled noise.
func TestDrawn(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHead(r, m)
		tree := rapid.SampledFrom([]string{onepass.DDTree, onepass.AccumLogP, onepass.Chain}).Draw(r, "tree")
		d := newDrafter(r, jet.Options{Tree: tree}, n, m)
		p := GenParams(r)
		text := GenText(r, 1, 70)
		o := draft.Options{Sampling: p, Sampled: true, Seed: rapid.Uint64().Draw(r, "draws")}
		budget := rapid.IntRange(2, 40).Draw(r, "budget")
		propose := func() (draft.Request, func(node int) []float32) {
			s := Begin(r, d, o, 1)
			defer s.State.Close()
			Commit(r, d, s.Prompt(text, n.Hidden, true))
			request := s.Request(budget, 100, nil)
			return request, Propose(r, d, request)[0].Drawn
		}
		request, drawn := propose()
		logits, h := oracle(n, m, 1, text, 1, 400, n.Block), sample.NewHistory(&p)
		for _, token := range append(slices.Clone(text), 1) {
			h.Push(token)
		}
		tr := request.Tree
		for node := range tr.Token {
			q := drawn(node)
			kids := tr.Children(node, nil)
			if (q != nil) != (len(kids) > 0) {
				r.Fatalf("node %d of %d children: distribution %v", node, len(kids), q != nil)
			}
			if q == nil {
				continue
			}
			want := make([]float32, Vocab)
			Must(sample.New(p, Vocab))(r).Probs(want, logits[tr.Depth[node]+1], h)
			if !slices.Equal(q, want) {
				r.Fatalf("node %d: not the distribution of its row", node)
			}
			for i, a := range kids {
				if !(q[tr.Token[a]] > 0) || slices.ContainsFunc(kids[:i], func(b int32) bool { return tr.Token[a] == tr.Token[b] }) {
					r.Fatalf("node %d: token %d cannot be drawn, or was before", node, tr.Token[a])
				}
			}
		}
		o.Sampling.Seed++
		if again, _ := propose(); sameShape(again.Tree, tr) != nil {
			r.Fatal("the coupled noise has a part in what is drawn")
		}
	})
}

// The first children below two nodes of the same depth are drawn independently: rejection sampling may try either.
func TestDrawsAreFair(t *testing.T) {
	m := OpenTarget(t, 400)
	n := head(t, m, 1)
	for seed := uint64(2); n.Block < 3; seed++ {
		n = head(t, m, seed)
	}
	d := newDrafter(t, jet.Options{Tree: onepass.DDTree}, n, m)
	type pair struct{ a, b int32 }
	seen, rounds := map[pair]float64{}, 0
	var q []float32
	for seed := range uint64(6000) {
		s := Begin(t, d, draft.Options{Sampling: sample.Params{Temperature: 1, TopK: 3}, Sampled: true, Seed: seed}, 1)
		Commit(t, d, s.Prompt([]int32{5, 6, 7}, n.Hidden, true))
		r := s.Request(40, 2, nil)
		drawn := Propose(t, d, r)[0].Drawn
		below := func(node int32) []int32 { return r.Tree.Children(int(node), nil) }
		if kids := below(0); len(kids) > 1 && len(below(kids[0])) > 0 && len(below(kids[1])) > 0 {
			q = slices.Clone(drawn(int(kids[0])))
			first := func(node int32) int32 { return r.Tree.Token[below(node)[0]] }
			seen[pair{first(kids[0]), first(kids[1])}]++
			rounds++
		}
		s.State.Close()
	}
	if rounds < 2000 {
		t.Fatalf("%d trees of 6000 have two nodes with children", rounds)
	}
	for a, x := range q {
		for b, y := range q {
			p := float64(x) * float64(y)
			got := seen[pair{int32(a), int32(b)}]
			if d := math.Abs(got - p*float64(rounds)); d > 5*math.Sqrt(p*float64(rounds))+1 {
				t.Errorf("tokens %d and %d: %g times of %d, want %.1f", a, b, got, rounds, p*float64(rounds))
			}
		}
	}
}
