package eagle

import (
	"fmt"

	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/tensor"
)

// RouterRecipe determines a router's weights, together with the target, its EAGLE
// head and the text.
type RouterRecipe struct {
	Clusters int // number of clusters by the paper's k-means; 0: clusters of Size tokens each
	Size     int // tokens per cluster if Clusters is 0: a multiple of a panel's rows wastes none
	Listed   int // clusters per list by default

	Width  int  // of the hidden layer
	Output bool `json:",omitempty"` // the router reads the rows' outputs, not their features
	Top    int  // L: how many of a row's likeliest tokens label their clusters as right
	train.Basis

	Places     int // rows used per text
	Later      int // how many of them the head drafts on from
	DraftSteps int // steps of such a draft

	Head string `json:"-"` // the file of the EAGLE head
}

// NewRouterRecipe is the recipe of the shipped router. A router of width 256 with clusters of 32
// cost five times as much, and its lists, equally long, had 0.5 % more of the likeliest tokens;
// with 4 tokens for labels the lists hold more of the probability than with 10.
func NewRouterRecipe() RouterRecipe {
	r := RouterRecipe{
		Size: 2 * gemm.Panel, Listed: 24, Width: 64, Top: 4, Basis: train.NewBasis(6, 600),
		Places: 96, Later: 32, DraftSteps: 8,
	}
	r.Schedule = train.Schedule{Warmup: 0.02, Cooldown: 0.8, Floor: 0.02, Cosine: true}
	r.ValidateEvery = 100
	r.Optimizer.Muon = false
	r.Optimizer.Rate = 3e-3
	r.Optimizer.Decay = 0.01
	return r
}

// Prepare refuses a recipe that cannot be completed.
func (r *RouterRecipe) Prepare(*train.Job) error {
	// The layers are the EAGLE head's, so there is nothing to check about them.
	if err := r.CheckBasis(train.Layering{}); err != nil {
		return err
	}
	switch {
	case r.Clusters < 0 || r.Clusters == 0 && r.Size < 1:
		return fmt.Errorf("%d clusters, or of %d tokens each: want a positive number of one", r.Clusters, r.Size)
	case r.Listed < 1:
		return fmt.Errorf("%d clusters of a list: want a positive number", r.Listed)
	case r.Top < 1:
		return fmt.Errorf("%d tokens of a row: want a positive number", r.Top)
	case r.Steps < 1 || r.Places < 1 || r.Later < 0 || r.DraftSteps < 1:
		return fmt.Errorf("%d steps of texts with %d rows, %d of them drafting %d steps: want positive numbers",
			r.Steps, r.Places, r.Later, r.DraftSteps)
	}
	if _, err := tensor.Q8_0.Size(r.Width); err != nil { // the type that the router is exported in
		return fmt.Errorf("a hidden layer of width %d: %w", r.Width, err)
	}
	return nil
}

// cluster divides a head's vocabulary into the most frequent tokens of a text, which every list
// includes, and clusters of the others.
func (r *RouterRecipe) cluster(m *model.Model, head *eagle.Network, texts [][]int32) (*shortlist.Routing, error) {
	h, err := shortlist.NewHead(&head.Head, head.Norm, head.Tokens, m.Config.Vocab)
	if err != nil {
		return nil, err
	}
	always, others := shortlist.Always(shortlist.Count(m.Config.Vocab, m.Tokenizer, "", texts...).Of(h))
	o := shortlist.Clustering{Clusters: r.Clusters, Seed: r.Seed}
	if r.Clusters == 0 {
		o.Size = r.Size
	}
	clusters, err := shortlist.Cluster(m.Pool(), h, others, o)
	return &shortlist.Routing{Always: always, Clusters: clusters, Listed: min(r.Listed, len(clusters))}, err
}

// Export writes the finished router.
func (l *routerLearner) Export(dir, name string, text *train.Corpus) error {
	f := shortlist.RouterFile{Name: name, Config: l.router.net.RouterConfig, Vocab: l.target.Config.Vocab,
		Vocabulary: shortlist.Fingerprint(text.Tok)}
	about := fmt.Sprintf("A router of %d clusters for an EAGLE head.", l.router.net.Clusters)
	return text.Export(dir, name, about, func(path string, t tensor.Type) error {
		weights, err := train.Encode(l.router.Params, t)
		if err != nil {
			return err
		}
		return l.routing.Write(path, f, weights)
	})
}
