package peagle

import (
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

// Network is the layers of a head, over loaded weights for serving or over trained ones for training.
//
// Its text consists of EAGLE-3's entries: a token's embedding, with the feature of the token before
// it. Below an entry hang mask rows, one for each place after it: the mask token's embedding, with
// the feature that fc makes of MaskHidden, which replaces the taps there. Row d of such a block
// (the entry's is row 0) gives the token d+1 places after the entry's.
type Network struct {
	Config
	Base *eagle.Network // EAGLE-3's layers

	MaskHidden nn.Table // one row, as wide as the taps
	MaskEmbed  nn.Table // Config.Masks rows; nil: none

	mask []int32 // Config.Mask
}

// NewNetwork builds the head that c describes. It uses the target's tensors where the head has none
// of its own. tokens are those of a draft vocabulary; nil means the whole vocabulary.
func NewNetwork(c Config, w model.Weights, tokens []int32, target *model.Network) (*Network, error) {
	if err := headfile.CheckWeights(&c, w, tokens); err != nil {
		return nil, err
	}
	n := layOut(c)
	n.Base.Tokens, n.Base.Ends = tokens, headfile.EndsOf(target, tokens)
	return n, n.Tensors().Load(w)
}

// layOut returns a network without weights.
func layOut(c Config) *Network {
	return &Network{Config: c, Base: eagle.LayOut(c.Config), mask: []int32{c.Mask}}
}

// Parts lists the tensors of a head.
func (c *Config) Parts() headfile.Parts { return layOut(*c).Tensors() }

// Names of the tensors of mask rows.
const (
	maskHidden = "mask_hidden"
	maskEmbed  = "mask_embd"
)

// Tensors lists the network's tensors, in the order in which random weights are drawn.
func (n *Network) Tensors() headfile.Parts {
	list := append(n.Base.Tensors(), headfile.Table(maskHidden, &n.MaskHidden, 1, n.Width()))
	if n.Masks > 0 {
		list = append(list, headfile.Table(maskEmbed, &n.MaskEmbed, n.Masks, n.Hidden))
	}
	return list
}

// Buffers is the activation memory of a head.
type Buffers struct {
	inputs, features, embeds, rows, fused nn.Buffer
	feature                               []int32 // of each row, its index among the fused ones
	base                                  eagle.Buffers
}

// Read writes the keys and values of pending entries to the forest's caches. The entries are
// tokens, each with the taps of the token before it.
func (n *Network) Read(e *nn.Exec, f *nn.Forest, tokens []int32, taps nn.Mat, m *Buffers) {
	g := e.Mat(&m.features, taps.Rows, n.Hidden)
	e.Hold()
	n.Base.Features(e, taps, g, &m.base)
	n.Base.Keep(e, f, tokens, g, &m.base)
	e.Release()
}

// Run computes rows of a forest and leaves their states in x (rows × Hidden). entries and taps
// (entries × Width) are the inputs of those rows that are entries. from identifies each row: the
// index of its entry, or len(entries)+d−1 for the d-th mask row of a block. It must stay valid as
// long as a tape.
func (n *Network) Run(e *nn.Exec, f *nn.Forest, entries []int32, taps nn.Mat, from []int32, x nn.Mat, m *Buffers) {
	embed, g := n.inputs(e, entries, taps, from, m)
	n.Base.RunInputs(e, f, embed, g, x, &m.base)
}

// inputs returns the embeddings and features of Run's rows.
func (n *Network) inputs(e *nn.Exec, entries []int32, taps nn.Mat, from []int32, m *Buffers) (embed, g nn.Mat) {
	count, last := len(entries), int32(len(entries))
	inputs := e.Mat(&m.inputs, count+1, n.Width())
	copy(inputs.Data, taps.Data)
	fused := e.Mat(&m.features, count+1, n.Hidden)
	e.Embed(n.MaskHidden, first, inputs.Slice(count, count+1))
	n.Base.Features(e, inputs, fused, &m.base)

	embeds := e.Mat(&m.embeds, count+max(n.Masks, 1), n.Hidden)
	e.Embed(n.Base.Embed, entries, embeds.Slice(0, count))
	m.feature = m.feature[:0]
	for _, i := range from {
		m.feature = append(m.feature, min(i, last))
	}
	embed, g = e.Mat(&m.rows, len(from), n.Hidden), e.Mat(&m.fused, len(from), n.Hidden)
	if n.Masks > 0 {
		e.Embed(n.MaskEmbed, numbers[:n.Masks], embeds.Slice(count, count+n.Masks))
		e.Gather(embeds, from, embed)
	} else {
		e.Embed(n.Base.Embed, n.mask, embeds.Slice(count, count+1))
		e.Gather(embeds, m.feature, embed)
	}
	e.Gather(fused, m.feature, g)
	return embed, g
}

// first and numbers are indices of rows of a table.
var first, numbers = []int32{0}, func() (list []int32) {
	for i := range int32(maxDepths) {
		list = append(list, i)
	}
	return list
}()
