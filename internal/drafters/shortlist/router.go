// The router of DynaSpec §4.2: a small MLP that scores clusters from what the drafter is about to read.

package shortlist

import (
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

// RouterConfig is a router's shape.
type RouterConfig struct {
	Embed    int // width of the drafter's token embeddings
	Hidden   int // width of its states
	Width    int // width of the router's only hidden layer
	Clusters int
	Output   bool // h is the row's output, not the feature that it reads
}

// Router scores the clusters that hold candidates for the next token:
//
//	s = W·gelu(A·[norm(e) | norm(h)] + a) + b
//
// where e is the embedding of the row's token. In the paper h is the feature that the row reads
// with it, such as the drafter's state at its parent. Both are known before the drafter's layers
// run, so on a device with idle units routing costs no time (DynaSpec, §4.2). Here nothing is idle,
// so h may as well be the row's output, which contains what attention found in the text. The router
// is trained on the clusters of the drafter's own likeliest tokens by binary cross-entropy, so b is
// best initialised to the clusters' log-odds.
type Router struct {
	RouterConfig
	EmbedNorm, HiddenNorm nn.Norm
	In, Out               nn.Linear
}

// NewRouter builds a router from its weights: router.{embed_norm,hidden_norm}.weight, router.{in,out}.{weight,bias}.
func NewRouter(c RouterConfig, w model.Weights) (*Router, error) {
	r := &Router{RouterConfig: c}
	var err error
	vector := func(name string, n int) (v []float32) {
		if err == nil {
			v, err = w.Vector("router."+name, n)
		}
		return v
	}
	linear := func(name string, out, in int) (l nn.Linear) {
		if err == nil {
			l.W, err = w.Matrix("router."+name+".weight", out, in)
		}
		l.Bias = vector(name+".bias", out)
		return l
	}
	const eps = 1e-6
	r.EmbedNorm = nn.Norm{Weight: vector("embed_norm.weight", c.Embed), Eps: eps}
	r.HiddenNorm = nn.Norm{Weight: vector("hidden_norm.weight", c.Hidden), Eps: eps}
	r.In = linear("in", c.Width, c.Embed+c.Hidden)
	r.Out = linear("out", c.Clusters, c.Width)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// RouterBuffers is the memory of a router's passes.
type RouterBuffers struct{ inner nn.Buffer }

// Scores computes dst, with a row for each query and a column for each cluster, from the rows'
// embeddings and features. Under a tape it is recorded.
func (r *Router) Scores(e *nn.Exec, embed, hidden, dst nn.Mat, m *RouterBuffers) {
	if r.In.W == nil { // only the clusters' centres: s = W·norm(h)
		e.Linear(nn.Source{X: hidden, Norm: &r.HiddenNorm}, nn.Proj{Linear: &r.Out, Dst: dst})
		return
	}
	inner := e.Mat(&m.inner, dst.Rows, r.Width)
	e.Linear(nn.Source{X: embed, Norm: &r.EmbedNorm, With: hidden, WithNorm: &r.HiddenNorm},
		nn.Proj{Linear: &r.In, Dst: inner})
	e.Linear(nn.Source{X: inner, Act: nn.GELU}, nn.Proj{Linear: &r.Out, Dst: dst})
}
