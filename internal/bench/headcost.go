// The cost of drafting with heads of every kind, compared with a plain pass of their target.

package bench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// HeadCostOptions specify which heads to time.
type HeadCostOptions struct {
	Model string      // its name in the report
	Path  string      // the model's file, which may contain a layer that drafts
	Type  tensor.Type // of the matrices of random heads

	Drafters  []string // nil: all that have heads for the target
	Committed int      // tokens in the cache before the first draft
	Rounds    int      // 0: 15

	Progress func(done, total int) // called after each head; may be nil
}

// HeadCostReport has the costs of drafts on this machine.
type HeadCostReport struct {
	Model     string     `json:"model"`
	Weights   int        `json:"weight_bytes"` // bytes that a plain pass reads
	Type      string     `json:"head_type"`
	CPU       string     `json:"cpu"`
	Threads   int        `json:"threads"`
	Committed int        `json:"committed"`
	Rounds    int        `json:"rounds"`
	Heads     []HeadCost `json:"heads"`
}

// HeadCost is the cost of a head's draft: reading three tokens of text, and a tree with the drafter's default options
// for a budget of 64 nodes. Random heads are never confident, so their trees are as wide as the options allow.
type HeadCost struct {
	Drafter string  `json:"drafter"`
	Shape   string  `json:"shape"`
	Bytes   int64   `json:"bytes"`    // of the head's own weights; 0: they are in the target's file
	Nodes   int     `json:"nodes"`    // of the last draft
	MS      float64 `json:"ms"`       // of a draft, median
	PlainMS float64 `json:"plain_ms"` // of a plain pass in the same rounds, median
	Share   float64 `json:"share"`    // MS divided by PlainMS
}

const (
	headBudget = 64
	headDepth  = 16
)

// HeadCosts times drafts with random heads, in the shapes of published ones, and plain passes of m,
// in turn. Taps are random numbers too.
func HeadCosts(ctx context.Context, m *model.Model, o HeadCostOptions) (r *HeadCostReport, err error) {
	o.Rounds = cmp.Or(o.Rounds, 15)
	r = &HeadCostReport{Model: o.Model, Weights: m.WeightBytes(), Type: o.Type.String(), CPU: cpu.Active().String(),
		Threads: m.Threads(), Committed: o.Committed, Rounds: o.Rounds}
	var list []headfile.Published
	for _, k := range headfile.Kinds() {
		if k.Published != nil {
			list = append(list, k.Published(&m.Config)...)
		}
	}
	for _, name := range o.Drafters {
		if !slices.ContainsFunc(list, func(h headfile.Published) bool { return h.Drafter == name }) {
			return nil, fmt.Errorf("bench: no head to time for %q and a %s model", name, m.Config.Arch)
		}
	}
	if o.Drafters != nil {
		list = slices.DeleteFunc(list, func(h headfile.Published) bool { return !slices.Contains(o.Drafters, h.Drafter) })
	}
	dir, err := os.MkdirTemp("", "grove-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for i, h := range list {
		cost, err := r.time(ctx, m, h, o, filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return nil, fmt.Errorf("bench: %s (%s): %w", h.Drafter, h.About, err)
		}
		r.Heads = append(r.Heads, cost)
		if o.Progress != nil {
			o.Progress(i+1, len(list))
		}
	}
	return r, nil
}

// time times one head, whose file is written to path.
func (r *HeadCostReport) time(ctx context.Context, m *model.Model, h headfile.Published, o HeadCostOptions,
	path string) (HeadCost, error) {
	cost := HeadCost{Drafter: h.Drafter, Shape: h.About}
	head := registry.Head{Name: o.Path, Inside: true}
	if h.Shape != nil {
		if err := writeHead(path, h, &m.Config, o.Type); err != nil {
			return cost, err
		}
		defer os.Remove(path)
		info, err := os.Stat(path)
		if err != nil {
			return cost, err
		}
		cost.Bytes = info.Size()
		head = registry.Head{Name: path}
	}
	d, err := registry.New(h.Drafter, registry.Target{Vocab: m.Config.Vocab, Context: m.Context(), Model: m,
		Heads: []registry.Head{head}, Shared: new(registry.Shared)})
	if err != nil {
		return cost, err
	}
	p, err := newPasses(ctx, m, o.Committed, []int{1})
	if err != nil {
		return cost, err
	}
	defer p.cache.Free()
	t := &timedDraft{drafter: d, vocab: m.Config.Vocab, hidden: m.Config.Hidden, budget: headBudget, depth: headDepth,
		least: 2, cache: p.cache}
	if err := t.begin(o.Committed); err != nil {
		return cost, err
	}
	defer t.state.Close()
	var plain, drafts []time.Duration
	for round := range r.Rounds + 1 {
		passes, err := p.time(ctx, 0)
		if err != nil {
			return cost, err
		}
		if err := p.pass.Prefill(ctx, p.cache, make([]int32, draftRead), false); err != nil { // tokens that the draft reads
			return cost, err
		}
		took, err := t.time(ctx)
		if err != nil {
			return cost, err
		}
		if round > 0 { // the first round grows the buffers
			plain, drafts = append(plain, passes...), append(drafts, took)
		}
	}
	cost.Nodes = t.tree.Len()
	cost.MS, cost.PlainMS = 1e3*median(drafts).Seconds(), 1e3*median(plain).Seconds()
	cost.Share = cost.MS / cost.PlainMS
	return cost, nil
}

// writeHead writes a file of the head with random weights.
func writeHead(path string, h headfile.Published, target *model.Config, typ tensor.Type) error {
	s := h.Shape
	c := s.Common()
	c.Taps = s.DefaultTaps(target.Layers)
	c.TargetLayers = target.Layers
	w := &synthetic.Weights{Type: typ, Seed: 1, Repeat: true}
	if c.Output() < target.Vocab {
		w.Extra = []string{"output.weight"}
	}
	if err := s.Parts().Load(w); err != nil {
		return err
	}
	return headfile.WriteGGUF(path, h.Drafter, s, w.Made, synthetic.Tokens(s, 1), nil, typ)
}
