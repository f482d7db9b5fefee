// dynaspec: the clusters that a router picks (DynaSpec §4, Algorithm 1).
//
// In the paper every prefix has its own list (RoutedOptions.Own). Otherwise rows of a sequence in
// one pass share a list if their budgets are the same: the clusters with the highest score for any
// of them. For the same number of clusters a shared list costs a third, because a panel of the head
// is read and multiplied for all rows at once; and rows of one pass, the likeliest continuations of
// one text, mostly need the same clusters.
//
// A router that reads a token and a feature does not know what the drafter's attention looks back
// at: names that occur again. So lists also have what context lists have: the text's latest tokens
// and the verifier's alternatives. A router that reads the row's output does know: see Router.

package shortlist

import (
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
	"github.com/grovellm/grove/sample"
)

// RoutedOptions say how many clusters a list has, and what else it has.
type RoutedOptions struct {
	Extra         int  // maximum number of tokens of the sequence
	Clusters      int  // k_max
	Own           bool // each row has its own list; otherwise rows of a step share one
	PositionAware bool // k_max at steps 0 and 1, ⌊k_max/(2(step + 1))⌋ later; otherwise always k_max
}

// Budget returns the number of clusters at a step: k_c of DynaSpec §4.2, but at least one.
func (o RoutedOptions) Budget(step int) int {
	if o.PositionAware && step > 1 {
		return max(1, o.Clusters/(2*(step+1)))
	}
	return o.Clusters
}

// Routing is a router together with the clusters that it scores.
type Routing struct {
	Router   *Router
	Always   []int32   // tokens that every list has
	Clusters [][]int32 // the others
	Listed   int       // default number of clusters of a list; at most as many as there are
}

// ClusterOf returns the cluster of each token of a vocabulary, negative if it is in none.
func ClusterOf(clusters [][]int32, vocab int) []int32 {
	of := slices.Repeat([]int32{neverListed}, vocab)
	for c, tokens := range clusters {
		for _, token := range tokens {
			of[token] = int32(c)
		}
	}
	return of
}

// Routed lists the clusters that a router picks, one or more panels of frequent tokens, and tokens of the sequence.
type Routed struct {
	o       RoutedOptions
	router  *Router
	embed   nn.Table
	pool    *par.Pool
	context *Context            // the tokens that are always listed, and those of sequences
	head    *output.OrderedHead // cluster by cluster, each in its own panels
	first   []int               // panel of each cluster's first token, and the end
	size    []int               // of each cluster
	of      []int32             // of each token, its cluster; negative: none
	tail    *tail               // of all clusters

	picking picking
}

func (d *Routed) Fork() Method {
	f := *d
	return f.ready(d.pool)
}

// ready gives d its own scratch memory.
func (d *Routed) ready(pool *par.Pool) *Routed {
	d.pool = pool
	d.picking = picking{d: d, exec: nn.NewExec(pool), workers: make([]picks, pool.Threads())}
	for i := range d.picking.workers {
		d.picking.workers[i] = picks{
			clusters: make([]int32, d.o.Clusters), scores: make([]float32, d.o.Clusters), picked: make([]bool, len(d.size)),
		}
	}
	return d
}

// Always returns the tokens that every routed list has: those that the ranks keep, and the most
// frequent ones up to a whole panel. Only others are to be clustered.
func Always(r *Ranks) (always, others []int32) {
	n := (max(r.Kept, 1) + gemm.Panel - 1) / gemm.Panel * gemm.Panel
	always = r.First(n)
	return always, r.Order[len(always):]
}

// NewRouted lists clusters of a routing, without tokens that the head lacks. embed is the drafter's embedding table.
func NewRouted(pool *par.Pool, head *Head, embed nn.Table, r *Routing, o RoutedOptions) (*Routed, error) {
	switch n := len(r.Clusters); {
	case r.Router.Clusters != n || r.Router.Hidden != head.W.In():
		return nil, fmt.Errorf("shortlist: a router of %d clusters by features of %d, for %d clusters and features of %d", r.Router.Clusters,
			r.Router.Hidden, n, head.W.In())
	case o.Clusters < 1 || o.Clusters > n:
		return nil, fmt.Errorf("shortlist: %d clusters a list: want 1 to %d", o.Clusters, n)
	}
	d := &Routed{o: o, router: r.Router, embed: embed}
	var order, clustered []int32
	had := make([][]int32, len(r.Clusters))
	for i, c := range r.Clusters {
		c = head.having(c)
		d.first = append(d.first, len(order)/gemm.Panel)
		d.size = append(d.size, len(c))
		order, clustered = wholePanels(append(order, c...)), append(clustered, c...)
		had[i] = c
	}
	d.of = ClusterOf(had, head.Vocab())
	d.first = append(d.first, len(order)/gemm.Panel)
	var err error
	if d.head, err = orderedHead(pool, head, order); err != nil {
		return nil, err
	}
	if d.context, err = newContext(pool, head, head.having(r.Always), o.Extra); err != nil {
		return nil, err
	}
	if d.tail, err = newTail(pool, head, clustered); err != nil {
		return nil, err
	}
	return d.ready(pool), nil
}

// wholePanels pads an order to whole panels.
func wholePanels(order []int32) []int32 {
	for len(order)%gemm.Panel != 0 {
		order = append(order, output.NoToken)
	}
	return order
}

// ReadsOutput reports whether the router reads the row's output.
func (d *Routed) ReadsOutput() bool { return d.router.Output }

func (d *Routed) Begin(p *sample.Params) State { return &routedState{contextState: d.context.begin(p)} }

// routedState is a sequence with the lists of its draft.
type routedState struct {
	*contextState
	lists []*List // the first used of them belong to the current draft
	used  int
}

func (d *Routed) Choose(queries []Query, lists []*List) {
	d.pool.RunPhases(d.Start(queries, lists))
}

// list returns a list to lay out.
func (s *routedState) list() *List {
	if s.used == len(s.lists) {
		s.lists = append(s.lists, new(List))
	}
	s.used++
	return s.lists[s.used-1]
}

// pure is the share of a list's clustered tokens that the tail counts as the likeliest: the others are
// listed because they resemble those. With it, the mean error of the logarithm of all tokens' mass is
// below 0.02 for lists of 3 to 13 % of the vocabulary of grove's target, at temperatures 1 and 0.5.
const pure = 0.5

// lay lists a sequence's own tokens and the clusters that were picked, which are in ascending order.
func (d *Routed) lay(l *List, s *contextState, w *picks) {
	l.Reset()
	s.onto(l)
	for _, c := range w.clusters {
		w.picked[c] = true
	}
	if s.rows != nil { // no token is listed twice
		s.omitRepeated(l, d.context.core.Panels()*gemm.Panel, func(token int32) bool {
			c := d.of[token]
			return c >= 0 && w.picked[c]
		})
	}
	listed := 0
	for _, c := range w.clusters {
		w.picked[c] = false
		l.Add(d.head, d.first[c], d.first[c+1])
		listed += d.size[c]
	}
	l.end(d.tail, int(pure*float64(listed)))
}
