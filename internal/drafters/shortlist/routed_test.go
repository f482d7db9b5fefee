package shortlist

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
	"github.com/grovellm/grove/sample"
)

// routerWeights are a router's parameters as model.Weights.
type routerWeights struct{ *autograd.Params }

func (w routerWeights) Vector(name string, n int) ([]float32, error) {
	return w.Params.Vector(name, n), nil
}
func (w routerWeights) Has(string) bool { return false }
func (w routerWeights) Table(name string, _, _ int) (nn.Table, error) {
	return nil, fmt.Errorf("no table %s", name)
}

// randomRouter returns a router with random weights.
func randomRouter(r *rand.Rand, pool *par.Pool, c RouterConfig) (*Router, *autograd.Params) {
	params := autograd.NewParams(gemm.F32)
	router, err := NewRouter(c, routerWeights{params})
	if err != nil {
		panic(err)
	}
	for _, p := range params.All() {
		for i := range p.Data {
			p.Data[i] = float32(r.NormFloat64())
		}
	}
	params.Pack(autograd.NewProducts(pool, gemm.F32))
	return router, params
}

// A routed list has the tokens that are always listed, those that came up last in the text, and the clusters
// with the highest scores for any row of the step (or only for its own row), as many as the budget: whole,
// no token twice, and nothing else. It is the same during a pass, and the logits are the head's.
func TestRoutedListsTheBestClusters(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		vocab := rapid.IntRange(70, 400).Draw(t, "vocab")
		head, w := randomHead(r, vocab, 8)
		ranks := randomRanks(r, vocab)
		always, others := Always(ranks)
		m := rapid.IntRange(1, min(20, len(others))).Draw(t, "clusters")
		clusters, err := Cluster(pool, head, others, Clustering{Clusters: m, Rounds: 3})
		if err != nil {
			t.Fatal(err)
		}
		router, _ := randomRouter(r, pool, RouterConfig{Embed: 8, Hidden: 8, Width: 12, Clusters: m})
		o := RoutedOptions{Clusters: rapid.IntRange(1, m).Draw(t, "listed"),
			Own: rapid.Bool().Draw(t, "own"), PositionAware: rapid.Bool().Draw(t, "position-aware"), Extra: rapid.IntRange(0,
				70).Draw(t, "extra")}
		d, err := NewRouted(pool, head, head.W, &Routing{Router: router, Always: always, Clusters: clusters}, o)
		if err != nil {
			t.Fatal(err)
		}
		e := nn.NewExec(pool)
		for range 2 { // the second sequences reuse the memory of the first
			var queries []Query
			var texts [][]int32 // of each query's sequence
			for range rapid.IntRange(1, 3).Draw(t, "sequences") {
				s := d.Begin(&sample.Params{})
				defer s.Close()
				text := make([]int32, r.IntN(100))
				for i := range text {
					text[i] = r.Int32N(int32(vocab))
				}
				s.Commit(text)
				step := r.IntN(8)
				for range rapid.IntRange(1, 4).Draw(t, "rows") {
					q := Query{State: s, Step: step, Token: r.Int32N(int32(vocab)), Hidden: make([]float32, 8)}
					for k := range q.Hidden {
						q.Hidden[k] = float32(r.NormFloat64())
					}
					queries, texts = append(queries, q), append(texts, text)
					if !o.PositionAware {
						step = 1 + r.IntN(8) // one budget for all
					}
				}
			}
			lists := make([]*List, len(queries))
			if rapid.Bool().Draw(t, "in a pass") {
				x, y := nn.NewMat(2, 8), nn.NewMat(2, vocab)
				e.Hold()
				e.Linear(nn.Source{X: x}, nn.Proj{Linear: head.Linear, Dst: y})
				e.Follow(d.Start(queries, lists))
				e.Release()
			} else {
				d.Choose(queries, lists)
			}
			for first := 0; first < len(queries); {
				q := queries[first]
				last := first
				scores := make([]float64, m)
				for c := range scores {
					scores[c] = math.Inf(-1)
				}
				for ; last < len(queries) && queries[last].State == q.State && !(o.Own && last > first); last++ {
					embed := nn.NewMat(1, 8)
					hidden := nn.NewMat(1, 8)
					dst := nn.NewMat(1, m)
					copy(embed.Data, w.Row(int(queries[last].Token)))
					copy(hidden.Data, queries[last].Hidden)
					router.Scores(nn.NewExec(pool), embed, hidden, dst, new(RouterBuffers))
					for c, x := range widen(dst.Data) {
						scores[c] = max(scores[c], x)
					}
					if lists[last] != lists[first] {
						t.Fatal("rows of a budget have lists of their own")
					}
				}
				budget := o.Clusters
				if o.PositionAware && q.Step >= 2 {
					budget = max(1, o.Clusters/((q.Step+1)*2))
				}
				want := map[int32]bool{}
				for _, token := range always {
					want[token] = true
				}
				core := len(want)
				for i := len(texts[first]) - 1; i >= 0 && len(want) < core+d.context.extra; i-- {
					want[texts[first][i]] = true
				}
				for _, c := range top(scores, m)[:budget] {
					for _, token := range clusters[c] {
						want[token] = true
					}
				}
				got := listed(t, lists[first])
				if len(got) != len(want) || lists[first].Count() != len(want) {
					t.Fatalf("step %d lists %d tokens, counts %d, want %d", q.Step, len(got), lists[first].Count(),
						len(want))
				}
				for token := range want {
					if !got[token] {
						t.Fatalf("step %d does not list token %d", q.Step, token)
					}
				}
				// The logits of a unit vector are a column of the weights.
				x := nn.NewMat(1, 8)
				dst := nn.NewMat(1, lists[first].Width())
				k := r.IntN(8)
				x.Data[k] = 1
				new(output.Lists).Run(e, nn.Source{X: x}, []*output.Shortlist{&lists[first].Shortlist}, dst)
				for i, token := range lists[first].Tokens() {
					if logit := dst.Data[i]; token != output.NoToken && logit != w.Row(int(token))[k] ||
						token == output.NoToken && !math.IsInf(float64(logit), -1) {
						t.Fatalf("token %d has logit %g", token, logit)
					}
				}
				first = last
			}
		}
	})
}

// Once its memory has grown, a router allocates nothing.
func TestRoutedAllocatesNothing(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	r := rand.New(rand.NewPCG(4, 5))
	head, _ := randomHead(r, 500, 8)
	always, others := Always(randomRanks(r, 500))
	clusters, err := Cluster(pool, head, others, Clustering{Size: 32})
	if err != nil {
		t.Fatal(err)
	}
	router, _ := randomRouter(r, pool, RouterConfig{Embed: 8, Hidden: 8, Width: 12, Clusters: len(clusters)})
	d, err := NewRouted(pool, head, head.W, &Routing{Router: router, Always: always, Clusters: clusters},
		RoutedOptions{Clusters: 3, Extra: 64})
	if err != nil {
		t.Fatal(err)
	}
	s := d.Begin(&sample.Params{})
	defer s.Close()
	queries := make([]Query, 4)
	lists := make([]*List, 4)
	text := make([]int32, 3)
	for i := range queries {
		queries[i] = Query{State: s, Hidden: make([]float32, 8)}
	}
	round := func() {
		for i := range text {
			text[i] = r.Int32N(500)
		}
		s.Commit(text)
		for step := range 4 {
			for i := range queries {
				queries[i].Step, queries[i].Token = step, r.Int32N(500)
			}
			d.Choose(queries, lists)
		}
	}
	for range 200 { // until the longest possible lists have been laid out
		round()
	}
	if n := testing.AllocsPerRun(20, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func widen(x []float32) []float64 {
	w := make([]float64, len(x))
	for i, v := range x {
		w[i] = float64(v)
	}
	return w
}

// Under a tape, the router's scores have gradients with respect to all its parameters, as training needs.
func TestRouterTrains(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	r := rand.New(rand.NewPCG(8, 9))
	router, params := randomRouter(r, pool, RouterConfig{Embed: 6, Hidden: 5, Width: 7, Clusters: 4})
	e := nn.NewExec(pool)
	tape := autograd.NewTape(e, params)
	embed, hidden := nn.NewMat(3, 6), nn.NewMat(3, 5)
	for _, m := range []nn.Mat{embed, hidden} {
		for i := range m.Data {
			m.Data[i] = float32(r.NormFloat64())
		}
	}
	weights := make([]float32, 12)
	for i := range weights {
		weights[i] = float32(r.NormFloat64())
	}
	loss := func() (sum float64) {
		params.Pack(tape.Products())
		dst := nn.NewMat(3, 4)
		router.Scores(nn.NewExec(pool), embed, hidden, dst, new(RouterBuffers))
		for i, x := range dst.Data {
			sum += float64(x) * float64(weights[i])
		}
		return sum
	}
	params.ZeroGrad()
	tape.Reset()
	tape.Attach()
	var buf nn.Buffer
	dst := e.Mat(&buf, 3, 4)
	router.Scores(e, embed, hidden, dst, new(RouterBuffers))
	g, ok := autograd.Grad(dst)
	if !ok {
		t.Fatal("the scores are not on the tape")
	}
	for i := range g.Rows {
		copy(g.Row(i), weights[i*4:])
	}
	tape.Backward()
	tape.Detach()
	for _, p := range params.All() {
		for i := range p.Data {
			const step = 1.0 / 256
			old := p.Data[i]
			p.Data[i] = old + step
			up := loss()
			p.Data[i] = old - step
			down := loss()
			p.Data[i] = old
			if want := (up - down) / (2 * step); want-float64(p.Grad[i]) > 1e-2*(1+abs(want)) ||
				float64(p.Grad[i])-want > 1e-2*(1+abs(want)) {
				t.Fatalf("%s[%d] has gradient %g, want %g", p.Name, i, p.Grad[i], want)
			}
		}
	}
}

func abs(x float64) float64 { return max(x, -x) }

func TestNewRoutedRefuses(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	r := rand.New(rand.NewPCG(1, 1))
	head, _ := randomHead(r, 40, 8)
	clusters := [][]int32{{1, 2}, {3}}
	router, _ := randomRouter(r, pool, RouterConfig{Embed: 8, Hidden: 8, Width: 4, Clusters: 2})
	for name, f := range map[string]func() error{
		"another number of clusters": func() error {
			_, err := NewRouted(pool, head, head.W, &Routing{Router: router, Always: []int32{0},
				Clusters: clusters[:1]}, RoutedOptions{Clusters: 1})
			return err
		},
		"more than there are": func() error {
			_, err := NewRouted(pool, head, head.W, &Routing{Router: router, Always: []int32{0}, Clusters: clusters},
				RoutedOptions{Clusters: 3})
			return err
		},
	} {
		if f() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
