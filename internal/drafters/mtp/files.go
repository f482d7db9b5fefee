// Heads in files of their own: GGUF of architecture mtp, which is grove's own, and folders with
// Qwen's or MiMo's names. Folders of vLLM's speculators are read like the target's: see inside.go.

package mtp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// arch is the architecture of GGUF files that have only a head.
const arch = "mtp"

const outputNorm = eagle.NativeNorm + ".weight"

var kind = headfile.Kind{
	Name: "MTP head", Drafters: []string{arch}, Archs: []string{arch},
	New: func() headfile.Shape { return &Config{eagle.Config{Version: eagle.Native}} }, Pairs: true,
	Speculators: []string{"mtp"},
	Published:   published,
	Examples: []string{
		"mtp:k=10,depth=7,n=60", "mtp:tree=best-first,width=6,branch=4,depth=10", "mtp:tree=linear,k=3",
		"mtp:tree=fixed,d=4,b=3", "mtp:tree=dynatree,window=5,n-max=40",
	},
}

func init() { headfile.Register(&kind) }

// published returns the shapes of published heads; see headfile.Kind.Published.
func published(t *model.Config) []headfile.Published {
	if t.Ahead == 0 {
		return nil
	}
	return []headfile.Published{{Drafter: arch, About: "the target's own layer"}}
}

// Kind returns the kind of MTP heads.
func (*Config) Kind() *headfile.Kind { return &kind }

// NewNetwork builds the head that c describes. It uses the target's tensors where the head has none
// of its own. tokens are those of a draft vocabulary; nil means the whole vocabulary.
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

// As returns the shape of a head that is stored as an EAGLE head.
func As(c eagle.Config) headfile.Shape { return &Config{c} }

// Open loads a head for a target.
var Open = headfile.Opener(&kind, NewNetwork)

// FileArch returns the architecture that a GGUF file names.
func (*Config) FileArch() string { return arch }

// Keys visits the keys of a GGUF file.
func (c *Config) Keys(k *headfile.Keys) {
	if k.Reading() {
		c.DraftVocab = c.Vocab
	}
	k.Taps(&c.Base)
	k.Flag(".state_first", &c.StateFirst, false)
}

// Foreign says why llama.cpp does not run the head.
func (*Config) Foreign() string {
	return "llama.cpp runs MTP layers of the models that it knows with one"
}

// besides returns the tensors other than the layer's: their names in folders by their names in GGUF files.
func besides(names model.AheadNames) map[string]string {
	return map[string]string{
		eagle.NativeFuse + ".weight": names.Fuse,
		"blk.0.nextn.enorm.weight":   names.Embedding,
		"blk.0.nextn.hnorm.weight":   names.State,
		eagle.NativeNorm + ".weight": names.Output,
	}
}

// Place returns where a folder of only a head has a tensor. layout is its names' prefix: Qwen's, MiMo's, speculators'.
func (*Config) Place(name, layout string) headfile.Place {
	names := model.MiMoAhead
	if layout == model.QwenAhead.Start {
		names = model.QwenAhead
	}
	if part, ok := besides(names)[name]; ok {
		return headfile.Place{Name: layout + part + ".weight"}
	}
	hf, _ := model.HFName(model.Head, name)
	if layout != model.QwenAhead.Start {
		hf = strings.TrimPrefix(hf, "layers.0.")
	}
	return headfile.Place{Name: layout + hf}
}

// folderConfig is what config.json of a folder of only a head says beyond the head's layer.
type folderConfig struct {
	TargetLayers int  `json:"num_target_layers"`
	DraftVocab   *int `json:"draft_vocab_size"`
}

// ReadFolder reads the shape from config.json of an open folder of only a head.
func (c *Config) ReadFolder(x *headfile.File) (layout string, err error) {
	for _, layout = range []string{model.QwenAhead.Start, model.MiMoAhead.Start} {
		if x.Has(c.Place(eagle.NativeFuse+".weight", layout).Name) {
			break
		}
		layout = ""
	}
	var f folderConfig
	switch {
	case layout == "":
		return "", kind.Refuse("the folder has no tensor mtp.fc.weight or model.mtp_layers.0.input_proj.weight as such heads have")
	case x.Has("model.norm.weight"):
		return "", kind.Refuse("the folder is a model's")
	}
	base, err := x.FolderLayers(c.Place("blk.0.attn_q_norm.weight", layout).Name, &f)
	if err != nil {
		return "", err
	}
	base.Ahead, base.Layers = base.Layers, f.TargetLayers
	*c = behind(base)
	if f.DraftVocab != nil {
		c.DraftVocab = *f.DraftVocab
	}
	c.StateFirst = layout == model.MiMoAhead.Start
	return layout, nil
}

// Folders reports which folders can be written: with Qwen's or MiMo's names, and for speculators only Qwen 3's layers.
func (c *Config) Folders() (authors, speculators bool) {
	return true, c.Arch == "qwen3" && !c.StateFirst && c.DraftVocab == c.Vocab
}

// FolderFields returns the fields of config.json.
func (c *Config) FolderFields(m map[string]any, typ tensor.Type, weights []tensor.Tensor,
	target *model.Config) (map[string]any, string, error) {
	own := func(w tensor.Tensor) bool { return w.Name == "token_embd.weight" || w.Name == "output.weight" }
	switch {
	case model.Alike(c.Arch):
		return nil, "", fmt.Errorf("a folder has a layer of a %s model beside the model alone: convert the model's file", c.Arch)
	case target != nil && slices.ContainsFunc(weights, own):
		return nil, "", fmt.Errorf("vLLM's speculators take the target's embedding and output matrix for an MTP head: this one has its own")
	case target != nil:
		m["num_hidden_layers"], m["model_type"] = target.Layers, "qwen3"
		fields, err := headfile.Speculator("mtp", "MTPDraftModel", 3, m, typ, target)
		if err == nil {
			fields["num_nextn_predict_layers"] = 1
		}
		return fields, model.SpeculatorsAhead.Start, err
	}
	layout, class := model.QwenAhead.Start, "Qwen3NextMTP"
	if c.StateFirst {
		layout, class = model.MiMoAhead.Start, "MiMoMTPModel"
	}
	m["architectures"], m["draft_vocab_size"] = []string{class}, c.DraftVocab
	return m, layout, nil
}
