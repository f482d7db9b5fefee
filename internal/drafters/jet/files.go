// Heads in files: GGUF in the format of llama.cpp's dflash, and Hugging Face folders as JetSpec's and
// DFlash's heads are published, and as vLLM's speculators describe DFlash's.

package jet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// arch is the architecture of GGUF files.
const arch = "dflash"

var kind = headfile.Kind{
	Name: "block head", Drafters: []string{"jetspec", "dflash"}, Archs: []string{arch},
	New:         func() headfile.Shape { return new(Config) },
	Speculators: []string{"dflash"},
	Foreign: []headfile.Foreign{
		{Name: "a causal block head of vLLM's speculators", Types: []string{"jetspec"}},
	},
	Published: published,
	Examples: []string{
		"jetspec:width=4,depth=1", "ddtree:width=4", "dflash", "jetspec:tree=hybrid,lambda=2",
		"ddtree:tree=entropy,width=4",
		"jetspec:tree=ddtree,width=8", "jetspec:tree=chain",
	},
}

func init() { headfile.Register(&kind) }

// published: see headfile.Kind.
func published(t *model.Config) []headfile.Published {
	c := Config{Base: headfile.Base{Config: headfile.PublishedLayers(t, "qwen3", 5)}, Block: 16}
	causal := c
	causal.Causal = true
	return []headfile.Published{
		{Drafter: "ddtree", About: "DFlash: 5 layers, blocks of 16", Shape: &c},
		{Drafter: "jetspec", About: "5 layers, blocks of 16", Shape: &causal},
	}
}

// Kind returns the kind of block heads.
func (*Config) Kind() *headfile.Kind { return &kind }

// Open loads a head for a target, whose embedding and output head it uses unless it has its own.
var Open = headfile.Opener(&kind, NewNetwork)

// FileArch returns the architecture that a GGUF file names.
func (*Config) FileArch() string { return arch }

// Keys goes through the keys of a GGUF file. llama.cpp reads all except the causal one, which is its
// generic key for the mask of attention: it runs every head as if it looked both ways.
func (c *Config) Keys(k *headfile.Keys) {
	k.Int(".block_size", &c.Block, 16)
	k.Taps(&c.Base)
	k.Bool(".attention.causal", &c.Causal, false)
	mask := int(c.Mask)
	k.Int("tokenizer.ggml.mask_token_id", &mask)
	c.Mask = int32(mask)
	k.Windows(&c.Config)
	if !k.Reading() || c.Window > 0 { // as in the heads that llama.cpp converts, where the key is missing
		k.Bool(".attention.causal_windows", &c.WindowCausal, true)
	}
}

// folderArch is the name of a block head in config.json, for both JetSpec's and DFlash's.
const folderArch = "DFlashDraftModel"

// folderConfig has the fields of config.json other than the layers'. Pointers distinguish a missing
// field from a zero.
type folderConfig struct {
	Architectures []string `json:"architectures"`
	BlockSize     int      `json:"block_size"`
	TargetLayers  int      `json:"num_target_layers"`
	DraftLayers   int      `json:"num_hidden_layers"`
	HiddenSize    int      `json:"hidden_size"`
	VocabSize     int      `json:"vocab_size"`
	DraftVocab    *int     `json:"draft_vocab_size"`
	IsCausal      *bool    `json:"is_causal"`
	TargetHidden  *int     `json:"target_hidden_size"`
	DFlash        *struct {
		Mask         *int32 `json:"mask_token_id"`
		Layers       []int  `json:"target_layer_ids"`
		Causal       *bool  `json:"causal_head"`
		CausalOther  *bool  `json:"causal"` // as vLLM reads it
		BlockSize    int    `json:"block_size"`
		TargetHidden int    `json:"target_hidden_size"`
		Shift        bool   `json:"draft_shift"`
		Projector    string `json:"projector_type"`

		// Not supported by grove.
		Window     bool     `json:"use_swa"`
		Sinks      bool     `json:"attention_sink_bias"`
		ValueScale *float64 `json:"attention_value_scale"`
		Neox       *bool    `json:"is_neox_style"`
	} `json:"dflash_config"`

	EmbedScale *float64 `json:"input_embedding_scale"`
	Multiplier *float64 `json:"output_multiplier"`
	Cap        *float64 `json:"final_logit_softcapping"`

	speculator
}

// speculator has the fields that vLLM's speculators have in place of dflash_config.
type speculator struct {
	Type      string `json:"speculators_model_type"`
	Mask      *int32 `json:"mask_token_id"`
	Inputs    []int  `json:"aux_hidden_state_layer_ids"` // of layers whose input is read, so taps
	Projector string `json:"projector_type"`
	NonCausal bool   `json:"sliding_window_non_causal"`
	Anchor    bool   `json:"sample_from_anchor"`
	Shift     bool   `json:"shift_label"`
}

// shifted ends the error for heads that draft one place later.
const shifted = "heads whose rows predict the token after their own are not supported"

// Check refuses heads of other kinds, before fields that those need not have are reported as missing.
func (f *folderConfig) Check() error {
	switch d := f.DFlash; {
	case f.Type != "" && f.Type != "dflash":
		return kind.Refuse("speculators_model_type is %q: want dflash", f.Type)
	case f.Type == "" && (len(f.Architectures) == 0 || f.Architectures[0] != folderArch):
		return kind.Refuse("architectures is %q: want %s", f.Architectures, folderArch)
	case f.TargetHidden != nil && *f.TargetHidden != f.HiddenSize:
		return fmt.Errorf("field \"target_hidden_size\" is %d and hidden_size %d: "+
			"heads narrower or wider than their target are not supported", *f.TargetHidden, f.HiddenSize)
	case f.DraftVocab != nil && *f.DraftVocab < 1:
		return fmt.Errorf("field \"draft_vocab_size\" is %d: want a positive number", *f.DraftVocab)
	case f.EmbedScale != nil && *f.EmbedScale != 1:
		return fmt.Errorf("field \"input_embedding_scale\" is %g: embeddings that are scaled are not supported", *f.EmbedScale)
	case f.Multiplier != nil && *f.Multiplier != 1:
		return fmt.Errorf("field \"output_multiplier\" is %g: logits that are scaled are not supported", *f.Multiplier)
	case f.Cap != nil && *f.Cap != 0:
		return fmt.Errorf("field \"final_logit_softcapping\" is %g: logits with a soft cap are not supported", *f.Cap)
	case f.Type != "":
		return f.speculator.check()
	case d == nil:
		return fmt.Errorf("field \"dflash_config\" is missing: the folder is incomplete, or of another kind of head")
	case d.Mask == nil:
		return fmt.Errorf("field \"dflash_config.mask_token_id\" is missing: it names the token that stands for those to be drafted")
	case d.TargetHidden != 0 && d.TargetHidden != f.HiddenSize:
		return fmt.Errorf("field \"dflash_config.target_hidden_size\" is %d and hidden_size %d: heads narrower or wider than their target (hidden_dim_adapter) are not supported",
			d.TargetHidden, f.HiddenSize)
	case d.Window:
		return fmt.Errorf("field \"dflash_config.use_swa\" is true: want windows by \"layer_types\" and \"sliding_window\"")
	case d.Sinks:
		return fmt.Errorf("field \"dflash_config.attention_sink_bias\" is true: attention with sinks is not supported in a head")
	case d.ValueScale != nil && *d.ValueScale != 1:
		return fmt.Errorf("field \"dflash_config.attention_value_scale\" is %g: values that are scaled are not supported", *d.ValueScale)
	case d.Neox != nil && !*d.Neox:
		return fmt.Errorf("field \"dflash_config.is_neox_style\" is false: rotation of neighbours is not supported in a block head")
	case d.Shift:
		return fmt.Errorf("field \"dflash_config.draft_shift\" is true: " + shifted)
	case d.Projector != "" && d.Projector != "dflash":
		return fmt.Errorf("field \"dflash_config.projector_type\" is %q: want dflash", d.Projector)
	case len(d.Layers) == 0 && f.TargetLayers == 0:
		return fmt.Errorf("fields \"dflash_config.target_layer_ids\" and \"num_target_layers\" are missing: one must say which layers are tapped")
	case f.BlockSize != 0 && d.BlockSize != 0 && f.BlockSize != d.BlockSize:
		return fmt.Errorf("fields \"block_size\" and \"dflash_config.block_size\" are %d and %d: leave one of them out",
			f.BlockSize, d.BlockSize)
	}
	return nil
}

func (s *speculator) check() error {
	switch {
	case s.Mask == nil:
		return fmt.Errorf("field \"mask_token_id\" is missing: it names the token that stands for those to be drafted")
	case len(s.Inputs) == 0:
		return fmt.Errorf("field \"aux_hidden_state_layer_ids\" names no layers: it must say which are tapped")
	case s.Projector != "" && s.Projector != "dflash":
		return fmt.Errorf("field \"projector_type\" is %q: want dflash", s.Projector)
	case s.Anchor:
		return fmt.Errorf("field \"sample_from_anchor\" is true: " + shifted)
	case s.Shift:
		return fmt.Errorf("field \"shift_label\" is true: " + shifted)
	}
	return nil
}

// ReadFolder reads the shape from config.json of an open folder.
func (c *Config) ReadFolder(x *headfile.File) (layout string, err error) {
	var f folderConfig
	if json.Unmarshal(x.JSON, &f) == nil { // otherwise ParseFolder says what is wrong
		if err := f.Check(); err != nil { // a model's windows do not concern a head's reader
			return "", err
		}
	}
	layers, window, windowed, err := cutWindows(x.JSON)
	if err != nil {
		return "", err
	}
	base, err := model.ParseFolder(layers, &f)
	if err != nil {
		return "", err
	}
	*c = Config{Base: headfile.Base{Config: base, TargetLayers: f.TargetLayers}, Block: f.BlockSize}
	c.Tied = false
	if window > 0 && len(windowed) != c.Layers {
		return "", fmt.Errorf("field \"layer_types\" lists %d layers: want %d", len(windowed), c.Layers)
	}
	c.Window, c.Windowed = window, windowed
	if f.DraftVocab != nil && *f.DraftVocab != c.Vocab {
		c.DraftVocab = *f.DraftVocab
	}
	if f.Type != "" {
		c.Arch, c.Folder = "qwen3", "" // the layers' fields are the target's
		c.Mask = *f.Mask
		c.Taps = f.Inputs
		c.Block = cmp.Or(c.Block, 8)
		c.WindowCausal = window > 0 && !f.NonCausal
		return "", nil
	}
	d := f.DFlash
	c.Mask, c.Block = *d.Mask, cmp.Or(c.Block, d.BlockSize, 16)
	c.WindowCausal = window > 0
	for _, causal := range []*bool{d.CausalOther, d.Causal, f.IsCausal} {
		if causal != nil {
			c.Causal = *causal
			c.WindowCausal = window > 0 && *causal
		}
	}
	ids := d.Layers
	if len(ids) == 0 {
		ids = defaultLayers(f.TargetLayers, f.DraftLayers)
	}
	for _, id := range ids { // numbered from the first block, whose output is tap 1
		c.Taps = append(c.Taps, id+1)
	}
	return "", nil
}

// defaultLayers returns the layers tapped if a folder does not say: as many as the head has layers,
// from the target's second to its third from last (JetSpec's build_target_layer_ids, which rounds
// halves to even).
func defaultLayers(target, draft int) []int {
	if draft == 1 {
		return []int{target / 2}
	}
	ids := make([]int, min(draft, headfile.MaxTaps+1))
	for i := range ids {
		ids[i] = int(math.RoundToEven(1 + float64(i)*float64(target-4)/float64(draft-1)))
	}
	return ids
}

// Place returns where a folder has a tensor.
func (*Config) Place(name, _ string) headfile.Place {
	hf, _ := model.HFName(model.Head, name)
	return headfile.Place{Name: hf}
}

// Folders reports which folders can be written. They cannot name the embedding as a tap. vLLM's
// speculators have no causal heads, and vLLM does not mix causal layers with others.
func (c *Config) Folders() (authors, speculators bool) {
	named := !slices.Contains(c.Taps, 0)
	return named && !(c.Causal && c.mixed()), named && !c.Causal && !(c.mixed() && slices.Contains(c.Windowed, false))
}

// VLLM implements headfile.VLLM: it drafts a block without its anchor.
func (c *Config) VLLM() (method string, tokens, most int) { return "dflash", c.Block - 1, c.Block - 1 }

// FolderFields returns the fields of config.json. vLLM and the code of the heads' authors have
// different names for whether a head is causal.
func (c *Config) FolderFields(m map[string]any, typ tensor.Type, _ []tensor.Tensor,
	target *model.Config) (_ map[string]any, layout string, err error) {
	ids := make([]int, len(c.Taps))
	if c.Window > 0 {
		m["use_sliding_window"] = true
		m["sliding_window"] = c.Window
		types := make([]string, c.Layers)
		for i := range types {
			types[i] = map[bool]string{true: "sliding_attention"}[c.Windowed[i]]
			types[i] = cmp.Or(types[i], "full_attention")
		}
		m["layer_types"] = types
	}
	for i, t := range c.Taps {
		ids[i] = t - 1
		if t == 0 {
			return nil, "", fmt.Errorf("the head taps the embedding, which target_layer_ids of a folder cannot name: write GGUF")
		}
	}
	if target == nil {
		m["architectures"] = []string{folderArch}
		m["block_size"] = c.Block
		d := map[string]any{"mask_token_id": c.Mask, "target_layer_ids": ids}
		switch {
		case !c.mixed():
			d["causal_head"] = c.Causal
			d["causal"] = c.Causal
		case c.Causal:
			return nil, "", fmt.Errorf("rows of layers with a window see the whole block, and those of others what is before them, which no folder can say: write GGUF")
		}
		m["dflash_config"] = d
		if c.DraftVocab > 0 {
			m["draft_vocab_size"] = c.DraftVocab
		}
		return m, "", nil
	}
	if m, err = headfile.Speculator("dflash", "DFlashSpeculator", c.Block-1, m, typ, target); err != nil {
		return nil, "", err
	}
	m["block_size"] = c.Block
	m["mask_token_id"] = c.Mask
	m["aux_hidden_state_layer_ids"] = c.Taps
	m["draft_vocab_size"], m["sample_from_anchor"] = cmp.Or(c.DraftVocab, c.Vocab), false
	// without it speculators assume false, but vLLM assumes true, and for all layers
	m["sliding_window_non_causal"] = !c.WindowCausal
	return m, "", nil
}
