package eagle

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/traintest"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

func tinyRouter(steps int) RouterRecipe {
	r := RouterRecipe{
		Size: 16, Listed: 3, Width: 32, Top: 4, Basis: traintest.Basis(steps), Places: 8, Later: 3, DraftSteps: 4,
	}
	r.Optimizer.Muon, r.Optimizer.Rate = false, 1e-2
	return r
}

// A router learns where its head's likeliest tokens are. An interrupted run ends with the file of
// an uninterrupted one, also on another number of threads, and drafters with the head accept it.
func TestRouter(t *testing.T) {
	j := traintest.JobWithTarget(t)
	e := tinyEagle(3, 10)
	if err := j.TrainHead(context.Background(), "eagle", &e); err != nil {
		t.Fatal(err)
	}
	head := filepath.Join(j.Dir, "eagle", "model-q8_0.gguf")
	for name, r := range map[string]RouterRecipe{"router": tinyRouter(40), "kmeans": tinyRouter(20)} {
		r.Head = head
		if name == "kmeans" {
			r.Clusters = 12
			r.Precision = "bf16"
			r.Text = "corpus"
			r.Output = true
		}
		alone, first, last := traintest.Watched(j, traintest.WhereMeasured)
		if err := alone.TrainHead(context.Background(), name, &r); err != nil {
			t.Fatal(err)
		}
		f := last.Figures
		if last.Step != r.Steps || last.Validation["held"] >= first.Validation["held"] ||
			f["held first fixed"] < 0.7 || f["held recall fixed"] < f["held recall position-aware"] ||
			f["held tokens fixed"] <= f["held tokens position-aware"] {
			t.Errorf("%s: held out %v at first, %v %v at step %d", name, first.Validation, last.Validation, f,
				last.Step)
		}

		traintest.Interrupted(t, j, name, []int{13}, traintest.WithoutTheName, []string{"model-f32.gguf"},
			func(ctx context.Context, j train.Job, name string) error {
				return j.TrainHead(ctx, name, &r)
			})
		other := r
		other.Top++
		if err := j.TrainHead(context.Background(), name, &other); err == nil {
			t.Errorf("%s: another recipe goes on with its checkpoint", name)
		}

		m, err := model.Open(filepath.Join(j.Dir, "target", "model-q8_0.gguf"), model.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		target := registry.Target{Vocab: m.Config.Vocab, Context: m.Context(), Model: m,
			Heads: []registry.Head{{Name: head}, {Name: filepath.Join(j.Dir, name, "model-q8_0.gguf")}}}
		for _, text := range []string{"eagle3+dynaspec", "eagle3+dynaspec-fixed:size=100",
			"eagle3+dynaspec:router=" + filepath.Join(j.Dir, name, "model-f32.gguf")} {
			if _, err := registry.New(text, target); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
		h := registry.Head{Name: filepath.Join(j.Dir, name, "model-q8_0.gguf")}
		if text, err := heads.Describe(h); err != nil || name == "kmeans" != strings.Contains(text, " 12 clusters ") {
			t.Errorf("%s: %s, %v: want 12 clusters of the one that names a number", name, text, err)
		}
		target.Heads = target.Heads[:1]
		if _, err := registry.New("eagle3+dynaspec", target); err == nil {
			t.Error("a head drafts over clusters without a router")
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A router is trained on the head's output in serving: the likeliest token after each place is the
// first that its drafter drafts there, and the rows of drafts continue from it.
func TestDraftRowsAreDrafts(t *testing.T) {
	j := traintest.JobWithTarget(t)
	m := j.Target
	cases.Check(t, 40, func(t *rapid.T) {
		seed := rapid.Uint64Range(0, 30).Draw(t, "head")
		rng := rand.New(rand.NewPCG(seed, 1))
		c := synthetic.Config[eagle.Config](rng, "eagle3", m.Config, tensor.F32)
		n, err := eagle.NewNetwork(c, synthetic.Head(&c, tensor.F32, seed), synthetic.Tokens(&c, seed), &m.Network)
		if err != nil {
			t.Fatal(err)
		}
		text := rapid.SliceOfN(rapid.Int32Range(0, int32(m.Config.Vocab-1)), 4, 30).Draw(t, "text")
		const top, steps = 3, 4
		output := rapid.Bool().Draw(t, "output")
		d := newDrafts(m, n, min(top, n.DraftVocab), output)
		var s draftRows
		places := []int{1, len(text) - 2}
		if places[0] == places[1] {
			places = places[:1]
		}
		d.see(text, places, places, steps, rand.New(rand.NewPCG(1, 1)), &s)
		if len(s.tokens) != steps*len(places) || len(s.best) != d.top*len(s.tokens) ||
			len(s.features) != m.Config.Hidden*len(s.tokens) {
			t.Fatalf("%d rows, %d tokens and %d numbers of features for %d places", len(s.tokens), len(s.best),
				len(s.features), len(places))
		}
		chain := &grow.Linear{K: 1}
		drafter, err := eagle.New(n, chain, false, nil, m.Pool())
		if err != nil {
			t.Fatal(err)
		}
		for row, token := range s.tokens {
			i, step := row%len(places), row/len(places)
			if output { // the output determines the likeliest token
				e := nn.NewExec(m.Pool())
				x := nn.NewMat(1, n.Hidden)
				logits := nn.NewMat(1, n.DraftVocab)
				copy(x.Data, s.features[row*n.Hidden:])
				e.Linear(n.Output(x), nn.Proj{Linear: &n.Head, Dst: logits})
				best, chance := make([]int32, 1), make([]float32, 1)
				d.rank(logits.Row(0), best, chance)
				if best[0] != s.best[row*d.top] {
					t.Fatalf("of row %d's output token %d is the likeliest, and not %d", row, best[0], s.best[row*d.top])
				}
			}
			if s.steps[row] != step {
				t.Fatalf("row %d is of step %d, want %d", row, s.steps[row], step)
			}
			if step > 0 {
				before := (row - len(places)) * d.top
				if !slices.Contains(s.best[before:before+d.top], token) {
					t.Fatalf("row %d is of token %d, which is none of the likeliest before", row, token)
				}
				continue
			}
			p := places[i]
			if got := firstDraft(t, m, drafter, text[:p+1]); got != s.best[row*d.top] {
				t.Fatalf("after %d tokens the head drafts %d, and the likeliest was %d", p+1, got, s.best[row*d.top])
			}
		}
	})
}

// firstDraft returns the first token that a drafter drafts after a text.
func firstDraft(t *rapid.T, m *model.Model, d draft.Drafter, text []int32) int32 {
	s, err := d.Begin(draft.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before := text[:len(text)-1]
	pass := m.NewPass()
	c := m.NewCache()
	chain := new(tree.Tree)
	defer c.Free()
	chain.ResetChain(before)
	if err := pass.Run(context.Background(), []model.Rows{{Cache: c, Tree: chain}}, d.Taps()); err != nil {
		t.Fatal(err)
	}
	rows := draft.Rows{State: s, Tokens: before, Tree: chain, Next: -1, Pass: pass}
	for i := range before {
		rows.Nodes = append(rows.Nodes, int32(i))
	}
	if err := d.Commit([]draft.Rows{rows}); err != nil {
		t.Fatal(err)
	}
	q := draft.Request{State: s, Tree: tree.New(text[len(text)-1]), Budget: 2, Depth: 1}
	if _, err := d.Propose(context.Background(), []draft.Request{q}); err != nil || q.Tree.Len() != 2 {
		t.Fatalf("a tree of %d nodes (%v)", q.Tree.Len(), err)
	}
	return q.Tree.Token[1]
}

// The loss and its gradient are those of binary cross-entropy over all clusters, whichever are right.
func TestRouterLoss(t *testing.T) {
	pool := traintest.Pool(t)
	cases.Check(t, 40, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		const vocab, hidden, top = 20, 6, 3
		embed := randomTable(rng, vocab, hidden)
		clusters := [][]int32{{1, 2, 3}, {4, 5}, {6, 7, 8, 9}, {10}}
		r, err := NewRouter(shortlist.RouterConfig{Embed: hidden, Hidden: hidden, Width: 5, Clusters: len(clusters)},
			clusters, vocab, embed, pool, gemm.F32)
		if err != nil {
			t.Fatal(err)
		}
		var s draftRows
		for range rapid.IntRange(1, 6).Draw(t, "rows") {
			s.tokens = append(s.tokens, rng.Int32N(vocab))
			for range hidden {
				s.features = append(s.features, float32(rng.NormFloat64()))
			}
			for _, token := range rng.Perm(vocab)[:top] {
				s.best = append(s.best, int32(token))
			}
		}
		r.Init(rng.Uint64(), &s, top)
		loss := func() (sum float64) {
			r.Pack()
			r.tape.Detach()
			scores := r.run(&s, 0, len(s.tokens))
			for i := range scores.Rows {
				for c, members := range clusters {
					p := 1 / (1 + math.Exp(-float64(scores.Row(i)[c])))
					right := slices.ContainsFunc(s.best[i*top:(i+1)*top],
						func(token int32) bool { return slices.Contains(members, token) })
					if !right {
						p = 1 - p
					}
					sum -= math.Log(p) / float64(top*scores.Rows)
				}
			}
			return sum
		}
		r.Params.ZeroGrad()
		got := r.gradient(&s, top)
		if want := loss(); math.Abs(got.Sum/got.Weight-want) > 1e-4*(1+want) {
			t.Fatalf("loss %g, want %g", got.Sum/got.Weight, want)
		}
		for _, p := range r.Params.All() {
			i := rng.IntN(len(p.Data))
			const step = 1.0 / 64
			old := p.Data[i]
			p.Data[i] = old + step
			up := loss()
			p.Data[i] = old - step
			down := loss()
			p.Data[i] = old
			if want := (up - down) / (2 * step); math.Abs(want-float64(p.Grad[i])) > 1e-3*(1+math.Abs(want)) {
				t.Fatalf("%s[%d] has gradient %g, want %g", p.Name, i, p.Grad[i], want)
			}
		}
	})
}

// randomTable returns a table of random embeddings.
func randomTable(rng *rand.Rand, rows, cols int) nn.Table {
	params := autograd.NewParams(gemm.F32)
	w, err := params.Matrix("table", rows, cols)
	if err != nil {
		panic(err)
	}
	for i := range params.Of(w).Data {
		params.Of(w).Data[i] = float32(rng.NormFloat64())
	}
	return w
}

func TestRouterRecipeRefuses(t *testing.T) {
	prepare := func(r *RouterRecipe) error { return r.Prepare(nil) }
	traintest.Refuses(t, NewRouterRecipe, prepare, map[string]func(r *RouterRecipe){
		"0 tokens each":        func(r *RouterRecipe) { r.Size = 0 },
		"0 clusters of a list": func(r *RouterRecipe) { r.Listed = 0 },
		"0 tokens of a row":    func(r *RouterRecipe) { r.Top = 0 },
		"--steps 0":            func(r *RouterRecipe) { r.Steps = 0 },
		"width 33":             func(r *RouterRecipe) { r.Width = 33 },
		"with 0 rows":          func(r *RouterRecipe) { r.Places = 0 },
		"drafting 0 steps":     func(r *RouterRecipe) { r.DraftSteps = 0 },
		"precision":            func(r *RouterRecipe) { r.Precision = "f64" },
		"text \"any\"":         func(r *RouterRecipe) { r.Text = "any" },
	})
}

// A run continues from a checkpoint only if the recipe's fingerprint is the same. It
// covers the names and the order of fields: changing these makes all runs that were
// stopped before unable to continue.
func TestRouterFingerprintStays(t *testing.T) {
	r := tinyRouter(7)
	if got := train.Fingerprint(&r); got != "793e523fbe00df9b" {
		t.Errorf("fingerprint %q", got)
	}
}
