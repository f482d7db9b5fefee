// Heads in files: of their own, GGUF of architecture mtp, which is grove's, and folders with Qwen's
// or MiMo's names; and in the files of their targets, GGUF with llama.cpp's nextn tensors or folders.

package mtp

import (
	"fmt"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// arch is the architecture of GGUF files with a head alone.
const arch = "mtp"

var kind = headfile.Kind{
	Name: "MTP head", Drafters: []string{arch}, Archs: []string{arch},
	New: func() headfile.Shape { return &Config{eagle.Config{Version: eagle.Native}} }, Pairs: true,
	Foreign: []headfile.Foreign{{
		Name:  "an MTP head of vLLM's speculators",
		Types: []string{"fast_mtp", "MTPDraftModel", "MTPSpeculator"}, Fields: []string{"mtp_loss_step_weights"},
		Tensors: []string{"mtp_layers."},
	}},
	Examples: []string{
		"mtp:k=10,depth=7,n=60", "mtp:tree=best-first,width=6,branch=4,depth=10", "mtp:tree=linear,k=3",
		"mtp:tree=fixed,d=4,b=3", "mtp:tree=dynatree,window=5,n-max=40",
	},
}

func init() { headfile.Register(&kind) }

// Kind is that of MTP heads.
func (*Config) Kind() *headfile.Kind { return &kind }

// NewNetwork builds the head that c describes, for a target of which it uses what it has not of its
// own. tokens are those of a draft vocabulary, nil where it is the whole one.
func NewNetwork(c Config, w model.Weights, tokens []int32, target *model.Network) (*eagle.Network, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	n, err := eagle.NewNetwork(c.Config, w, tokens, target)
	if err != nil {
		return nil, err
	}
	n.As = As
	return n, nil
}

// As is the shape of a head that is an EAGLE head's.
func As(c eagle.Config) headfile.Shape { return &Config{c} }

// Open loads a head for a target, once for all drafters of the target.
func Open(h registry.Head, target registry.Target) (*eagle.Network, error) {
	build := func(s headfile.Shape, w model.Weights, tokens []int32, m *model.Network) (*eagle.Network, error) {
		return NewNetwork(*s.(*Config), w, tokens, m)
	}
	return headfile.Load(h, &kind, target, build)
}

// FileArch is the architecture that a GGUF file names.
func (*Config) FileArch() string { return arch }

// Keys goes through the keys of a GGUF file.
func (c *Config) Keys(k *headfile.Keys) {
	if k.Reading() {
		c.DraftVocab = c.Vocab
	}
	k.Taps(c.Common())
	k.Flag(".state_first", &c.StateFirst, false)
}

// Foreign says why llama.cpp does not run the head.
func (*Config) Foreign() string {
	return "llama.cpp runs MTP layers of the models that it knows with one"
}

// ReadInside reads the layer behind a target's in a GGUF file. The order of its inputs is MiMo's
// where the layers are Qwen 2's, as MiMo's are, and else Qwen's.
func (c *Config) ReadInside(f *gguf.File) (weights []tensor.Tensor, err error) {
	name, _ := f.String("general.architecture")
	if !model.Runs(name) {
		return nil, kind.Refuse("general.architecture is %q: want a model's", name)
	}
	target, err := model.ReadGGUFKeys(f, name, name)
	switch {
	case err != nil:
		return nil, err
	case target.Ahead == 0:
		return nil, kind.Refuse("the model has no layer behind its own (key %q)", name+".nextn_predict_layers")
	}
	if target.Window > 0 || target.Rope.Yarn != nil || target.Rope.Long != nil {
		return nil, fmt.Errorf("windows, yarn and longrope are not supported in an MTP head")
	}
	from, layers := fmt.Sprintf("blk.%d.", target.Layers), "llama"
	gated := model.Gated(target.Arch)
	for _, info := range f.Tensors {
		part, ok := strings.CutPrefix(info.Name, from)
		if !ok {
			continue
		}
		t, err := f.Load(info.Name)
		if err != nil {
			return nil, err
		}
		t.Name = "blk.0." + part
		switch part {
		case "nextn.embed_tokens.weight":
			t.Name = "token_embd.weight"
		case "nextn.shared_head_head.weight":
			t.Name = "output.weight"
		case "attn_q_norm.weight":
			layers = "qwen3"
		case "ffn_gate_inp_shexp.weight": // a row
			t.Shape = []int{1, t.Elements()}
		}
		weights = append(weights, t)
	}
	if v, ok := f.Lookup("tokenizer.ggml.tokens"); ok && target.Vocab == 0 { // the file has the layer alone
		target.Vocab = v.Len()
	}
	stateFirst := target.Arch == "qwen2"
	if !gated {
		target.Arch = layers
	}
	*c = behind(target)
	c.Taps, c.StateFirst = []int{target.Layers}, stateFirst
	return weights, nil
}

// behind is the shape of the layers behind a model's, whose kind is m's.
func behind(m model.Config) Config {
	c := Config{eagle.Config{Config: m, Version: eagle.Native, DraftVocab: m.Vocab, TargetLayers: m.Layers}}
	c.Layers = m.Ahead
	c.Recurrent, c.Delta = nil, model.DeltaConfig{}
	c.Ahead = 0
	c.Tied = false
	return c
}

// Beginnings of the names in folders: Qwen's, MiMo's.
var qwen, mimo = model.AheadFolders[0], model.AheadFolders[1] + "0."

// names are those of the tensors beside the layer, in Qwen's folders and in MiMo's.
var names = map[string][2]string{
	"blk.0.nextn.eh_proj.weight":          {"fc.weight", "input_proj.weight"},
	"blk.0.nextn.enorm.weight":            {"pre_fc_norm_embedding.weight", "token_layernorm.weight"},
	"blk.0.nextn.hnorm.weight":            {"pre_fc_norm_hidden.weight", "hidden_layernorm.weight"},
	"blk.0.nextn.shared_head_norm.weight": {"norm.weight", "final_layernorm.weight"},
}

// Place is where a folder has a tensor; layout is how its names begin.
func (c *Config) Place(name, layout string) headfile.Place {
	of, ok := names[name]
	switch {
	case ok && layout == mimo:
		return headfile.Place{Name: layout + of[1]}
	case ok:
		p := headfile.Place{Name: layout + of[0]}
		if model.Gated(c.Arch) && !strings.HasSuffix(name, "eh_proj.weight") {
			p.Shift = 1 // norms
		}
		return p
	}
	hf, _ := model.HFName(model.Head, name)
	if layout == mimo {
		hf = strings.TrimPrefix(hf, "layers.0.")
	}
	return headfile.Place{Name: layout + hf}
}

// folderConfig is what config.json of a head alone says beyond its layer.
type folderConfig struct {
	TargetLayers int  `json:"num_target_layers"`
	DraftVocab   *int `json:"draft_vocab_size"`
}

// ReadFolder reads the shape from config.json of an open folder, of a head or of a target.
func (c *Config) ReadFolder(x *headfile.File) (layout string, err error) {
	for _, layout = range []string{qwen, mimo} {
		if x.Has(c.Place(eagle.NativeFuse+".weight", layout).Name) {
			break
		}
		layout = ""
	}
	var f folderConfig
	switch {
	case layout == "":
		return "", kind.Refuse("the folder has no tensor mtp.fc.weight or model.mtp_layers.0.input_proj.weight as such heads have")
	case !x.Inside && x.Has("model.norm.weight"):
		return "", kind.Refuse("the folder is a model's")
	case x.Inside:
		x.Only = strings.TrimSuffix(layout, "0.")
	}
	norm := c.Place("blk.0.attn_q_norm.weight", layout).Name
	base, err := x.FolderLayers(norm, &f)
	if err != nil {
		return "", err
	}
	if model.Gated(base.Arch) {
		base.Ahead = max(base.Ahead, 1)
	}
	if !x.Inside {
		base.Ahead, base.Layers = base.Layers, f.TargetLayers
	}
	*c = behind(base)
	if f.DraftVocab != nil {
		c.DraftVocab = *f.DraftVocab
	}
	c.StateFirst = layout == mimo
	return layout, nil
}

// Folders says which folders can be written: with Qwen's names, or MiMo's.
func (*Config) Folders() (authors, speculators bool) { return true, false }

// FolderFields is config.json.
func (c *Config) FolderFields(m map[string]any, _ tensor.Type, _ []tensor.Tensor, _ *model.Config) (map[string]any, string, error) {
	layout, class := qwen, "Qwen3NextMTP"
	if c.StateFirst {
		layout, class = mimo, "MiMoMTPModel"
	}
	m["architectures"], m["draft_vocab_size"] = []string{class}, c.DraftVocab
	return m, layout, nil
}
