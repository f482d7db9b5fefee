package specblock_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"pgregory.net/rapid"
)

// The proposed tree is the one that the rules make or, if that has more nodes than allowed, the
// nodes of its likeliest paths.
func TestTreesFollowTheRules(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHead(r, m)
		o := specblock.Options{Blocks: rapid.IntRange(1, max(2, 5-n.Block)).Draw(r, "blocks"),
			Widths: "2/3/4/0", Nodes: 4096}
		widths := [specblock.RankBuckets]int{2, 3, 4, 0}
		if rapid.Bool().Draw(r, "other widths") {
			o.Widths, widths = "1/3/2/1", [specblock.RankBuckets]int{1, 3, 2, 1}
		}
		if n.RankWidth == 0 {
			o.Widths, widths = "2/2/2/2", [specblock.RankBuckets]int{2, 2, 2, 2}
		}
		d := newDrafter(r, o, n, m)
		s := drafttest.Begin(r, d, draft.Options{}, 1)
		text := drafttest.GenText(r, 1, 20)
		drafttest.Commit(r, d, s.Prompt(text, n.Hidden, true))
		for _, budget := range []int{4096, rapid.IntRange(2, 80).Draw(r, "budget")} {
			all, ok := rules(newOracle(n, m, 1, text, s.Root, 40), widths, o.Blocks, budget)
			if !ok {
				r.Skip("two paths are as likely as each other")
			}
			whole := map[string]float64{} // probability of the path
			for _, p := range all {       // parents before children
				whole[fmt.Sprint(p.path)] = math.Exp(p.logProb)
				if len(p.path) > 1 {
					whole[fmt.Sprint(p.path)] *= whole[fmt.Sprint(p.path[:len(p.path)-1])]
				}
			}
			values := make([]float64, 0, len(whole))
			for _, v := range whole {
				values = append(values, v)
			}
			slices.Sort(values)
			slices.Reverse(values)
			q := s.Request(budget, 100, nil)
			drafttest.Propose(r, d, q)
			if q.Tree.Len() != min(len(all)+1, budget) {
				r.Fatalf("%+v: %d nodes of %d in a budget of %d", o, q.Tree.Len()-1, len(all), budget)
			}
			var got []float64
			for i := 1; i < q.Tree.Len(); i++ {
				var path []int32
				for _, node := range q.Tree.Path(i, nil)[1:] {
					path = append(path, q.Tree.Token[node])
				}
				v, ok := whole[fmt.Sprint(path)]
				if p := math.Exp(float64(q.Tree.PathLogProb(i))); !ok || math.Abs(p-v) > 1e-4*v {
					r.Fatalf("%+v: %v has the probability %g, by the rules %g (%v)", o, path, p, v, ok)
				}
				got = append(got, v)
			}
			slices.Sort(got)
			slices.Reverse(got)
			for i, v := range got {
				if v < values[i]*(1-1e-4) {
					r.Fatalf("%+v: the %d-th likeliest of %d nodes has the probability %g, of all %g", o, i, len(got),
						v, values[i])
				}
			}
		}
	})
}

// The first block's greedy path is what a target with the head's logits would choose: with the same
// processors, the same noise at the same positions, and slot k for the token k + 1 places after the
// root. Penalties are those of the text up to the root.
func TestFirstBlockTakesTheNoise(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHead(r, m)
		d := newDrafter(r, specblock.Options{Blocks: 1, Widths: "1/1/1/1", Nodes: 60}, n, m)
		p := drafttest.GenParams(r)
		s := drafttest.Begin(r, d, draft.Options{Sampling: p}, 1)
		if cached := drafttest.GenText(r, 0, 20); len(cached) > 0 {
			drafttest.Commit(r, d, s.Prompt(cached, n.Hidden, false))
		}
		before, text := len(s.Text), drafttest.GenText(r, 1, 60)
		rows := s.Prompt(text, n.Hidden, true)
		rows.Pass.(*drafttest.Pass).At -= before // taps by their place among those that the head has seen
		drafttest.Commit(r, d, rows)
		q := s.Request(100, 100, nil)
		drafttest.Propose(r, d, q)
		o := newOracle(n, m, 1, text, s.Root, 60)
		logits := o.logits(o.layout.Tree.Len()-n.Block, n.Block)
		sampler, err := sample.New(p, vocab)
		if err != nil {
			r.Fatal(err)
		}
		h := sample.NewHistory(&p)
		for _, token := range append(slices.Clone(s.Text), s.Root) {
			h.Push(token)
		}
		all := make([]float32, vocab)
		for k := range n.Block {
			for i := range all {
				all[i] = float32(math.Inf(-1))
			}
			for i, l := range logits.Row(k) {
				if n.Tokens != nil {
					all[n.Tokens[i]] = l
				} else {
					all[i] = l
				}
			}
			want := sampler.Sample(all, len(s.Text)+1+k, h)
			if q.Tree.Token[k+1] != want {
				r.Fatalf("%+v: token %d of the path is %d, want %d", p, k+1, q.Tree.Token[k+1], want)
			}
		}
	})
}

// The features of a distribution, computed again.
func TestFeatures(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		logits := rapid.SliceOfN(rapid.Float32Range(-20, 20), 1, 60).Draw(t, "logits")
		slices.SortFunc(logits, func(a, b float32) int { return cmp.Compare(b, a) })
		top := logits[:min(len(logits), specblock.FeatureLogits)]
		of, beyond := top, specblock.Beyond{}
		if rapid.Bool().Draw(t, "of the whole distribution") {
			of, beyond = logits, specblock.BeyondOf(logits, top)
		}
		sum, entropy := 0.0, 0.0
		for _, l := range of {
			sum += math.Exp(float64(l))
		}
		at := func(i int) float64 { return float64(top[min(i, len(top)-1)]) - math.Log(sum) }
		for _, l := range of {
			entropy -= math.Exp(float64(l)) / sum * (float64(l) - math.Log(sum))
		}
		var want []float64
		for i := range 10 {
			want = append(want, at(i))
		}
		want = append(want, at(0)-at(1), at(0)-at(2), at(0)-at(4), math.Exp(at(0)), entropy)
		got := make([]float32, specblock.Features)
		specblock.FeaturesOf(top, beyond, got)
		for i, w := range want {
			if i < 13 && i >= 10 {
				w = max(w, 0)
			}
			if math.Abs(float64(got[i])-max(w, -30)) > 1e-3 && !(i >= 10 && i < 13 && w > 25) {
				t.Fatalf("feature %d of %v is %v, want %v", i, top, got[i], w)
			}
		}
	})
}

func TestBuckets(t *testing.T) {
	for bucket, ranks := range [][]int{{1}, {2, 3, 4}, {5, 6, 7, 8, 9, 10}, {11, 12, 1000}} {
		for _, rank := range ranks {
			if got := specblock.BucketOf(rank); got != bucket {
				t.Errorf("rank %d is in bucket %d, want %d", rank, got, bucket)
			}
		}
	}
}
