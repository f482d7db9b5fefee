package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/kernels/fineclock"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/internal/speculate/control"
	"github.com/grovellm/grove/tree"
)

// CostOptions specify the passes to time.
type CostOptions struct {
	Shape string    // the model's name in the report
	Type  gemm.Type // the type in which most of its weights are multiplied

	Rows      []int // sizes of the passes; always includes 1
	Committed int   // tokens in the cache before each pass
	Prompts   []int // lengths of prompts whose reading is timed too
	Rounds    int   // 0: 15

	Progress func(done, total int) // called after each round; may be nil
}

// CostReport has the costs of passes of n rows on this machine, and the limits set by its memory and its multipliers.
type CostReport struct {
	Shape     string  `json:"shape"`
	Type      string  `json:"type"`
	CPU       string  `json:"cpu"`
	Threads   int     `json:"threads"`
	Weights   int     `json:"weight_bytes"`
	Committed int     `json:"committed"`
	KV        string  `json:"kv"`                    // the type in which keys and values are stored
	Cache     int     `json:"cache_bytes"`           // for one token
	CacheRead int     `json:"cache_read_bytes"`      // by a pass: a layer with a window reads only the window's pages
	Sequence  int64   `json:"sequence_bytes"`        // pages of the sequence, with the largest pass's rows
	States    int     `json:"states,omitempty"`      // number of states of all recurrent layers in it
	State     int     `json:"state_bytes,omitempty"` // bytes of one state
	Rounds    int     `json:"rounds"`
	Bandwidth float64 `json:"bandwidth_gbs"` // 10⁹ bytes read per second, by all threads
	ReadShare float64 `json:"read_share"`    // rate at which plain decoding reads weights, keys and values, relative to that
	Peak      float64 `json:"peak_gops"`     // 10⁹ operations per second; a multiplication and its addition are two
	// the same for products in attention, in the type in which keys and values are multiplied
	Attention float64      `json:"attention_peak_gops"`
	Rows      []RowCost    `json:"rows"`
	Prompts   []PromptCost `json:"prompts,omitempty"`
}

// PromptCost is the cost of reading a prompt of N tokens into an empty cache, with logits for only
// the last.
type PromptCost struct {
	N          int     `json:"n"`
	MS         float64 `json:"ms"`
	TokensPerS float64 `json:"tokens_per_s"`
}

// RowCost is the cost of a pass of N rows.
type RowCost struct {
	N     int     `json:"n"`
	MS    float64 `json:"ms"`
	Ratio float64 `json:"ratio"` // relative to a pass of one row
	// the larger of two times at the measured speeds: reading weights, keys and values, and doing the
	// products of weights and of attention
	RoofMS   float64 `json:"roof_ms"`
	OverRoof float64 `json:"over_roof"` // MS divided by that

	// Prediction of speculation's controller from the passes with one row and with the most rows, and
	// from the number of experts those read, divided by MS. 1 for these two.
	Predicted float64 `json:"predicted_over_ms"`
	Experts   int     `json:"experts,omitempty"`               // experts read, summed over the layers
	Expected  float64 `json:"expected_over_experts,omitempty"` // controller's estimate of that, divided by it
}

// Cost times passes of m: each a tree of n nodes over a cache of committed tokens, with logits for
// all n. Every round measures bandwidth, peak and each size and prompt once, in turn.
func Cost(ctx context.Context, m *model.Model, o CostOptions) (CostReport, error) {
	o.Rounds = cmp.Or(o.Rounds, 15)
	r := CostReport{
		Shape: o.Shape, Type: o.Type.String(), CPU: cpu.Active().String(), Threads: m.Threads(),
		Weights: m.WeightBytes(), Committed: o.Committed, KV: m.KV().String(), Cache: m.CacheBytes(),
		CacheRead: m.CacheRead(o.Committed),
		Rounds:    o.Rounds,
	}
	sizes := append([]int{1}, o.Rows...)
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	if sizes[0] < 1 {
		return r, fmt.Errorf("bench: a pass of %d rows: want at least 1", sizes[0])
	}
	if o.Committed < 0 || o.Rounds < 0 {
		return r, fmt.Errorf("bench: %d committed tokens, %d rounds: want no negative number", o.Committed, o.Rounds)
	}
	if len(o.Prompts) > 0 && slices.Min(o.Prompts) < 1 {
		return r, fmt.Errorf("bench: a prompt of %d tokens: want at least 1", slices.Min(o.Prompts))
	}

	passes, err := newPasses(ctx, m, o.Committed, sizes)
	if err != nil {
		return r, err
	}
	defer passes.cache.Free()
	machine, err := newMachine(m.Threads())
	if err != nil {
		return r, err
	}
	defer machine.close()

	weights, attention := machine.multiplier(o.Type), newAttentionPeak(machine, m.KV())
	bandwidth, peak := make([]float64, o.Rounds), make([]float64, o.Rounds)
	attentionPeak := make([]float64, o.Rounds)
	times := make([][]time.Duration, len(sizes))
	reading := make([][]time.Duration, len(o.Prompts))
	for round := range o.Rounds {
		bandwidth[round] = machine.bandwidth()
		peak[round], attentionPeak[round] = weights.peak(), attention.peak()
		for i := range sizes {
			ts, err := passes.time(ctx, i)
			if err != nil {
				return r, err
			}
			times[i] = append(times[i], ts...)
		}
		for i, n := range o.Prompts {
			t, err := passes.read(ctx, m, n)
			if err != nil {
				return r, err
			}
			reading[i] = append(reading[i], t)
		}
		if o.Progress != nil {
			o.Progress(round+1, o.Rounds)
		}
	}

	r.Sequence = passes.cache.Pages().InUse()
	r.States, r.State = passes.cache.States(), passes.cache.Pages().StateBytes()
	target := speculate.Model(m)
	experts := target.(interface{ Experts() control.Experts }).Experts()
	predict := control.NewPassTimes(experts)
	for _, i := range []int{0, len(sizes) - 1} {
		for range 3 { // repeated to make the time reliable
			predict.Observe(sizes[i], median(times[i]).Seconds(), passes.experts[i])
		}
	}
	r.Bandwidth, r.Peak = median(bandwidth)/1e9, median(peak)/1e9
	r.Attention = median(attentionPeak) / 1e9
	bytes := func(i int) float64 {
		return float64(experts.Dense + experts.Bytes*passes.experts[i] + r.CacheRead)
	}
	read := bytes(0) / median(bandwidth)
	multiply := func(t *tree.Tree) (seconds float64) {
		for _, depth := range t.Depth {
			seconds += 2*float64(m.Config.Products())/median(peak) + 2*float64(m.Config.AttentionProducts(o.Committed+int(depth)+
				1))/median(attentionPeak)
		}
		return seconds
	}
	plain := median(times[0]).Seconds()
	r.ReadShare = read / plain
	for i, n := range sizes {
		t, roof := median(times[i]).Seconds(), max(bytes(i)/median(bandwidth), multiply(passes.trees[i]))
		x := RowCost{n, 1e3 * t, t / plain, 1e3 * roof, t / roof, predict.Seconds(n) / t, passes.experts[i], 0}
		if x.Experts > 0 {
			x.Expected = predict.Experts(n) / float64(x.Experts)
		}
		r.Rows = append(r.Rows, x)
	}
	for i, n := range o.Prompts {
		t := median(reading[i]).Seconds()
		r.Prompts = append(r.Prompts, PromptCost{n, 1e3 * t, float64(n) / t})
	}
	return r, nil
}

// attentionPeak measures the peak of attention's products, half of them with keys, half with values.
type attentionPeak struct{ keys, values *multiplier }

func newAttentionPeak(m *machine, kv nn.KVType) attentionPeak {
	keys, values := gemm.F32, gemm.F32
	switch kv {
	case nn.KVBF16:
		keys, values = gemm.BF16, gemm.BF16
	case nn.KVQ8:
		keys, values = gemm.Q8_0, gemm.BF16
	}
	p := attentionPeak{keys: m.multiplier(keys)}
	p.values = p.keys
	if values != keys {
		p.values = m.multiplier(values)
	}
	return p
}

// peak returns the operations per second.
func (p attentionPeak) peak() float64 { return 2 / (1/p.keys.peak() + 1/p.values.peak()) }

// passes holds the passes to run: a cache, and a tree of each size.
type passes struct {
	pass  *model.Pass
	cache *nn.Cache
	trees []*tree.Tree
	all   []int32

	experts []int // read in the pass of each tree
}

func newPasses(ctx context.Context, m *model.Model, committed int, sizes []int) (*passes, error) {
	p := &passes{pass: m.NewPass(), cache: m.NewCache()}
	tokens := textOf(committed, m.Config.Vocab)
	// The last token is decoded separately: as in a text that continues, no recurrent layer's state lags by a page.
	for _, part := range [][]int32{tokens[:max(committed-1, 0)], tokens[max(committed-1, 0):]} {
		if err := p.pass.Prefill(ctx, p.cache, part, false); err != nil {
			return nil, err
		}
	}
	for i := range sizes[len(sizes)-1] {
		p.all = append(p.all, int32(i))
	}
	for i, n := range sizes {
		p.trees = append(p.trees, draftTree(n, m.Config.Vocab))
		if _, err := p.time(ctx, i); err != nil { // grow the buffers, warm the caches
			p.cache.Free()
			return nil, err
		}
		p.experts = append(p.experts, p.pass.ExpertsRead())
	}
	return p, nil
}

// textOf returns a text of n tokens.
func textOf(n, vocab int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(i * 7919 % vocab)
	}
	return tokens
}

// read reads a prompt of n tokens and returns the time it took.
func (p *passes) read(ctx context.Context, m *model.Model, n int) (time.Duration, error) {
	cache := m.NewCache()
	defer cache.Free()
	tokens := textOf(n, m.Config.Vocab)
	start := fineclock.Now()
	err := p.pass.Prefill(ctx, cache, tokens, true)
	return fineclock.Since(start), err
}

// draftTree returns a tree like those of drafters: three branches at each of the first levels, then sixteen chains.
func draftTree(n, vocab int) *tree.Tree {
	t := tree.New(0)
	for token := 1; t.Len() < n; token++ {
		i := t.Len()
		t.Append(max((i-1)/3, i-16), int32(token*104729%vocab), 0)
	}
	return t
}

// time runs the i-th pass for at least a few milliseconds and returns the time of each run.
func (p *passes) time(ctx context.Context, i int) (ts []time.Duration, err error) {
	const atLeast = 5 * time.Millisecond
	rows := []model.Rows{{Cache: p.cache, Tree: p.trees[i], Logits: p.all[:p.trees[i].Len()]}}
	for total := time.Duration(0); total < atLeast; {
		start := fineclock.Now()
		if err := p.pass.Run(ctx, rows, nil); err != nil {
			return nil, err
		}
		t := fineclock.Since(start)
		ts, total = append(ts, t), total+t
	}
	return ts, nil
}

// median sorts v.
func median[T float64 | time.Duration](v []T) T {
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
