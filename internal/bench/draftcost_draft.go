// A drafter at work without a target.

package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/eagle"
	"github.com/grovellm/grove/draft/grow"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/shortlist"
	"github.com/grovellm/grove/tree"
)

// timedDraft is a drafter at work on a text of which the target says anything.
type timedDraft struct {
	drafter draft.Drafter
	state   draft.State
	vocab   int
	rng     *rand.Rand
	pass    *randomPass
	chain   tree.Tree
	tree    tree.Tree
	nodes   []int32
	most    int // nodes of a tree
}

func newTimedDraft(n *eagle.Network, lists shortlist.Method, pool *par.Pool, seed uint64) (*timedDraft, error) {
	shape := grow.DefaultDynamic()
	shape.K, shape.Depth = costK, costDepth
	shape.N = 1 + costK + costK*costK*costDepth // all candidates: so that random numbers cut no row
	d := &timedDraft{vocab: n.Vocab, rng: rand.New(rand.NewPCG(seed, 1)), most: shape.N}
	d.pass = newRandomPass(rand.New(rand.NewPCG(seed, 2)), n)
	var err error
	if d.drafter, err = eagle.New(n, &shape, false, lists, pool, draft.Target{Vocab: n.Vocab, Context: n.Config.Context}); err != nil {
		return nil, err
	}
	if d.state, err = d.drafter.Begin(draft.Options{}); err != nil {
		return nil, err
	}
	return d, d.commit(costText, -1)
}

// commit brings n tokens.
func (d *timedDraft) commit(n int, next int32) error {
	tokens := make([]int32, n)
	d.nodes = d.nodes[:0]
	for i := range tokens {
		tokens[i] = int32(d.rng.IntN(d.vocab))
		d.nodes = append(d.nodes, int32(i))
	}
	d.chain.ResetChain(tokens)
	return d.drafter.Commit([]draft.Rows{{State: d.state, Tokens: tokens, Tree: &d.chain, Nodes: d.nodes, Next: next, Pass: d.pass}})
}

// time takes in some tokens and drafts.
func (d *timedDraft) time(ctx context.Context) (time.Duration, error) {
	root := int32(d.rng.IntN(d.vocab))
	start := time.Now()
	if err := d.commit(costRead, root); err != nil {
		return 0, err
	}
	d.tree.Reset(root)
	if _, err := d.drafter.Propose(ctx, []draft.Request{{State: d.state, Tree: &d.tree, Budget: d.most, Depth: costDepth + 1}}); err != nil {
		return 0, err
	}
	t := time.Since(start)
	if d.tree.Len() < costK*costDepth {
		return 0, fmt.Errorf("a draft of %d nodes: want %d passes of %d rows", d.tree.Len(), costDepth, costK)
	}
	return t, nil
}

// randomPass is a target's pass of random numbers.
type randomPass struct {
	taps   [][]float32
	logits []float32
}

func newRandomPass(rng *rand.Rand, n *eagle.Network) *randomPass {
	row := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	p := &randomPass{logits: row(n.Vocab)}
	for range 64 {
		p.taps = append(p.taps, row(n.Hidden))
	}
	return p
}

func (p *randomPass) Tap(t, _, node int) []float32 { return p.taps[(7*node+t)%len(p.taps)] }
func (p *randomPass) Logits(int, int) []float32    { return p.logits }
