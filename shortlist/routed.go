// dynaspec: the clusters that a router picks for each row (paper 001 §4, Algorithm 1).

package shortlist

import (
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/internal/simd"
	"github.com/grovellm/grove/nn"
)

// RoutedOptions say how many clusters a list has.
type RoutedOptions struct {
	Clusters      int  // k_max
	PositionAware bool // k_max at steps 0 and 1, ⌊k_max/(2(step + 1))⌋ later; else k_max at all
}

// Budget is the number of clusters at a step: k_c of paper 001 §4.2, at least one.
func (o RoutedOptions) Budget(step int) int {
	if o.PositionAware && step > 1 {
		return max(1, o.Clusters/(2*(step+1)))
	}
	return o.Clusters
}

// Routed lists, of each row, the clusters that a router picks, and always a panel or more of frequent tokens.
type Routed struct {
	stateless
	o      RoutedOptions
	router *Router
	embed  nn.Table
	exec   *nn.Exec
	head   *nn.OrderedHead // the tokens always listed, then cluster after cluster, each in panels of its own
	first  []int           // panel of each cluster's first token, and of the end
	tail   *tail           // with the clusters as groups

	lists                 []*List // reused
	embeds, hidden, score nn.Buffer
	buffers               RouterBuffers
	idx                   []int32
	val                   []float32
}

func (d *Routed) Fork() Method {
	f := *d
	return f.ready(d.exec.Pool())
}

// ready gives d scratch of its own.
func (d *Routed) ready(pool *par.Pool) *Routed {
	d.exec, d.lists = nn.NewExec(pool), nil
	d.embeds, d.hidden, d.score, d.buffers = nn.Buffer{}, nn.Buffer{}, nn.Buffer{}, RouterBuffers{}
	d.idx, d.val = make([]int32, d.o.Clusters), make([]float32, d.o.Clusters)
	return d
}

// Always are the tokens that every routed list holds: those that ranks keep, and the most frequent up to a whole panel. Cluster the others.
func Always(r *Ranks) (always, others []int32) {
	n := (max(r.Kept, 1) + gemm.Panel - 1) / gemm.Panel * gemm.Panel
	always = r.First(n)
	return always, r.Order[len(always):]
}

// NewRouted lists clusters of the tokens that Always leaves. embed is the drafter's table of embeddings.
func NewRouted(pool *par.Pool, head *nn.Linear, norm *nn.Norm, embed nn.Table, always []int32, clusters [][]int32, router *Router, o RoutedOptions) (*Routed, error) {
	if router.Clusters != len(clusters) || router.Hidden != head.W.In() {
		return nil, fmt.Errorf("shortlist: a router of %d clusters by states of %d, for %d clusters and states of %d", router.Clusters, router.Hidden, len(clusters), head.W.In())
	}
	if o.Clusters < 1 || o.Clusters > len(clusters) {
		return nil, fmt.Errorf("shortlist: %d clusters a list: want 1 to %d", o.Clusters, len(clusters))
	}
	d := &Routed{o: o, router: router, embed: embed}
	order := slices.Clone(always)
	for _, c := range clusters {
		order = wholePanels(order)
		d.first = append(d.first, len(order)/gemm.Panel)
		order = append(order, c...)
	}
	order = wholePanels(order)
	d.first = append(d.first, len(order)/gemm.Panel)
	var err error
	if d.head, err = nn.NewOrderedHead(pool, head, order); err != nil {
		return nil, err
	}
	if d.tail, err = newTail(pool, head, norm, clusters); err != nil {
		return nil, err
	}
	return d.ready(pool), nil
}

// wholePanels fills up the last panel of an order.
func wholePanels(order []int32) []int32 {
	for len(order)%gemm.Panel != 0 {
		order = append(order, nn.NoToken)
	}
	return order
}

func (d *Routed) Begin() State { return d }

func (d *Routed) Choose(queries []Query, lists []*List) {
	n := len(queries)
	embeds, hidden := d.embeds.Mat(n, d.router.Embed), d.hidden.Mat(n, d.router.Hidden)
	for i, q := range queries {
		d.embed.Row(embeds.Row(i), int(q.Token))
		copy(hidden.Row(i), q.Hidden)
	}
	scores := d.score.Mat(n, d.router.Clusters)
	d.router.Scores(d.exec, embeds, hidden, scores, &d.buffers)
	for i, q := range queries {
		if i == len(d.lists) {
			d.lists = append(d.lists, &List{tail: d.tail, listed: make([]bool, d.router.Clusters)})
		}
		k := d.o.Budget(q.Step)
		picked := d.idx[:simd.TopK(scores.Row(i), d.idx[:k], d.val[:k])]
		slices.Sort(picked)
		d.lay(d.lists[i], picked)
		lists[i] = d.lists[i]
	}
}

// lay lists clusters in ascending order.
func (d *Routed) lay(l *List, clusters []int32) {
	l.Reset()
	clear(l.listed)
	l.Add(d.head, 0, d.first[0])
	for _, c := range clusters {
		l.listed[c] = true
		l.Add(d.head, d.first[c], d.first[c+1])
	}
	l.Beside(d.tail.head)
}
