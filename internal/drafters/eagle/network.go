package eagle

import (
	"cmp"
	"fmt"

	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

// Network has the layers of an EAGLE head, over loaded weights to serve or trained ones to train.
//
// Its text consists of entries: the embedding of the token at place p, and the feature of place p−1,
// made from the target's taps there. The row of an entry predicts the token at p+1. Where the target
// has not been, a drafted token's feature is the state of the row that drafted it: so a head
// continues its own drafts.
//
//	EAGLE-3   g = fc(taps)             x = g + attention([norm(embedding) | norm(g)])   x += MLP(norm(x))   logits = Head·norm(x)
//	EAGLE-2   g = norm(last layer)     x = fc([embedding | g])   x += attention(x)      x += MLP(norm(x))   logits = Head·x
//	Native    g = norm(last layer)     x = fc([norm(embedding) | norm(g)])   x += attention(norm(x))   x += MLP(norm(x))   x = norm(x)   logits = Head·x
type Network struct {
	Config
	Fuse   nn.Linear
	Blocks []nn.Block // in the first, queries, keys and values read both embedding and feature (EAGLE-3)
	Norm   *nn.Norm   // before Head; nil: there is none

	GNorm     nn.Norm   // of the feature; for EAGLE-2 the target's own last norm
	InNorms   []nn.Norm // of Native: of embedding and feature
	InputNorm *nn.Norm  // Config.NormBeforeFC
	TapNorms  []nn.Norm // Config.FCNorm
	outNorm   *nn.Norm  // Config.NormOutput, Native

	headfile.Ends

	Tokens []int32 // the token of each row of Head; nil: the vocabulary in order

	// As returns the shape whose file format the head has; nil: the Config.
	As func(c Config) headfile.Shape
}

// NewNetwork builds the head that c describes. It uses the target's tensors where it has none of its
// own. Weights have the names of llama.cpp's eagle3 files. tokens are those of a draft vocabulary,
// nil if it is the whole one.
func NewNetwork(c Config, w model.Weights, tokens []int32, target *model.Network) (*Network, error) {
	if err := headfile.CheckWeights(&c, w, tokens); err != nil {
		return nil, err
	}
	n := LayOut(c)
	n.Tokens, n.Ends = tokens, headfile.EndsOf(target, tokens)
	if c.last() {
		n.GNorm = target.Norm
	}
	return n, n.Tensors().Load(w)
}

// LayOut returns a network without weights: Tensors fills them in.
func LayOut(c Config) *Network {
	norm := nn.Norm{Eps: c.NormEps}
	n := &Network{Config: c, GNorm: norm}
	if c.Version != 2 {
		n.Norm = new(norm)
	}
	if c.Version == Native {
		n.InNorms = []nn.Norm{norm, norm}
	}
	if c.NormOutput || c.Version == Native && !c.Unnormed { // the layers' output is already normalised
		n.Norm, n.outNorm = nil, n.Norm
	}
	if c.NormBeforeFC {
		n.InputNorm = new(norm)
	}
	for range c.Taps {
		if c.FCNorm {
			n.TapNorms = append(n.TapNorms, norm)
		}
	}
	return n
}

// Parts lists the tensors of a head.
func (c *Config) Parts() headfile.Parts { return LayOut(*c).Tensors() }

// Names of the norms of the feature and of the joined taps.
const (
	featureNorm = "blk.0.attn_norm_2"
	inputNorm   = "enc.output_norm"
)

// Names of Native's tensors: of fc, and of the norm of the output.
const (
	NativeFuse = "blk.0.nextn.eh_proj"
	NativeNorm = "blk.0.nextn.shared_head_norm"
)

// Tensors lists the network's tensors, in the order in which random weights are drawn.
func (n *Network) Tensors() headfile.Parts {
	c := &n.Config
	list := headfile.Parts{n.Ends.Part(c, true)}
	switch c.Version {
	case Native:
		list = append(list, headfile.Linear(NativeFuse, &n.Fuse, c.Hidden, 2*c.Hidden, false),
			headfile.Norm("blk.0.nextn.enorm", &n.InNorms[0], c.Hidden), headfile.Norm("blk.0.nextn.hnorm",
				&n.InNorms[1], c.Hidden),
			headfile.Norm(NativeNorm, cmp.Or(n.Norm, n.outNorm), c.Hidden))
	case 2:
		list = append(list, headfile.Linear("fc", &n.Fuse, c.Hidden, 2*c.Hidden, true))
	default:
		list = append(list, headfile.Linear("fc", &n.Fuse, c.Hidden, len(c.Taps)*c.Hidden, true),
			headfile.Norm(featureNorm, &n.GNorm, c.Hidden), headfile.Norm("output_norm", cmp.Or(n.Norm, n.outNorm), c.Hidden))
	}
	if c.NormBeforeFC {
		list = append(list, headfile.Norm(inputNorm, n.InputNorm, len(c.Taps)*c.Hidden))
	}
	for i := range n.TapNorms {
		list = append(list, headfile.Norm(fmt.Sprintf("fc_norm.%d", i), &n.TapNorms[i], c.Hidden))
	}
	return append(list, &headfile.Blocks{Of: &c.Config, To: &n.Blocks, Biases: true, Wide: c.Version == 3,
		Bare: c.Version == 2})
}
