// What drafting costs at the shape of a large model's EAGLE-3 head, with its whole output head and with parts of it.

package bench

import (
	"context"
	"time"

	"github.com/grovellm/grove/draft/eagle"
	"github.com/grovellm/grove/internal/cpu"
	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/internal/synth"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
)

// DraftCostOptions say what to time.
type DraftCostOptions struct {
	Target  synth.Shape // whose head it is: a llama or qwen3
	Type    gemm.Type   // of the matrices
	Threads int         // 0: all
	Rounds  int         // every round drafts once with each shortlist; 0: 15
	Seed    uint64

	Progress func(what string, done, total int) // called after each thing made and each round; may be nil
}

// DraftCostReport says what a draft costs. Drafts are those of EAGLE-2's and EAGLE-3's runs: after the root's row seven passes of ten rows,
// ten children each; and with each comes text of three tokens to be read.
type DraftCostReport struct {
	Target     string      `json:"target"`
	Type       string      `json:"type"`
	CPU        string      `json:"cpu"`
	Threads    int         `json:"threads"`
	Vocab      int         `json:"vocabulary"`
	Hidden     int         `json:"hidden"`
	HeadBytes  int         `json:"head_bytes"`
	LayerBytes int         `json:"layer_bytes"`
	Clusters   int         `json:"clusters"`
	Rows       int         `json:"rows"`   // of a draft whose logits are computed
	Passes     int         `json:"passes"` // of a draft
	Rounds     int         `json:"rounds"`
	Bandwidth  float64     `json:"bandwidth_gbs"` // 10⁹ bytes read a second, median
	Peak       float64     `json:"peak_gops"`     // 10⁹ operations a second, median
	LayerRoof  float64     `json:"layer_roof_ms"` // a draft's passes but for the head: as long as memory or the multiply unit needs
	FullRoof   float64     `json:"full_roof_ms"`  // with the whole head; the layer's share of it is what no shortlist gets below
	Lists      []DraftCost `json:"shortlists"`
}

// DraftCost is a draft with one shortlist.
type DraftCost struct {
	Name  string  `json:"name"`
	Size  float64 `json:"shortlist_size"` // tokens of a row's list, mean over all rows of a draft
	MS    float64 `json:"ms"`             // a draft, median
	Ratio float64 `json:"over_full"`      // over one with the whole head
}

const (
	costK, costDepth = 10, 7 // of the drafts
	costText         = 128   // tokens before the first
	costRead         = 3     // tokens that come with each
)

// DraftCosts times drafts of a head of random weights, whose target is not there: taps and logits are random too.
func DraftCosts(ctx context.Context, o DraftCostOptions) (*DraftCostReport, error) {
	if o.Rounds == 0 {
		o.Rounds = 15
	}
	pool := par.New(o.Threads)
	defer pool.Close()
	c := eagleConfig(&o.Target)
	w := &randomWeights{pool, o.Type, o.Seed}
	out, err := w.Matrix("output.weight", c.Vocab, c.Hidden)
	if err != nil {
		return nil, err
	}
	n, err := eagle.NewNetwork(c, w, nil, &model.Network{Embed: out, Head: nn.Linear{W: out}})
	if err != nil {
		return nil, err
	}
	r := &DraftCostReport{
		Target: o.Target.Name, Type: o.Type.String(), CPU: cpu.Active().String(), Threads: pool.Threads(), Vocab: c.Vocab, Hidden: c.Hidden, HeadBytes: out.Bytes(),
		LayerBytes: n.Blocks[0].Bytes(), Rows: 1 + costK*costDepth, Passes: 1 + costDepth, Rounds: o.Rounds,
	}
	lists, err := r.lists(n, w, o.Progress)
	if err != nil {
		return nil, err
	}
	var drafts []*timedDraft
	for _, l := range lists {
		d, err := newTimedDraft(n, l.method, pool, o.Seed)
		if err != nil {
			return nil, err
		}
		defer d.state.Close()
		drafts = append(drafts, d)
		r.Lists = append(r.Lists, DraftCost{Name: l.name})
	}
	machine, err := newMachine(pool.Threads(), o.Type)
	if err != nil {
		return nil, err
	}
	defer machine.close()
	times, bandwidth, peak := make([][]time.Duration, len(drafts)), make([]float64, o.Rounds+1), make([]float64, o.Rounds+1)
	for round := range o.Rounds + 1 {
		bandwidth[round], peak[round] = machine.bandwidth(), machine.peak()
		for i, d := range drafts {
			t, err := d.time(ctx)
			if err != nil {
				return nil, err
			}
			if round > 0 { // the first grows the buffers
				times[i] = append(times[i], t)
			}
		}
		if o.Progress != nil {
			o.Progress("drafting", round, o.Rounds)
		}
	}
	r.roofs(n, median(bandwidth), median(peak))
	for i, d := range drafts {
		l := &r.Lists[i]
		stats := d.drafter.ListStats()
		if l.Size = stats.Size(); stats.Rows == 0 {
			l.Size = float64(c.Vocab)
		}
		l.MS = 1e3 * median(times[i]).Seconds()
		l.Ratio = l.MS / r.Lists[0].MS
	}
	return r, nil
}

// eagleConfig is the shape of a target's EAGLE-3 head: a layer of its own kind.
func eagleConfig(s *synth.Shape) eagle.Config {
	return eagle.Config{
		Config: model.Config{
			Arch: s.Arch, Vocab: s.Vocab, Hidden: s.Hidden, Layers: 1, Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim, FFN: s.FFN,
			Context: s.Context, NormEps: float32(s.NormEps), Rope: model.RopeConfig{Base: s.RopeBase, Dims: s.RopeDims, Scale: 1},
		},
		Version: 3, Taps: []int{2, s.Layers / 2, s.Layers - 3}, DraftVocab: s.Vocab, TargetLayers: s.Layers,
	}
}

// roofs says how long a draft's products must take.
func (r *DraftCostReport) roofs(n *eagle.Network, bandwidth, peak float64) {
	r.Bandwidth, r.Peak = bandwidth/1e9, peak/1e9
	product := func(bytes, rows int) float64 { // an operation is a multiplication or an addition; a byte is about a weight, or half of one
		weights := float64(bytes) * float64(n.Head.W.Out()) * float64(n.Head.W.In()) / float64(n.Head.W.Bytes())
		return 1e3 * max(float64(bytes)/bandwidth, 2*weights*float64(rows)/peak)
	}
	r.LayerRoof = product(n.Fuse.W.Bytes(), costRead+1) + product(r.LayerBytes, costRead+1) + costDepth*product(r.LayerBytes, costK)
	r.FullRoof = r.LayerRoof + product(r.HeadBytes, 1) + costDepth*product(r.HeadBytes, costK)
}
