// Layers in a model's files that are not part of the model: Config.Ahead.

package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/safetensors"
)

// aheadKey is the key of the number of these layers, which block_count includes.
const aheadKey = "nextn_predict_layers"

// AheadNames is how a folder names the tensors of a layer that follows the model's.
type AheadNames struct {
	Start string // of all names
	layer string // the text before the name of a layer's part

	// The layer's further tensors: a product of the embedding and the state, the norms of both, and that of the result.
	Fuse, Embedding, State, Output string

	// Copies of the model's embedding and output matrix, which folders may have. "": there are none.
	Embed, Head string

	ffnNorm string // the name of the MLP's norm; "": the model's

	// Unnormed says that the layer reads states before the last norm, the model's and its own.
	Unnormed bool
}

// The names of Qwen 3.5 and Qwen 3 Next, of MiMo, and of vLLM's speculators, whose folders hold only the layer.
var (
	QwenAhead = AheadNames{Start: "mtp.", layer: "layers.0.",
		Fuse: "fc", Embedding: "pre_fc_norm_embedding", State: "pre_fc_norm_hidden", Output: "norm"}
	MiMoAhead = AheadNames{Start: "model.mtp_layers.0.",
		Fuse: "input_proj", Embedding: "token_layernorm", State: "hidden_layernorm", Output: "final_layernorm"}
	SpeculatorsAhead = AheadNames{Start: "mtp_layers.0.", Fuse: MiMoAhead.Fuse, Embedding: MiMoAhead.Embedding,
		State: MiMoAhead.State, Output: MiMoAhead.Output}
)

// nemotronAhead is the names of Nemotron 3, where two layers of its kind count as one.
var nemotronAhead = AheadNames{Start: "mtp.", layer: "layers.0.", Fuse: "layers.0.eh_proj", Embedding: "layers.0.enorm",
	State: "layers.0.hnorm", Output: "layers.1.final_layernorm"}

// onlyAhead gives names to a single layer.
func onlyAhead(names AheadNames) func(*Config, int) AheadNames {
	return func(_ *Config, i int) AheadNames {
		if i > 0 {
			return AheadNames{}
		}
		return names
	}
}

// numberedAhead returns the names of DeepSeek and GLM, whose layers are numbered on from the model's.
func numberedAhead(c *Config, i int) AheadNames {
	return AheadNames{Start: fmt.Sprintf("%s%d.", layersPrefix, c.Layers+i), Fuse: "eh_proj", Embedding: "enorm",
		State: "hnorm", Output: "shared_head.norm", Embed: "embed_tokens", Head: "shared_head.head"}
}

// AheadNames returns the names in folders of layer i after the model's, where it is of the model's kind. It has no
// Start if folders cannot have the layer.
func (c *Config) AheadNames(i int) AheadNames {
	if names := c.arch().ahead; names != nil {
		return names(c, i)
	}
	return numberedAhead(c, i)
}

// AheadIn finds the names that a folder has for the first layer after the model's; ok is false if it has none.
func (c *Config) AheadIn(f *safetensors.File) (_ AheadNames, ok bool) {
	for _, names := range []AheadNames{QwenAhead, MiMoAhead, SpeculatorsAhead, c.AheadNames(0)} {
		if _, ok := f.Tensor(names.Start + names.Fuse + ".weight"); ok {
			return names, true
		}
	}
	return AheadNames{}, false
}

// AheadParts lists the tensors of layer i after the model's, with a folder's names.
func (c *Config) AheadParts(i int, names AheadNames) []Part {
	a := c.layout()
	prefix := fmt.Sprintf("blk.%d.", c.Layers+i)
	behind := c.Behind()
	list := behind.layerParts(a, 0, prefix, names.Start+names.layer)
	if a.aheadTwo {
		list = append(list, behind.layerParts(a, 1, fmt.Sprintf("blk.%d.", c.Layers+i+1), names.Start+"layers.1.")...)
	}
	output := "nextn.shared_head_norm"
	if names.ffnNorm != "" { // MiMo-V2: llama.cpp's converter does not take its last norm for one of these layers
		output = AheadOutput
		norm := slices.IndexFunc(list, func(p Part) bool { return p.Name == prefix+"ffn_norm" })
		list[norm].Folder = names.Start + names.ffnNorm
	}
	for _, p := range []part{
		{name: "nextn.eh_proj", folder: names.Fuse, out: hidden, in: hidden2},
		{name: "nextn.enorm", folder: names.Embedding, out: hidden},
		{name: "nextn.hnorm", folder: names.State, out: hidden},
		{name: output, folder: names.Output, out: hidden},
	} {
		list = append(list, c.part(a, p, 0, prefix, names.Start))
	}
	for _, p := range []part{
		{name: AheadEmbed, folder: names.Embed, out: vocab, in: hidden},
		{name: AheadHead, folder: names.Head, out: vocab, in: hidden},
	} {
		if p.folder != "" {
			x := c.part(a, p, 0, prefix, names.Start)
			x.Optional = true
			list = append(list, x)
		}
	}
	if names == SpeculatorsAhead {
		for i := range list {
			list[i].fuseExperts()
		}
	}
	return list
}

// fuseExperts turns a part of experts that folders store one by one into the part of a folder that
// has them all in one tensor, gate and up together, as transformers' modules do.
func (p *Part) fuseExperts() {
	start, matrix, each := strings.Cut(p.Folder, "*.")
	if !each {
		return
	}
	p.Apart = p.Folder
	p.Bare = true
	switch matrix {
	case "gate_proj":
		matrix, p.Half = "gate_up_proj", 1
	case "up_proj":
		matrix, p.Half = "gate_up_proj", 2
	}
	p.Folder = start + matrix
}

// The names in GGUF files, within a layer, of the embedding and the output matrix that the layer may have.
const AheadEmbed, AheadHead = "nextn.embed_tokens", "nextn.shared_head_head"

// AheadOutput is the name of the last norm in MiMo-V2's GGUF files.
const AheadOutput = "layer_output_norm"

// AheadAlone reports whether a GGUF file of a model's architecture has only such layers, without
// the model.
func AheadAlone(f *gguf.File) bool {
	arch, _ := gguf.Get[string](f, "general.architecture")
	n, _ := gguf.Get[uint64](f, arch+"."+aheadKey)
	_, attention := f.Tensor("blk.0.attn_output.weight")
	_, recurrent := f.Tensor("blk.0.ssm_out.weight")
	return Runs(arch) && n > 0 && !attention && !recurrent
}

// readLayers reads the numbers of layers. A drafter's head has no further layers.
func (c *Config) readLayers(f *gguf.File, k *keys, model bool) error {
	c.Layers, c.Ahead = k.int("block_count"), k.int(aheadKey, 0)
	name := fmt.Sprintf("blk.%d.nextn.eh_proj.weight", c.Layers-c.Ahead)
	switch _, ok := f.Tensor(name); {
	case c.Ahead == 0:
		return nil
	case !model && c.Ahead == c.Layers && c.Arch == gemma4.name: // its assistants' layers are all of this kind
		c.Ahead = 0
		return nil
	case !model || c.Ahead < 0 || c.Ahead >= c.Layers:
		return fmt.Errorf("key %q is %d of %d layers: want 0 here", k.name(aheadKey), c.Ahead, c.Layers)
	case !ok:
		return fmt.Errorf("key %q is %d, but tensor %s is missing: the file is incomplete", k.name(aheadKey), c.Ahead, name)
	}
	c.Layers -= c.Ahead
	return nil
}

// Alike reports whether the layers after the model's are of its own kind, given the architecture's
// name in GGUF files. Other models have layers of Llama or Qwen 3.
func Alike(arch string) bool { a := archNamed(arch); return a != nil && a.ahead != nil }

// KeepsAhead reports whether GGUF files have these layers too.
func KeepsAhead(arch string) bool { return Alike(arch) && !archNamed(arch).aheadTwo }

// Behind returns the shape of the layers after the model's, where they are of its kind.
func (c *Config) Behind() Config {
	b := *c
	b.Layers = c.Ahead
	b.Dense = 0
	b.Recurrent, b.Delta = nil, DeltaConfig{}
	b.Ahead = 0
	b.Tied = false
	if c.arch().aheadTwo {
		b.Layers = 2 * c.Ahead
		b.Bare, b.Mamba = []bool{false, true}, MambaConfig{}
		b.NoRope = everyNth(b.Layers, 1)
	}
	if change := c.arch().behind; change != nil {
		change(&b)
	}
	return b
}

// DropsAhead reports whether a tensor belongs to a layer after the model's that conversions leave out.
func (c *Config) DropsAhead(name string) bool { return !KeepsAhead(c.Arch) && c.ahead(name) }

// OneAhead reports whether c's layers amount to one layer after a model's.
func (c *Config) OneAhead() bool { return c.Layers == 1 || c.Layers == 2 && c.arch().aheadTwo }

// LayerParts lists the tensors of a head's layers of this kind, with GGUF's names, counting layers from 0.
func (c *Config) LayerParts() (list []Part) {
	for i := range c.Layers {
		list = append(list, c.layerParts(c.layout(), i, fmt.Sprintf("blk.%d.", i), "")...)
	}
	return list
}

// ahead reports whether a tensor of a folder or GGUF file belongs to a layer after the model's.
func (c *Config) ahead(name string) bool {
	if c.Ahead == 0 {
		return false
	}
	if rest, ok := strings.CutPrefix(name, layersPrefix); ok { // GLM numbers them on from the model's
		name = "blk." + rest
	}
	if layer, _ := layerPart(name); layer >= 0 {
		return layer >= c.Layers && layer < c.Layers+c.Ahead
	}
	return strings.HasPrefix(name, QwenAhead.Start) || strings.HasPrefix(name, "model.mtp_layers.") ||
		strings.HasPrefix(name, mimo2Start)
}

// countAhead corrects the number of layers after the model's by the tensors of its folder: config.json of Qwen 3 Next
// and MiMo-V2 does not state it, and for GLM and DeepSeek transformers drops the layers but keeps their number.
func (c *Config) countAhead(f *safetensors.File) {
	if a := c.arch(); a.uncounted {
		for c.Ahead = 0; ; c.Ahead++ {
			names := a.ahead(c, c.Ahead)
			if _, ok := f.Tensor(names.Start + names.Fuse + ".weight"); !ok {
				return
			}
		}
	}
	if !slices.ContainsFunc(f.Tensors, func(t safetensors.Info) bool { return c.ahead(t.Name) }) {
		c.Ahead = 0
	}
}
