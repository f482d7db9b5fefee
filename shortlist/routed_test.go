package shortlist

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/nn"
)

// routerWeights are a router's parameters as model.Weights.
type routerWeights struct{ *nn.Params }

func (w routerWeights) Vector(name string, n int) ([]float32, error) {
	return w.Params.Vector(name, n), nil
}
func (w routerWeights) Has(string) bool { return false }
func (w routerWeights) Table(name string, _, _ int) (nn.Table, error) {
	return nil, fmt.Errorf("no table %s", name)
}

// randomRouter is one of random weights.
func randomRouter(r *rand.Rand, pool *par.Pool, c RouterConfig) (*Router, *nn.Params) {
	params := nn.NewParams(gemm.F32)
	router, err := NewRouter(c, routerWeights{params})
	if err != nil {
		panic(err)
	}
	for _, p := range params.All() {
		for i := range p.Data {
			p.Data[i] = float32(r.NormFloat64())
		}
	}
	params.Pack(nn.NewProducts(pool, gemm.F32))
	return router, params
}

// A routed list is what is always listed and the clusters with the highest scores, as many as the step's budget: whole, and nothing else.
func TestRoutedListsTheBestClusters(t *testing.T) {
	pool := par.New(1)
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
		o := RoutedOptions{Clusters: rapid.IntRange(1, m).Draw(t, "listed"), PositionAware: rapid.Bool().Draw(t, "position-aware")}
		d, err := NewRouted(pool, head, nil, head.W, always, clusters, router, o)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			n := rapid.IntRange(1, 5).Draw(t, "rows")
			queries, lists := make([]Query, n), make([]*List, n)
			for i := range queries {
				queries[i] = Query{State: d.Begin(), Step: r.IntN(8), Token: r.Int32N(int32(vocab)), Hidden: make([]float32, 8)}
				for k := range queries[i].Hidden {
					queries[i].Hidden[k] = float32(r.NormFloat64())
				}
			}
			d.Choose(queries, lists)
			for i, q := range queries {
				embed, hidden, scores := nn.NewMat(1, 8), nn.NewMat(1, 8), nn.NewMat(1, m)
				copy(embed.Data, w.Row(int(q.Token)))
				copy(hidden.Data, q.Hidden)
				router.Scores(nn.NewExec(pool), embed, hidden, scores, new(RouterBuffers))
				order := top(widen(scores.Data), m)
				budget := o.Clusters
				if o.PositionAware && q.Step >= 2 {
					budget = max(1, o.Clusters/((q.Step+1)*2))
				}
				want := slices.Clone(always)
				for _, c := range order[:budget] {
					want = append(want, clusters[c]...)
				}
				got := listed(t, lists[i])
				if len(got) != len(want) {
					t.Fatalf("step %d lists %d tokens, want %d", q.Step, len(got), len(want))
				}
				for _, token := range want {
					if !got[token] {
						t.Fatalf("step %d does not list token %d", q.Step, token)
					}
				}
				for c := range clusters {
					if lists[i].listed[c] != slices.Contains(order[:budget], c) {
						t.Fatalf("cluster %d is listed or not, and the tail does not know", c)
					}
				}
			}
		}
	})
}

func widen(x []float32) []float64 {
	w := make([]float64, len(x))
	for i, v := range x {
		w[i] = float64(v)
	}
	return w
}

// Under a tape the router's scores have gradients by all its parameters: what training needs.
func TestRouterTrains(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	r := rand.New(rand.NewPCG(8, 9))
	router, params := randomRouter(r, pool, RouterConfig{Embed: 6, Hidden: 5, Width: 7, Clusters: 4})
	e := nn.NewExec(pool)
	tape := nn.NewTape(e, params)
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
	g, ok := dst.Grad()
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
			if want := (up - down) / (2 * step); want-float64(p.Grad[i]) > 1e-2*(1+abs(want)) || float64(p.Grad[i])-want > 1e-2*(1+abs(want)) {
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
			_, err := NewRouted(pool, head, nil, head.W, []int32{0}, clusters[:1], router, RoutedOptions{Clusters: 1})
			return err
		},
		"more than there are": func() error {
			_, err := NewRouted(pool, head, nil, head.W, []int32{0}, clusters, router, RoutedOptions{Clusters: 3})
			return err
		},
	} {
		if f() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
