package eagle

import (
	"fmt"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
)

// Network is the layers of an EAGLE head, over loaded weights to serve or trained ones to train.
//
// Its text is entries: of the token at place p its embedding, and the feature of place p−1, made of the target's taps there. The row
// of an entry predicts the token at p+1. Where the target has not been, a drafted token takes the state of the row that
// drafted it for its feature: so a head continues its own drafts.
//
//	EAGLE-3   g = fc(taps)             x = g + attention([norm(embedding) | norm(g)])   x += MLP(norm(x))   logits = Head·norm(x)
//	EAGLE-2   g = norm(last layer)     x = fc([embedding | g])   x += attention(x)      x += MLP(norm(x))   logits = Head·x
type Network struct {
	Config
	Fuse   nn.Linear
	Blocks []nn.Block // of the first, queries, keys and values read the embedding beside the feature (EAGLE-3)
	Norm   *nn.Norm   // before Head; nil: there is none

	GNorm     nn.Norm   // of the feature; of EAGLE-2 the target's own last
	InputNorm *nn.Norm  // Config.NormBeforeFC
	TapNorms  []nn.Norm // Config.FCNorm
	outNorm   *nn.Norm  // Config.NormOutput

	headfile.Ends

	Tokens []int32 // of each row of Head; nil: they are the vocabulary in order
}

// NewNetwork builds the head that c describes, for a target of which it uses what it has not of its own. Weights bear the names of
// llama.cpp's eagle3 files; tokens are those of a draft vocabulary, nil where it is the whole one.
func NewNetwork(c Config, w model.Weights, tokens []int32, target *model.Network) (*Network, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := checkTokens(&c, w, tokens); err != nil {
		return nil, err
	}
	return newNetwork(c, w, tokens, target)
}

// newNetwork is NewNetwork of what it has checked.
func newNetwork(c Config, w model.Weights, tokens []int32, target *model.Network) (*Network, error) {
	n := &Network{Config: c, Tokens: tokens}
	b := builder{w: w, eps: c.NormEps}
	b.do(func() (err error) { n.Ends, err = headfile.NewEnds(w, &c.Config, c.DraftVocab, target); return })
	if c.Version == 2 {
		n.GNorm = target.Norm
		n.Fuse = b.linear("fc", c.Hidden, 2*c.Hidden)
	} else {
		n.Fuse = b.linear("fc", c.Hidden, len(c.Taps)*c.Hidden)
		n.GNorm = *b.norm("blk.0.attn_norm_2", c.Hidden)
		n.Norm = b.norm("output_norm", c.Hidden)
	}
	if c.NormOutput { // what leaves the layers is normalised already
		n.Norm, n.outNorm = nil, n.Norm
	}
	if c.NormBeforeFC {
		n.InputNorm = b.norm("enc.output_norm", len(c.Taps)*c.Hidden)
	}
	for i := range c.Taps {
		if c.FCNorm {
			n.TapNorms = append(n.TapNorms, *b.norm(tapNorm(i), c.Hidden))
		}
	}
	b.do(func() (err error) { n.Blocks, err = model.NewBlocks(&n.Config.Config, firstLayer{w, &c}); return })
	if b.err != nil {
		return nil, b.err
	}
	return n, nil
}

// tapNorm is the name of the i-th tap's norm.
func tapNorm(i int) string { return fmt.Sprintf("fc_norm.%d", i) }

// checkTokens refuses a draft vocabulary that is none.
func checkTokens(c *Config, w model.Weights, tokens []int32) error {
	switch {
	case w.Has("output.bias") && !w.Has("output.weight"):
		return fmt.Errorf("there is a tensor output.bias, but no output.weight: want both or neither")
	case tokens == nil && c.DraftVocab < c.Vocab:
		return fmt.Errorf("a draft vocabulary of %d tokens of %d, but not which: want their ids", c.DraftVocab, c.Vocab)
	case tokens == nil:
		return nil
	case len(tokens) != c.DraftVocab:
		return fmt.Errorf("%d tokens of a draft vocabulary of %d: want as many", len(tokens), c.DraftVocab)
	case !w.Has("output.weight"):
		return fmt.Errorf("a draft vocabulary of %d tokens, but no tensor output.weight: want an output of its own", c.DraftVocab)
	}
	seen := make([]bool, c.Vocab)
	for i, t := range tokens {
		if t < 0 || int(t) >= c.Vocab || seen[t] {
			return fmt.Errorf("token %d of the draft vocabulary is %d: want each of 0 to %d once at most", i, t, c.Vocab-1)
		}
		seen[t] = true
	}
	return nil
}

// firstLayer is weights as model.NewBlocks asks for them: the attention of EAGLE-3's first layer reads rows twice as wide, and that of
// EAGLE-2's has no norm.
type firstLayer struct {
	model.Weights
	c *Config
}

func (f firstLayer) Matrix(name string, out, in int) (*gemm.Matrix, error) {
	switch name {
	case "blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight":
		if f.c.Version == 3 {
			in *= 2
		}
	}
	return f.Weights.Matrix(name, out, in)
}

func (f firstLayer) Vector(name string, n int) ([]float32, error) {
	if name == "blk.0.attn_norm.weight" && f.c.Version == 2 {
		return nil, nil
	}
	return f.Weights.Vector(name, n)
}

// builder keeps the first error, so that NewNetwork reads as a list of parts.
type builder struct {
	w   model.Weights
	eps float32
	err error
}

func (b *builder) do(f func() error) {
	if b.err == nil {
		b.err = f()
	}
}

func (b *builder) linear(name string, out, in int) (l nn.Linear) {
	b.do(func() (err error) { l.W, err = b.w.Matrix(name+".weight", out, in); return })
	if bias := name + ".bias"; b.w.Has(bias) {
		b.do(func() (err error) { l.Bias, err = b.w.Vector(bias, out); return })
	}
	return l
}

func (b *builder) norm(name string, n int) *nn.Norm {
	norm := &nn.Norm{Eps: b.eps}
	b.do(func() (err error) { norm.Weight, err = b.w.Vector(name+".weight", n); return })
	return norm
}
