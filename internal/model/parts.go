package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// part is a tensor of an architecture, without .weight or .bias.
type part struct {
	name    string // in GGUF files; in a layer, without "blk.N."
	folder  string // in folders
	out, in dim    // rows and columns; a vector has no columns
	heads   bool   // the rows are heads of queries or keys, to be rotated
	fused   bool   // folders have query, key and value head by head
	half    int    // 1, 2: in folders it is the first or second half of a tensor's rows
	as      string // the part that does the same in most architectures, if its name differs
	split   bool   // of latent attention: one matrix per head; in folders, both halves share one tensor
	each    bool   // one for each expert. A * in the folder's name is an expert's number
	streams bool   // one for each residual stream but the first, in the way of each
	short   bool   // folders may lack the last rows, which are 0 then
	sides   bool   // with param: the halves lie side by side instead of taking turns
	param   bool   // belongs to no module in folders: see folderparam.go
	bare    bool   // the folder's name has no ending
	ending  string // of GGUF's name, if it is not .weight
	whole   bool   // GGUF's name has no ending
	conv    bool   // of a convolution: folders have a dimension of 1 between rows and columns
	row     bool   // folders have the vector as a matrix of one row
	turned  bool   // folders have the matrix with inputs as rows
	flat    bool   // folders have its numbers as a vector
	plain   bool   // of a norm: not stored less 1, as others are
	decay   bool   // folders have the logarithm of the negated number
	apart   string // the folder's name of each expert's tensor, where experts are separate
	tiled   bool   // folders order the rows, or columns, of value heads differently: see Grouped
	mixed   int    // 1, 2, 3: the place among parts that folders have in one tensor, grouped by key head

	dims func(rows, cols int) []int      // the shape that the tensor has in both formats; nil: the usual one
	when func(c *Config, layer int) bool // the layers that have it; nil: all
}

// The parts that most architectures share, with the names that most folders use.
var (
	llamaTop = []part{
		{name: "token_embd", folder: "model.embed_tokens", out: vocab, in: hidden},
		{name: "output_norm", folder: "model.norm", out: hidden},
		{name: "output", folder: "lm_head", out: vocab, in: hidden},
	}
	attnNorm   = part{name: "attn_norm", folder: "input_layernorm", out: hidden}
	ffnNorm    = part{name: "ffn_norm", folder: "post_attention_layernorm", out: hidden}
	queryNorm  = part{name: "attn_q_norm", folder: "self_attn.q_norm", out: head}
	keyNorm    = part{name: "attn_k_norm", folder: "self_attn.k_norm", out: head}
	query      = part{name: "attn_q", folder: "self_attn.q_proj", out: queries, in: hidden, heads: true}
	key        = part{name: "attn_k", folder: "self_attn.k_proj", out: keyHeads, in: hidden, heads: true}
	value      = part{name: "attn_v", folder: "self_attn.v_proj", out: keyHeads, in: hidden}
	attnOutput = part{name: "attn_output", folder: "self_attn.o_proj", out: hidden, in: queries}
	ffnGate    = part{name: "ffn_gate", folder: "mlp.gate_proj", out: inner, in: hidden}
	ffnUp      = part{name: "ffn_up", folder: "mlp.up_proj", out: inner, in: hidden}
	ffnDown    = part{name: "ffn_down", folder: "mlp.down_proj", out: hidden, in: inner}

	attnPost = part{name: "post_attention_norm", folder: "post_attention_layernorm", out: hidden}
	ffnPost  = part{name: "post_ffw_norm", folder: "post_feedforward_layernorm", out: hidden}

	router     = part{name: "ffn_gate_inp", folder: "mlp.gate", out: experts, in: hidden}
	expertGate = part{name: "ffn_gate_exps", folder: "mlp.experts.*.gate_proj", out: inner, in: hidden, each: true}
	expertUp   = part{name: "ffn_up_exps", folder: "mlp.experts.*.up_proj", out: inner, in: hidden, each: true}
	expertDown = part{name: "ffn_down_exps", folder: "mlp.experts.*.down_proj", out: hidden, in: inner, each: true}

	expertParts = []part{router, expertGate, expertUp, expertDown}

	llamaLayer = []part{attnNorm, ffnNorm, query, key, value, attnOutput, ffnGate, ffnUp, ffnDown}
)

const layersPrefix = "model.layers."

// Part is a tensor that every model of a configuration has, with its names without .weight or .bias.
type Part struct {
	Name       string // in GGUF files
	Folder     string // in Hugging Face folders
	Rows, Cols int    // a vector of Rows elements has no columns

	// ToGGUF returns the row of a folder's tensor that is row i in a GGUF file, ToFolder the
	// inverse; nil: the same row.
	ToGGUF, ToFolder func(i int) int

	// ColsToGGUF and ColsToFolder do the same for columns.
	ColsToGGUF, ColsToFolder func(i int) int

	Half int // 1, 2: it is the first or second half of the folder's tensor, or of each expert's; of Mixed: its place

	// Mixed describes how parts share the rows of a folder's tensor, where they are not halves;
	// nil: they do not.
	Mixed *Mixed

	// Param: in transformers it is a parameter of no module. Its name in folders has no ending
	// (InFolder), experts' matrices are transposed, and rows of the two halves alternate.
	Param bool
	Sides bool // except that the halves lie side by side

	// Experts is how many matrices of Rows × Cols follow one another in a GGUF file's tensor; 0:
	// one, which belongs to no expert. A * in Folder is an expert's number.
	Experts int

	// Split is, for matrices of latent attention, how many rows the folder's tensor has for each
	// head. Experts is the number of heads.
	Split int

	// Shift is the difference of a GGUF file's numbers from a folder's.
	Shift float32

	// Factors says what row i of a folder's tensor is multiplied by, one after the other; nil: nothing.
	Factors func(i int) [2]float32

	Optional bool // a model may lack it

	Ending string // of its name in GGUF files: .weight, with a few exceptions
	Bare   bool   // its name in folders has no ending
	Conv   bool   // folders have a dimension of 1 between rows and columns
	Row    bool   // folders have the vector as a matrix of one row
	Short  bool   // folders may lack the last rows, which are 0 then
	Flat   bool   // folders have its numbers as a vector
	Turned bool   // folders have the matrix with inputs as rows
	Decay  bool   // folders have the logarithm of the negated number
	Dims   []int  // the shape that the tensor has in both formats; nil: the usual one

	Apart string // the folder's name of each expert's tensor, if there is no tensor called Folder
}

// Weight returns its name in GGUF files, including the ending.
func (p *Part) Weight() string { return p.Name + p.Ending }

// Parts lists the tensors of a model in the order of a GGUF file, including those of later layers
// that are of its kind. It leaves out a tied output matrix, biases and tensors of the rotation.
func (c *Config) Parts() (list []Part) {
	a := c.layout()
	if a == nil {
		return nil
	}
	for _, p := range a.top {
		if c.hasPart(p, 0) && (p.name != "output" || !c.Tied) {
			list = append(list, c.part(a, p, 0, "", ""))
		}
	}
	for i := range c.stored() {
		list = append(list, c.layerParts(a, i, fmt.Sprintf("blk.%d.", i), fmt.Sprintf("%s%d.", a.prefix, i))...)
	}
	for i := range c.Ahead {
		if KeepsAhead(c.Arch) {
			list = append(list, c.AheadParts(i, c.AheadNames(i))...)
		}
	}
	return list
}

// layerParts lists the tensors of a layer, with the given prefixes of names in GGUF files and in folders.
func (c *Config) layerParts(a *architecture, layer int, prefix, folder string) (list []Part) {
	for _, p := range a.layer {
		if c.hasPart(p, layer) {
			list = append(list, c.part(a, p, layer, prefix, folder))
		}
	}
	return list
}

// layout returns the architecture with the names that the configuration's folder uses.
func (c *Config) layout() *architecture {
	if a := byModelType(c.Folder); a != nil {
		return a
	}
	return c.arch()
}

// hasPart reports whether a layer has a part of the architecture.
func (c *Config) hasPart(p part, layer int) bool { return p.when == nil || p.when(c, layer) }

func (c *Config) part(a *architecture, p part, layer int, prefix, folder string) Part {
	x := Part{Name: prefix + p.name, Folder: folder + p.folder, Rows: c.size(p.out, layer), Cols: c.size(p.in, layer),
		Half: p.half, Param: p.param, Ending: p.weightEnding(), Bare: p.bare, Conv: p.conv, Row: p.row, Flat: p.flat,
		Turned: p.turned, Decay: p.decay, Short: p.short, Sides: p.sides, Optional: c.Spare(prefix + p.name + ".")}
	if p.apart != "" {
		x.Apart = folder + p.apart
	}
	if p.dims != nil {
		x.Dims = p.dims(x.Rows, x.Cols)
	}
	if p.mixed != 0 {
		x.Half = p.mixed
		x.Mixed = c.mixed()
	}
	if p.each {
		x.Experts = c.Experts
	}
	if p.streams {
		x.Experts = c.Streams - 1
	}
	if p.split {
		x.Experts, x.Split = c.Heads, c.Latent.PlainDim+c.Latent.ValueDim
	}
	if c.Scales != nil {
		x.Factors = c.factors(p.name)
		if p.name == "output" && c.Scales.tied {
			x.Folder = a.find("token_embd").folder
		}
	}
	switch {
	case p.heads && a.neighbours && !a.interleaved:
		x.ToGGUF, x.ToFolder = Pairs(c.HeadDim), Halves(c.HeadDim)
	case p.fused:
		x.ToGGUF, x.ToFolder = c.unfuse, c.fuse
	case p.tiled && p.in == deltaValues:
		x.ColsToGGUF, x.ColsToFolder = c.Delta.tiles(p.in)
	case p.tiled:
		x.ToGGUF, x.ToFolder = c.Delta.tiles(p.out)
	case x.Cols == 0 && a.shifted && !p.plain:
		x.Shift = 1
	}
	return x
}

// Pairs returns a function from row i of heads in neighbouring pairs, (2i, 2i+1), as in GGUF files of the llama
// family, to the row of heads in halves, whose rotated pairs are (i, i+d/2); Halves returns its inverse.
func Pairs(d int) func(int) int {
	return func(i int) int { return i/d*d + i%d%2*(d/2) + i%d/2 }
}

func Halves(d int) func(int) int {
	return func(i int) int { return i/d*d + i%d%(d/2)*2 + i%d/(d/2) }
}

// unfuse returns the row of heads, each with its query, key and value, that is row i of all
// queries, all keys, all values.
func (c *Config) unfuse(i int) int {
	d := c.HeadDim
	part, head := i/(c.Heads*d), i/d%c.Heads
	return (3*head+part)*d + i%d
}

// fuse is the inverse of unfuse.
func (c *Config) fuse(i int) int {
	d := c.HeadDim
	head, part := i/(3*d), i/d%3
	return (part*c.Heads+head)*d + i%d
}

// has reports whether a layer of the architecture has a part.
func (a *architecture) has(name string) bool { return a.find(name) != nil }

// weightEnding is the ending of the part's tensor of weights in GGUF files.
func (p *part) weightEnding() string {
	if p.whole {
		return ""
	}
	return cmp.Or(p.ending, ".weight")
}

// is reports whether GGUF files call the part name, given the ending.
func (p *part) is(name, ending string) bool {
	return p.name == name && (ending == p.weightEnding() || p.ending == "" && !p.bare && ending == ".bias")
}

// splitName splits a tensor's name in a GGUF file into the name of its part and the ending.
func splitName(name string) (stem, ending string) {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return name, ""
	}
	return name[:dot], name[dot:]
}

// findTensor returns the part to which a tensor belongs, of those that a layer has, or nil.
func (a *architecture) findTensor(name, ending string, has func(part) bool) *part {
	for _, list := range [][]part{a.top, a.layer} {
		for i := range list {
			if list[i].is(name, ending) && has(list[i]) {
				return &list[i]
			}
		}
	}
	return nil
}

// named returns the name of the part outside layers that has the given role in most architectures.
func (a *architecture) named(role string) string {
	i := slices.IndexFunc(a.top, func(p part) bool { return cmp.Or(p.as, p.name) == role })
	return a.top[i].name
}

// find returns the part called name, or nil.
func (a *architecture) find(name string) *part {
	for _, list := range [][]part{a.top, a.layer} {
		for i := range list {
			if list[i].name == name {
				return &list[i]
			}
		}
	}
	return nil
}
