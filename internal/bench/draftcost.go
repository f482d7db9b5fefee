// The cost of drafting with a head of a large model's shape, with its whole output matrix and with shortlists.

package bench

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/kernels/fineclock"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// DraftCostOptions specify what to time.
type DraftCostOptions struct {
	Kind    *headfile.Kind // of the head: see HeadTarget
	Target  synth.Shape    // the model it is for: a llama or qwen3
	Type    tensor.Type    // of the matrices
	Threads int            // 0: all
	Rounds  int            // every round drafts once with each shortlist; 0: 15

	Progress func(done, total int) // called after each round; may be nil
}

// DraftCostReport has the costs of drafts. A draft is like those of EAGLE-3's runs, with all of its
// candidates: a pass of the root's row, seven passes of ten rows with ten children each, and the
// reading of three tokens of text.
type DraftCostReport struct {
	Target  string      `json:"target"`
	Type    string      `json:"type"`
	CPU     string      `json:"cpu"`
	Threads int         `json:"threads"`
	Vocab   int         `json:"vocabulary"`
	Hidden  int         `json:"hidden"`
	Head    int         `json:"head_bytes"`
	Layer   int         `json:"layer_bytes"`
	Rounds  int         `json:"rounds"`
	Lists   []DraftCost `json:"shortlists"`
}

// DraftCost is a draft with one shortlist.
type DraftCost struct {
	Name  string  `json:"name"`
	Size  float64 `json:"shortlist_size"` // tokens of a row's list, mean over all rows
	MS    float64 `json:"ms"`             // median
	Ratio float64 `json:"over_full"`      // relative to a draft with the whole output matrix
}

const (
	draftText     = 128 // tokens of the text before the first draft
	draftRead     = 3   // tokens that each draft reads
	clusterTokens = 2 * gemm.Panel
	routerWidth   = 256
	listShare     = 16 // a router lists one of this many clusters
	listExtra     = 512
)

// HeadTarget returns the kind of head and the target that a shape, such as eagle3-llama3-8b, names,
// by the kind's drafter; nil if it names none.
func HeadTarget(shape string) (kind *headfile.Kind, target string) {
	for _, k := range headfile.Kinds() {
		if target, ok := strings.CutPrefix(strings.ToLower(shape), k.Drafters[0]+"-"); ok && k.Timed != nil {
			return k, target
		}
	}
	return nil, ""
}

// DraftCosts times drafts of a head with random weights. There is no target: its taps and logits are random too.
func DraftCosts(ctx context.Context, o DraftCostOptions) (*DraftCostReport, error) {
	o.Rounds = cmp.Or(o.Rounds, 15)
	pool := par.New(o.Threads)
	defer pool.Close()
	w := &synthetic.Weights{Type: o.Type, Seed: 1}
	head, err := o.Kind.Timed(o.Target.Config(), w, pool)
	if err != nil {
		return nil, fmt.Errorf("bench: %s of %s: %w", o.Kind.Name, o.Target.Name, err)
	}
	w.Made = nil
	out := head.Output.Head.W
	r := &DraftCostReport{
		Target: o.Target.Name, Type: model.ProductType(o.Type, out.In()).String(), CPU: cpu.Active().String(),
		Threads: pool.Threads(), Vocab: out.Out(), Hidden: out.In(),
		Head: out.Bytes(), Layer: head.Layers, Rounds: o.Rounds,
	}
	drafts, err := r.drafts(head, w, pool)
	for _, d := range drafts {
		defer d.state.Close()
	}
	if err != nil {
		return nil, err
	}
	times := make([][]time.Duration, len(drafts))
	for round := range o.Rounds + 1 {
		for i, d := range drafts {
			t, err := d.time(ctx)
			if err != nil {
				return nil, err
			}
			if round > 0 { // the first round grows the buffers
				times[i] = append(times[i], t)
			}
		}
		if o.Progress != nil {
			o.Progress(round, o.Rounds)
		}
	}
	for i, d := range drafts {
		l := &r.Lists[i]
		l.Size = float64(r.Vocab)
		if i > 0 {
			stats := shortlist.StatsOf(d.drafter)
			l.Size = stats.Size()
		}
		l.MS = 1e3 * median(times[i]).Seconds()
		l.Ratio = l.MS / r.Lists[0].MS
	}
	return r, nil
}

// drafts returns the drafters to compare: with the whole output matrix, over the clusters of a
// router, and over a single panel, which leaves almost nothing but the layer.
func (r *DraftCostReport) drafts(t *headfile.Timed, w model.Weights, pool *par.Pool) (drafts []*timedDraft, err error) {
	head, err := shortlist.NewHead(t.Output.Head, t.Output.Norm, nil, r.Vocab)
	if err != nil {
		return nil, err
	}
	ranks := shortlist.Rank(make([]int64, r.Vocab), nil, "ids")
	always, others := shortlist.Always(ranks)
	routing := &shortlist.Routing{Always: always}
	rng := rand.New(rand.NewPCG(1, 3))
	others = slices.Clone(others)
	rng.Shuffle(len(others), func(i, k int) { others[i], others[k] = others[k], others[i] })
	for c := range slices.Chunk(others, clusterTokens) {
		routing.Clusters = append(routing.Clusters, c)
	}
	clusters := len(routing.Clusters)
	if routing.Router, err = shortlist.NewRouter(shortlist.RouterConfig{Embed: r.Hidden, Hidden: r.Hidden,
		Width: routerWidth, Clusters: clusters}, w); err != nil {
		return nil, err
	}
	routed, err := shortlist.NewRouted(pool, head, t.Output.Embed, routing, shortlist.RoutedOptions{
		Clusters: max(1, clusters/listShare), PositionAware: true, Extra: min(listExtra, r.Vocab),
	})
	if err != nil {
		return nil, err
	}
	panel, err := shortlist.NewFrequent(pool, head, ranks, gemm.Panel, false)
	if err != nil {
		return nil, err
	}
	for _, l := range []struct {
		name   string
		method shortlist.Method
	}{{"full", nil}, {fmt.Sprintf("dynaspec, k_max 1/%d", listShare), routed}, {"one panel", panel}} {
		drafter, err := t.New(l.method)
		if err != nil {
			return drafts, fmt.Errorf("%s: %w", l.name, err)
		}
		d := &timedDraft{drafter: drafter, vocab: r.Vocab, hidden: r.Hidden, budget: t.Budget, depth: t.Depth, least: t.Least}
		if err := d.begin(draftText); err != nil {
			return drafts, fmt.Errorf("%s: %w", l.name, err)
		}
		drafts = append(drafts, d)
		r.Lists = append(r.Lists, DraftCost{Name: l.name})
	}
	return drafts, nil
}

// timedDraft runs a drafter on random text.
type timedDraft struct {
	drafter draft.Drafter
	state   draft.State
	rng     *rand.Rand
	vocab   int
	hidden  int
	budget  int // for a draft: nodes and depth to ask for, and the fewest nodes that it must have
	depth   int
	least   int
	cache   any // of the target; nil: there is no target
	taps    [][]float32
	logits  []float32
	chain   tree.Tree
	tree    tree.Tree
}

// begin begins a text of that many tokens.
func (d *timedDraft) begin(text int) (err error) {
	d.rng = rand.New(rand.NewPCG(1, 1))
	d.logits = d.normal(d.vocab)
	for range 64 {
		d.taps = append(d.taps, d.normal(d.hidden))
	}
	if d.state, err = d.drafter.Begin(draft.Options{}); err != nil {
		return err
	}
	return d.commit(text, -1)
}

func (d *timedDraft) normal(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(d.rng.NormFloat64())
	}
	return v
}

// commit adds n tokens.
func (d *timedDraft) commit(n int, next int32) error {
	tokens, nodes := make([]int32, n), make([]int32, n)
	for i := range tokens {
		tokens[i], nodes[i] = int32(d.rng.IntN(d.vocab)), int32(i)
	}
	d.chain.ResetChain(tokens)
	return d.drafter.Commit([]draft.Rows{{State: d.state, Tokens: tokens, Tree: &d.chain, Nodes: nodes, Next: next, Pass: d}})
}

// Tap and Logits are those of a target's pass.
func (d *timedDraft) Tap(t, _, node int) []float32 { return d.taps[(7*node+t)%len(d.taps)] }
func (d *timedDraft) Logits(int, int) []float32    { return d.logits }

// time reads some tokens and drafts.
func (d *timedDraft) time(ctx context.Context) (time.Duration, error) {
	root := int32(d.rng.IntN(d.vocab))
	start := fineclock.Now()
	if err := d.commit(draftRead, root); err != nil {
		return 0, err
	}
	d.tree.Reset(root)
	if _, err := d.drafter.Propose(ctx, []draft.Request{{State: d.state, Tree: &d.tree, Budget: d.budget,
		Depth: d.depth, Cache: d.cache}}); err != nil {
		return 0, err
	}
	t := fineclock.Since(start)
	if d.tree.Len() < d.least {
		return 0, fmt.Errorf("bench: a draft of %d nodes: want %d", d.tree.Len(), d.least)
	}
	return t, nil
}
