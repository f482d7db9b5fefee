package grow

import (
	"math"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"pgregory.net/rapid"
)

// For a drawn tree, Drawn gives the draft model's own distribution after the node's path, processed
// as requested. Children are distinct, can be drawn, and depend only on the drawing seed, not on
// the coupled noise. No node is dropped.
func TestDrawn(t *testing.T) {
	m := openModels(t)
	wider := m.as()
	wider.Vocab, wider.Model = vocab, nil
	cases.Check(t, 40, func(r *rapid.T) {
		shape := genShape(r)
		dm := m.draws(r)
		d := must(ofModel(shape, dm, wider))(r)
		o := draft.Options{Sampling: genParams(r), Sampled: true, Seed: rapid.Uint64().Draw(r, "draws")}
		text := genText(r, "text", 1, 30)
		root := text[len(text)-1]
		budget := rapid.IntRange(2, 40).Draw(r, "budget")
		s := prompted(r, d, o, text[:len(text)-1])
		defer s.Close()
		tr := propose(r, d, s, root, budget, 6, nil)
		if tr.Len() != s.(*state).tree.Len() {
			r.Fatalf("%d nodes proposed of %d drawn", tr.Len(), s.(*state).tree.Len())
		}
		one := newOne(dm)
		for node := range tr.Token {
			p := s.(*state).drawn(node)
			if leaf := !slices.Contains(tr.Parent, int32(node)); (p == nil) != leaf {
				r.Fatalf("node %d, a leaf %v: distribution %v", node, leaf, p != nil)
			}
			if p == nil {
				continue
			}
			own := slices.Clone(text)
			for _, v := range tr.Path(node, nil)[1:] {
				own = append(own, tr.Token[v])
			}
			want := make([]float32, vocab)
			must(sample.New(o.Sampling, vocab))(r).Probs(want, one.logits(r, own), pushAll(o.Sampling, own))
			if !slices.Equal(p, want) {
				r.Fatalf("node %d: not the draft model's distribution", node)
			}
			kids := tr.Children(node, nil)
			for i, a := range kids {
				if !(p[tr.Token[a]] > 0) {
					r.Fatalf("node %d: token %d was drawn, its probability is 0", node, tr.Token[a])
				}
				for _, b := range kids[:i] {
					if tr.Token[a] == tr.Token[b] {
						r.Fatalf("node %d: token %d was drawn twice", node, tr.Token[a])
					}
				}
			}
		}
		o.Sampling.Seed++
		same := prompted(r, d, o, text[:len(text)-1])
		defer same.Close()
		if again := propose(r, d, same, root, budget, 6, nil); !sameTree(tr, again) {
			r.Fatal("the coupled noise has a part in what is drawn")
		}
	})
	pruning := must(ofModel(&Fixed{D: 2, B: 3, Tau: .5, N: 30, Prune: true}, m.rounded, m.as()))(t)
	drawn := prompted(t, pruning, draft.Options{Sampling: sample.Params{Temperature: 1}, Sampled: true}, []int32{1})
	defer drawn.Close()
	if tr := propose(t, pruning, drawn, 2, 30, 5, nil); tr.Len() < 4 || tr.Len() != drawn.(*state).tree.Len() {
		t.Errorf("drawn nodes were pruned: %d are left of %d", tr.Len(), drawn.(*state).tree.Len())
	}
	d := must(ofModel(ptr(DefaultLinear()), m.rounded, m.as()))(t)
	s := prompted(t, d, draft.Options{}, []int32{1})
	defer s.Close()
	propose(t, d, s, 2, 10, 5, nil)
	if s.(*state).drawn(0) != nil {
		t.Error("a distribution of a tree that was not drawn")
	}
}

// Children are drawn without replacement, in order, independently of one another and of other
// nodes: the first two below the root, and the first below two nodes of the same depth, occur
// together with the products of their probabilities.
func TestDrawsAreFair(t *testing.T) {
	m := openModels(t)
	d := must(ofModel(&Fixed{D: 2, B: 2, N: 7}, m.rounded, m.as()))(t)
	p := sample.Params{Temperature: 1, TopK: 4, Seed: 3}
	const n = 3000
	type pair struct{ a, b int32 }
	siblings, cousins := map[pair]float64{}, map[pair]float64{}
	var wantSiblings, wantCousins map[pair]float64
	prompt := []int32{9, 8, 7}
	var fixed pair // the first children of the root, below which cousins are counted
	for seed := range uint64(n) {
		s := prompted(t, d, draft.Options{Sampling: p, Sampled: true, Seed: seed}, prompt)
		tr := propose(t, d, s, 6, 7, 2, nil)
		q := s.(*state).drawn(0)
		kids := tr.Children(0, nil)
		siblings[pair{tr.Token[kids[0]], tr.Token[kids[1]]}]++
		if wantSiblings == nil {
			wantSiblings = map[pair]float64{}
			for a, x := range q {
				for b, y := range q {
					if a != b && x > 0 && y > 0 {
						wantSiblings[pair{int32(a), int32(b)}] = float64(x) * float64(y) / (1 - float64(x))
					}
				}
			}
			for k, v := range wantSiblings {
				if v > wantSiblings[fixed] {
					fixed = k
				}
			}
		}
		if (pair{tr.Token[kids[0]], tr.Token[kids[1]]}) == fixed {
			u, v := tr.Children(int(kids[0]), nil), tr.Children(int(kids[1]), nil)
			cousins[pair{tr.Token[u[0]], tr.Token[v[0]]}]++
			if wantCousins == nil {
				wantCousins = map[pair]float64{}
				for a, x := range s.(*state).drawn(int(kids[0])) {
					for b, y := range s.(*state).drawn(int(kids[1])) {
						if x*y > 0 {
							wantCousins[pair{int32(a), int32(b)}] = float64(x) * float64(y)
						}
					}
				}
			}
		}
		s.Close()
	}
	for name, c := range map[string]struct{ got, want map[pair]float64 }{"siblings": {siblings, wantSiblings},
		"cousins": {cousins, wantCousins}} {
		total := 0.0
		x := 0.0
		free := -1.0
		for _, v := range c.got {
			total += v
		}
		for k, p := range c.want {
			if e := p * total; e > 0.5 {
				x += (c.got[k] - e) * (c.got[k] - e) / e
				free++
			}
		}
		if limit := free + 5*math.Sqrt(2*free) + 10; x > limit || total < 100 {
			t.Errorf("%s: chi-square %.1f with %.0f degrees of freedom, %.0f trees", name, x, free, total)
		}
	}
}
