// The shortlists that DraftCosts compares.

package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/grovellm/grove/draft/eagle"
	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/shortlist"
)

type namedList struct {
	name   string
	method shortlist.Method
}

const (
	clusterTokens = 2 * gemm.Panel // of the router's clusters, as the embedded router has them
	routerWidth   = 256
	listExtra     = 512 // tokens of the text on a routed list at most
)

// lists makes the shortlists: the whole head first; quarters of it, or of its half at the first steps as the papers have it where it is
// position-aware; of dynaspec smaller ones too, with k_max as a share of the clusters; and a single panel, which leaves nearly nothing but
// the layer.
func (r *DraftCostReport) lists(n *eagle.Network, w *randomWeights, progress func(string, int, int)) ([]namedList, error) {
	head, err := shortlist.NewHead(&n.Head, n.Norm, nil, n.Vocab)
	if err != nil {
		return nil, err
	}
	ranks := shortlist.Rank(make([]int64, n.Vocab), nil, "ids")
	routing, err := r.routing(n, w, ranks)
	if err != nil {
		return nil, err
	}
	frequent := func(size int, aware bool) func() (shortlist.Method, error) {
		return func() (shortlist.Method, error) { return shortlist.NewFrequent(w.pool, head, ranks, size, aware) }
	}
	routed := func(clusters int, aware bool) func() (shortlist.Method, error) {
		return func() (shortlist.Method, error) {
			return shortlist.NewRouted(w.pool, head, n.Embed, routing, shortlist.RoutedOptions{Clusters: max(1, clusters), PositionAware: aware, Extra: min(listExtra, n.Vocab)})
		}
	}
	all := []struct {
		name string
		make func() (shortlist.Method, error)
	}{
		{"full", func() (shortlist.Method, error) { return nil, nil }},
		{"freq", frequent(n.Vocab/4, false)},
		{"freq-pa", frequent(n.Vocab/2, true)},
		{"dynaspec-fixed, k_max 1/4", routed(r.Clusters/4, false)},
		{"dynaspec-fixed, k_max 1/16", routed(r.Clusters/16, false)},
		{"dynaspec, k_max 1/2", routed(r.Clusters/2, true)},
		{"dynaspec, k_max 1/4", routed(r.Clusters/4, true)},
		{"dynaspec, k_max 1/8", routed(r.Clusters/8, true)},
		{"dynaspec, k_max 1/16", routed(r.Clusters/16, true)},
		{"dynaspec, k_max 1/32", routed(r.Clusters/32, true)},
		{"context", func() (shortlist.Method, error) {
			return shortlist.NewContext(w.pool, head, ranks, max(1, n.Vocab/16), min(1024, n.Vocab))
		}},
		{"one panel", frequent(gemm.Panel, false)},
	}
	var lists []namedList
	for i, l := range all {
		m, err := l.make()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		lists = append(lists, namedList{l.name, m})
		if progress != nil {
			progress("laying out heads", i+1, len(all))
		}
	}
	return lists, nil
}

// routing is a router of random weights over random clusters.
func (r *DraftCostReport) routing(n *eagle.Network, w *randomWeights, ranks *shortlist.Ranks) (*shortlist.Routing, error) {
	always, others := shortlist.Always(ranks)
	routing := &shortlist.Routing{Always: always}
	rng := rand.New(w.source("clusters", 0))
	rng.Shuffle(len(others), func(i, k int) { others[i], others[k] = others[k], others[i] })
	for c := range slices.Chunk(others, clusterTokens) {
		routing.Clusters = append(routing.Clusters, c)
	}
	r.Clusters = len(routing.Clusters)
	var err error
	routing.Router, err = shortlist.NewRouter(shortlist.RouterConfig{Embed: n.Hidden, Hidden: n.Hidden, Width: routerWidth, Clusters: r.Clusters}, w)
	return routing, err
}
