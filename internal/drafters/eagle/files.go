// Heads in files: GGUF in the format of llama.cpp's eagle3, with grove's own eagle2 modelled on it,
// and the Hugging Face folders of EAGLE's authors and of vLLM's speculators, which describe the
// layer separately.

package eagle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// Architectures of GGUF files.
const (
	arch3 = "eagle3"
	arch2 = "eagle2"
)

var kind = headfile.Kind{
	Name: "EAGLE head", Drafters: []string{"eagle3", "eagle2"}, Archs: []string{arch3, arch2},
	New: func() headfile.Shape { return new(Config) }, Pairs: true, Output: true, SpeculatorsEmbedding: true, Timed: timed,
	Speculators: []string{"eagle", "eagle3"},
	Published:   published,
	Examples: []string{
		"eagle3:k=10,depth=7,n=60", "eagle3:tree=best-first,width=6,branch=4,depth=10",
		"eagle2:tree=best-first,width=3,branch=8,depth=4",
		"eagle3:tree=linear,k=6", "eagle2:tree=fixed,d=4,b=3", "eagle3:tree=dynatree,window=5,n-max=40",
	},
}

func init() { headfile.Register(&kind) }

// published: see headfile.Kind.
func published(t *model.Config) []headfile.Published {
	three := Config{Base: headfile.Base{Config: headfile.PublishedLayers(t, "llama", 1),
		DraftVocab: min(headfile.DraftVocab, t.Vocab)}, Version: 3}
	two := Config{Base: headfile.Base{Config: three.Config, DraftVocab: t.Vocab}, Version: 2}
	return []headfile.Published{
		{Drafter: "eagle3", About: "a layer, 32,000 tokens", Shape: &three},
		{Drafter: "eagle2", About: "a layer", Shape: &two},
	}
}

// Kind returns the kind of EAGLE heads.
func (*Config) Kind() *headfile.Kind { return &kind }

// Open loads a head for a target, whose tensors it uses where it has none of its own.
var Open = headfile.Opener(&kind, NewNetwork)

// FileArch returns the architecture that a GGUF file names.
func (c *Config) FileArch() string {
	if c.Version == 2 {
		return arch2
	}
	return arch3
}

// Keys goes through the keys of a GGUF file. llama.cpp reads all except the last two; it refuses the
// tensors of fc_norm.
func (c *Config) Keys(k *headfile.Keys) {
	if k.Reading() {
		c.DraftVocab, c.Version = c.Vocab, 3
		if k.Arch == arch2 {
			c.Version = 2
		}
	}
	k.Taps(&c.Base)
	target := c.Hidden
	k.Int(".target_hidden_size", &target, c.Hidden)
	if target != c.Hidden {
		k.Fail(fmt.Errorf("key %q is %d and the head's own width %d: heads narrower or wider than their target are not supported",
			k.Arch+".target_hidden_size", target, c.Hidden))
	}
	k.Flag(".norm_before_residual", &c.NormBeforeResidual, c.Version == 3)
	k.Flag(".norm_before_fc", &c.NormBeforeFC, c.Version == 3)
	k.Flag(".fc_norm", &c.FCNorm, false)
	k.Flag(".norm_output", &c.NormOutput, false)
}

// Foreign returns why llama.cpp does not run the head as it is; empty: it does.
func (c *Config) Foreign() string {
	switch {
	case c.Version != 3:
		return "llama.cpp has no EAGLE-2"
	case len(c.Taps) != 3:
		return fmt.Sprintf("llama.cpp wants three tapped layers, the head has %d", len(c.Taps))
	case c.Layers != 1:
		return fmt.Sprintf("llama.cpp wants one layer, the head has %d", c.Layers)
	case c.Arch != "llama":
		return "llama.cpp has no norms of queries and keys there"
	case c.FCNorm || c.NormOutput:
		return "llama.cpp does not normalise each tap (fc_norm) or what goes on (norm_output)"
	}
	return ""
}

// folderConfig has the fields of config.json other than the layer's. Pointers distinguish a missing
// field from a zero.
type folderConfig struct {
	Speculators        string `json:"speculators_model_type"`
	LayerNorms         bool   `json:"layernorms"` // of vLLM's first format
	DraftVocab         *int   `json:"draft_vocab_size"`
	HiddenSize         int    `json:"hidden_size"`
	TargetHidden       *int   `json:"target_hidden_size"`
	TargetLayers       int    `json:"num_target_layers"`
	NormBeforeResidual *bool  `json:"norm_before_residual"`
	NormBeforeFC       *bool  `json:"norm_before_fc"`
	FCNorm             *bool  `json:"fc_norm"`
	NormOutput         bool   `json:"norm_output"`
	Inputs             []int  `json:"eagle_aux_hidden_state_layer_ids"` // of layers whose input is read, so taps
	Eagle              *struct {
		Outputs []int `json:"eagle_aux_hidden_state_layer_ids"` // SGLang's: of layers whose output is read
		Aux     *bool `json:"use_aux_hidden_state"`
	} `json:"eagle_config"`
}

// Check refuses heads of other kinds, before fields that those need not have are reported as missing.
func (f *folderConfig) Check() error {
	switch {
	case f.LayerNorms:
		return fmt.Errorf("field \"layernorms\" is true: " +
			"EAGLE heads with norms of the embedding and before the output are not supported")
	case f.Eagle != nil && f.Eagle.Aux != nil && !*f.Eagle.Aux:
		return fmt.Errorf("field \"eagle_config.use_aux_hidden_state\" is false: " +
			"EAGLE-3 heads that read the last hidden state alone are not supported")
	case f.TargetHidden != nil && *f.TargetHidden != f.HiddenSize:
		return fmt.Errorf("field \"target_hidden_size\" is %d and hidden_size %d: heads narrower or wider than their target are not supported", *f.TargetHidden, f.HiddenSize)
	case f.DraftVocab != nil && *f.DraftVocab < 1:
		return fmt.Errorf("field \"draft_vocab_size\" is %d: want a positive number", *f.DraftVocab)
	}
	return nil
}

// Layouts of folders differ in the name of the first layer: that of EAGLE-3's authors, that of
// EAGLE-2's authors and of vLLM's speculators, and that of vLLM's first format.
const (
	midlayer    = "midlayer."
	layer0      = "layers.0."
	transformer = "transformer."
)

// maskHidden is a tensor that P-EAGLE's heads have in addition to EAGLE-3's (package peagle).
const maskHidden = "mask_hidden"

// ReadFolder reads the shape from config.json of an open folder.
func (c *Config) ReadFolder(x *headfile.File) (layout string, err error) {
	if x.Has(maskHidden) {
		return "", kind.Refuse("there is a tensor %s", maskHidden)
	}
	return c.ReadFolderAs(x, kind.Speculators...)
}

// ReadFolderAs is ReadFolder for heads with further tensors. types are the values that
// speculators_model_type may have.
func (c *Config) ReadFolderAs(x *headfile.File, types ...string) (layout string, err error) {
	first := layer0
	for _, name := range []string{midlayer, transformer} {
		if x.Has(name + "self_attn.q_proj.weight") {
			first = name
		}
	}
	version := 3
	if !x.Has(first + "hidden_norm.weight") {
		version = 2
	}
	fusion, query := c.Place("fc.weight", first).Name, first+"self_attn.q_proj.weight"
	blockHead := version == 2 && first == layer0 && x.Has(first+"input_layernorm.weight")
	if !x.Has(fusion) || !x.Has(query) || blockHead {
		return "", kind.Refuse("the folder has no tensors %s and %s as such heads have", fusion, query)
	}
	var f folderConfig
	base, err := x.FolderLayers(first+"self_attn.q_norm.weight", &f)
	if err != nil {
		return "", err
	}
	if f.Speculators != "" && !slices.Contains(types, f.Speculators) {
		return "", kind.Refuse("speculators_model_type is %q: want %s", f.Speculators, strings.Join(types, " or "))
	}
	*c = Config{Base: headfile.Base{Config: base, DraftVocab: base.Vocab, TargetLayers: f.TargetLayers},
		Version: version}
	if f.DraftVocab != nil {
		c.DraftVocab = *f.DraftVocab
	}
	if version == 2 {
		return first, nil
	}
	c.Taps = headfile.Stated(f.Inputs)
	if c.Taps == nil && f.Eagle != nil {
		for _, id := range f.Eagle.Outputs {
			c.Taps = append(c.Taps, id+1)
		}
	}
	set := func(value *bool, missing bool) bool {
		if value == nil {
			return missing
		}
		return *value
	}
	// The default is that of the code that serves each kind: in vLLM, no norm for P-EAGLE and for the
	// authors' folders.
	c.NormBeforeResidual = set(f.NormBeforeResidual, f.Speculators == kind.Speculators[1])
	c.NormBeforeFC = set(f.NormBeforeFC, x.Has("input_norm.weight"))
	c.FCNorm = set(f.FCNorm, x.Has("fc_norm.0.weight"))
	c.NormOutput = f.NormOutput
	return first, nil
}

// Place returns where a folder has a tensor; layout is the name of its first layer.
func (*Config) Place(name, layout string) headfile.Place {
	if rest, ok := strings.CutPrefix(name, "fc."); ok && layout == transformer {
		return headfile.Place{Name: "fusion_fc." + rest}
	}
	switch name {
	case inputNorm + ".weight":
		return headfile.Place{Name: "input_norm.weight"}
	case featureNorm + ".weight":
		return headfile.Place{Name: layout + "hidden_norm.weight"}
	}
	hf, ok := model.HFName(model.Head, name)
	if !ok {
		return headfile.Place{Name: name} // fc_norm.0
	}
	if rest, ok := strings.CutPrefix(hf, layer0); ok {
		hf = layout + rest
	}
	return headfile.Place{Name: hf}
}

// Folders reports which folders can be written.
func (c *Config) Folders() (authors, speculators bool) { return true, c.Version == 3 }

// VLLM implements headfile.VLLM: only EAGLE-3, and with Llama's layers only three taps.
func (c *Config) VLLM() (method string, tokens, most int) {
	if c.Version != 3 || c.Arch == "llama" && c.Taps != nil && len(c.Taps) != 3 {
		return "", 0, 0
	}
	return "eagle3", 5, 0
}

// FolderFields returns the fields of config.json.
func (c *Config) FolderFields(m map[string]any, typ tensor.Type, weights []tensor.Tensor,
	target *model.Config) (_ map[string]any, layout string, err error) {
	layout = midlayer
	switch {
	case target != nil:
		if m, err = headfile.Speculator("eagle3", "Eagle3Speculator", 5, m, typ, target); err != nil {
			return nil, "", err
		}
		m["embed_requires_grad"] = false
		layout = layer0
	case c.Version == 2:
		m["bias"] = slices.ContainsFunc(weights, func(w tensor.Tensor) bool { return w.Name == "fc.bias" })
		if c.DraftVocab != c.Vocab {
			m["draft_vocab_size"] = c.DraftVocab
		}
		return m, layer0, nil
	default:
		m["architectures"] = []string{"LlamaForCausalLMEagle3"}
	}
	m["draft_vocab_size"] = c.DraftVocab
	m["target_hidden_size"] = c.Hidden
	m["norm_before_residual"], m["norm_before_fc"] = c.NormBeforeResidual, c.NormBeforeFC
	m["fc_norm"], m["norm_output"] = c.FCNorm, c.NormOutput
	if c.Taps == nil { // as in the folder that this one is made from
		return m, layout, nil
	}
	m["eagle_aux_hidden_state_layer_ids"] = c.Taps
	if target == nil && !slices.Contains(c.Taps, 0) {
		outputs := make([]int, len(c.Taps))
		for i, t := range c.Taps {
			outputs[i] = t - 1
		}
		m["eagle_config"] = map[string]any{"eagle_aux_hidden_state_layer_ids": outputs, "use_aux_hidden_state": true}
	}
	return m, layout, nil
}
