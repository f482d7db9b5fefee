// The router of paper 001 §4.2: a small MLP that scores clusters by what the drafter is about to read.

package shortlist

import (
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
)

// RouterConfig is a router's shape.
type RouterConfig struct {
	Embed    int // width of the drafter's token embeddings
	Hidden   int // of its states
	Width    int // of the router's one hidden layer
	Clusters int
}

// Router scores the clusters that hold the next token's candidates: s = W·gelu(A·norm(e) + B·norm(h) + a) + b, where e is the embedding of
// the row's token and h the drafter's state at the parent. Both are known before the drafter's layers run. It is trained on the clusters of the
// drafter's own likeliest tokens by binary cross-entropy, so b is best begun at the clusters' log-odds.
type Router struct {
	RouterConfig
	EmbedNorm, HiddenNorm nn.Norm
	FromEmbed, FromHidden nn.Linear
	Out                   nn.Linear
}

// NewRouter builds the router over its weights: router.{embed_norm,hidden_norm}.weight, router.{embed,hidden,out}.weight and
// router.{embed,out}.bias.
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
		return l
	}
	const eps = 1e-6
	r.EmbedNorm = nn.Norm{Weight: vector("embed_norm.weight", c.Embed), Eps: eps}
	r.HiddenNorm = nn.Norm{Weight: vector("hidden_norm.weight", c.Hidden), Eps: eps}
	r.FromEmbed = linear("embed", c.Width, c.Embed)
	r.FromEmbed.Bias = vector("embed.bias", c.Width)
	r.FromHidden = linear("hidden", c.Width, c.Hidden)
	r.Out = linear("out", c.Clusters, c.Width)
	r.Out.Bias = vector("out.bias", c.Clusters)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// RouterBuffers is memory of a router's passes.
type RouterBuffers struct{ embed, hidden nn.Buffer }

// Scores fills dst, a row a query and a column a cluster, from the rows' embeddings and parents' states. Under a tape it is recorded.
func (r *Router) Scores(e *nn.Exec, embed, hidden, dst nn.Mat, m *RouterBuffers) {
	a, b := e.Mat(&m.embed, dst.Rows, r.Width), e.Mat(&m.hidden, dst.Rows, r.Width)
	e.Linear(nn.Source{X: embed, Norm: &r.EmbedNorm}, nn.Proj{Linear: &r.FromEmbed, Dst: a})
	e.Linear(nn.Source{X: hidden, Norm: &r.HiddenNorm}, nn.Proj{Linear: &r.FromHidden, Dst: b, To: a})
	e.Linear(nn.Source{X: a, Act: nn.GELU}, nn.Proj{Linear: &r.Out, Dst: dst})
}
