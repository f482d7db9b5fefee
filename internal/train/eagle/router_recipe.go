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

// RouterRecipe is what a router's weights are a function of, with the target, its EAGLE head and
// the text.
type RouterRecipe struct {
	Clusters int // of the paper's k-means; 0: of Size tokens each
	Size     int // tokens of a cluster, where Clusters is 0: a multiple of the rows of a panel wastes none
	Listed   int // clusters of a list, where a user does not say

	Width  int  // of the hidden layer
	Output bool `json:",omitempty"` // it reads the rows' outputs, not their features
	Top    int  // L: the tokens of a row whose clusters are right
	train.Basis

	Places     int // rows of a text that are looked at
	Later      int // of them, those from which the head drafts on
	DraftSteps int // of such a draft

	Head string `json:"-"` // the file of the EAGLE head
}

// NewRouterRecipe is the recipe of the shipped router. A router of width 256 and clusters of 32
// cost five times as much, and had 0.5 % more of the likeliest tokens on lists of as many; with 4
// tokens for labels the lists have more of the probability than with 10.
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

// Prepare refuses a recipe that cannot be followed to its end.
func (r *RouterRecipe) Prepare(*train.Job) error {
	// Of the layers, which are the EAGLE head's, nothing is refused.
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
	if _, err := tensor.Q8_0.Size(r.Width); err != nil { // as which the router is exported
		return fmt.Errorf("a hidden layer of width %d: %w", r.Width, err)
	}
	return nil
}

// cluster parts the vocabulary of a head: the most frequent tokens of a text, which lists always
// have, and clusters of the others.
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
