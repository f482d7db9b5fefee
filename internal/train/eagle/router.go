package eagle

import (
	"math"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
)

// Router is a router in training (DynaSpec §4.2, appendix A.2). From the inputs of a drafter's row,
// a token and a feature, it learns by binary cross-entropy which clusters contain any of the tokens
// that the drafter finds likeliest.
type Router struct {
	Params *autograd.Params

	net    *shortlist.Router
	embed  nn.Table
	of     []int32 // see shortlist.ClusterOf
	exec   *nn.Exec
	tape   *autograd.Tape
	bufs   shortlist.RouterBuffers
	scores nn.Buffer
	tokens nn.Buffer
	loss   []float64 // of each row
}

// NewRouter returns a router of zeros for clusters of a vocabulary of vocab tokens.
func NewRouter(c shortlist.RouterConfig, clusters [][]int32, vocab int, embed nn.Table, pool *par.Pool,
	kind gemm.Type) (*Router, error) {
	r := &Router{Params: autograd.NewParams(kind), embed: embed, exec: nn.NewExec(pool),
		of: shortlist.ClusterOf(clusters, vocab)}
	var err error
	if r.net, err = shortlist.NewRouter(c, train.Trained{Params: r.Params}); err != nil {
		return nil, err
	}
	r.tape = autograd.NewTape(r.exec, r.Params)
	return r, nil
}

// Init draws random weights, and initialises each cluster's score to the log-odds of how often the
// cluster was right in the drafts seen.
func (r *Router) Init(seed uint64, s *draftRows, top int) {
	train.Initialise(r.Params, seed, 1)
	for _, p := range r.Params.All() {
		switch p.Name {
		case "router.in.bias":
			clear(p.Data)
		case "router.out.bias":
			right := make([]float64, len(p.Data))
			labels := make([]float32, len(p.Data))
			for i := range s.tokens {
				r.label(labels, s.best[i*top:(i+1)*top])
				for c, y := range labels {
					right[c] += float64(y)
				}
			}
			for c := range p.Data {
				odds := (right[c] + 0.5) / (float64(len(s.tokens)) - right[c] + 0.5)
				p.Data[c] = float32(math.Log(odds))
			}
		case "router.out.weight":
			for i := range p.Data {
				p.Data[i] *= 0.1
			}
		}
	}
	r.Pack()
}

// InitOutputs initialises a router that reads outputs to score each cluster by its mean logit,
// projected on the directions in which the clusters' rows differ most: half of its units compute
// the products with these, the other half their negatives, since gelu(x) − gelu(−x) = x. So the
// router can also score clusters that are rare in training.
func (r *Router) InitOutputs(head *shortlist.Head, clusters [][]int32) error {
	hidden, row := r.net.Hidden, make([]float32, r.net.Hidden)
	means := make([][]float32, len(clusters))
	for c, tokens := range clusters {
		means[c] = make([]float32, hidden)
		for _, token := range tokens {
			head.W.Row(row, int(head.Row(token)))
			for i, x := range row {
				means[c][i] += x / float32(len(tokens))
			}
		}
	}
	basis, err := train.Principal(means)
	if err != nil {
		return err
	}
	params := train.ByName(r.Params)
	if head.Norm != nil {
		copy(params["router.hidden_norm.weight"].Data, head.Norm.Weight)
	}
	in, out := params["router.in.weight"], params["router.out.weight"]
	units := min(r.net.Width/2, hidden)
	for u := range units {
		direction := hidden - 1 - u // eigenvectors come in ascending order of eigenvalue
		up, down := train.Row(in, u), train.Row(in, units+u)
		clear(up)
		clear(down)
		for i := range hidden {
			v := float32(basis.At(i, direction))
			up[r.net.Embed+i], down[r.net.Embed+i] = v, -v
		}
		for c, mean := range means {
			product := float32(0)
			for i, x := range mean {
				product += x * float32(basis.At(i, direction))
			}
			out.Data[c*out.Cols+u], out.Data[c*out.Cols+units+u] = product, -product
		}
	}
	r.Pack()
	return nil
}

// Pack makes the router compute with its current parameters.
func (r *Router) Pack() { r.Params.Pack(r.tape.Products()) }

// label sets dst to 1 for the clusters of tokens, and to 0 for the others.
func (r *Router) label(dst []float32, tokens []int32) {
	clear(dst)
	for _, token := range tokens {
		if c := r.of[token]; c >= 0 {
			dst[c] = 1
		}
	}
}

// run scores the clusters for rows [from, to) of s.
func (r *Router) run(s *draftRows, from, to int) nn.Mat {
	hidden := r.net.Hidden
	embed := r.tokens.Mat(to-from, r.net.Embed)
	for i, token := range s.tokens[from:to] {
		r.embed.Row(embed.Row(i), int(token))
	}
	features := nn.Mat{Rows: to - from, Cols: hidden, Stride: hidden, Data: s.features[from*hidden : to*hidden]}
	scores := r.exec.Mat(&r.scores, to-from, r.net.Clusters)
	r.net.Scores(r.exec, embed, features, scores, &r.bufs)
	return scores
}

// gradient adds the gradient of the rows' mean loss to that of the parameters, and returns the
// loss. A row's loss is the binary cross-entropy summed over all clusters, divided by the
// number of tokens kept per row.
func (r *Router) gradient(s *draftRows, top int) autograd.Loss {
	r.tape.Reset()
	r.tape.Attach()
	n := len(s.tokens)
	scores := r.run(s, 0, n)
	grad, _ := autograd.Grad(scores)
	scale := 1 / float32(n*top)
	r.loss = grown(r.loss, n)
	r.exec.Pool().Run(n, train.Tasks(func(_, i int) {
		g := grad.Row(i)
		r.label(g, s.best[i*top:(i+1)*top])
		sum := 0.0
		for c, x := range scores.Row(i) {
			loss, slope := bce(x, g[c])
			sum += loss
			g[c] = slope * scale
		}
		r.loss[i] = sum / float64(top)
	}))
	var total autograd.Loss
	for _, l := range r.loss {
		total.Sum += l
	}
	total.Weight, total.Rows = float64(n), n
	r.tape.Backward()
	return total
}

func grown(s []float64, n int) []float64 {
	if cap(s) < n {
		return make([]float64, n)
	}
	return s[:n]
}

// bce returns the binary cross-entropy of a score against a label, and its derivative.
func bce(score, label float32) (loss float64, slope float32) {
	x, y := float64(score), float64(label)
	loss = max(x, 0) - x*y + math.Log1p(math.Exp(-math.Abs(x)))
	return loss, float32(1/(1+math.Exp(-x)) - y)
}
