// The Hugging Face form: config.json and safetensors, as JetSpec's and DFlash's heads are published
// (reference jetspec.md §1.8, §1.9), and as vLLM's speculators describe DFlash's.

package jet

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/tensor"
)

// folderArch is what config.json calls a block head, JetSpec's and DFlash's alike.
const folderArch = "DFlashDraftModel"

// folderConfig is what config.json says of a head beyond its layers. Pointers tell a missing field from a zero.
type folderConfig struct {
	Architectures []string `json:"architectures"`
	BlockSize     int      `json:"block_size"`
	TargetLayers  int      `json:"num_target_layers"`
	DraftLayers   int      `json:"num_hidden_layers"`
	HiddenSize    int      `json:"hidden_size"`
	VocabSize     int      `json:"vocab_size"`
	DraftVocab    *int     `json:"draft_vocab_size"`
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
	} `json:"dflash_config"`

	speculator
}

// speculator is what vLLM's speculators say in place of dflash_config.
type speculator struct {
	Type       string   `json:"speculators_model_type"`
	Mask       *int32   `json:"mask_token_id"`
	Inputs     []int    `json:"aux_hidden_state_layer_ids"` // of layers whose input is read, so taps
	LayerTypes []string `json:"layer_types"`
	Projector  string   `json:"projector_type"`
	Anchor     bool     `json:"sample_from_anchor"`
	Shift      bool     `json:"shift_label"`
}

// shifted ends what is said of heads that draft one place later.
const shifted = "heads whose rows predict the token after their own are not supported"

// Check refuses heads that are not of this kind, before fields that they may not have are missed.
func (f *folderConfig) Check() error {
	switch d := f.DFlash; {
	case f.Type != "" && f.Type != "dflash":
		return fmt.Errorf("%w: speculators_model_type is %q: want dflash", ErrKind, f.Type)
	case f.Type == "" && (len(f.Architectures) == 0 || f.Architectures[0] != folderArch):
		return fmt.Errorf("%w: architectures is %q: want %s", ErrKind, f.Architectures, folderArch)
	case f.TargetHidden != nil && *f.TargetHidden != f.HiddenSize:
		return fmt.Errorf("field \"target_hidden_size\" is %d and hidden_size %d: "+
			"heads narrower or wider than their target are not supported", *f.TargetHidden, f.HiddenSize)
	case f.DraftVocab != nil && *f.DraftVocab != f.VocabSize:
		return fmt.Errorf("field \"draft_vocab_size\" is %d and vocab_size %d: "+
			"block heads of a part of the vocabulary are not supported", *f.DraftVocab, f.VocabSize)
	case f.Type != "":
		return f.speculator.check()
	case d == nil:
		return fmt.Errorf("field \"dflash_config\" is missing: the folder is incomplete, or of another kind of head")
	case d.Mask == nil:
		return fmt.Errorf("field \"dflash_config.mask_token_id\" is missing: it says which token stands for those to be drafted")
	case d.TargetHidden != 0 && d.TargetHidden != f.HiddenSize:
		return fmt.Errorf("field \"dflash_config.target_hidden_size\" is %d and hidden_size %d: heads narrower or wider than their target (hidden_dim_adapter) are not supported",
			d.TargetHidden, f.HiddenSize)
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
		return fmt.Errorf("field \"mask_token_id\" is missing: it says which token stands for those to be drafted")
	case len(s.Inputs) == 0:
		return fmt.Errorf("field \"aux_hidden_state_layer_ids\" names no layers: it must say which are tapped")
	case s.Projector != "" && s.Projector != "dflash":
		return fmt.Errorf("field \"projector_type\" is %q: want dflash", s.Projector)
	case s.Anchor:
		return fmt.Errorf("field \"sample_from_anchor\" is true: " + shifted)
	case s.Shift:
		return fmt.Errorf("field \"shift_label\" is true: " + shifted)
	case slices.Contains(s.LayerTypes, "sliding_attention"):
		return fmt.Errorf("field \"layer_types\" has \"sliding_attention\": want full_attention alone")
	}
	return nil
}

// ReadFolder reads the shape of a head from a folder's config.json.
func ReadFolder(dir string) (Config, error) {
	data, err := headfile.ReadFolder(dir)
	if err != nil {
		return Config{}, err
	}
	c, err := parseFolder(data)
	if err != nil {
		err = fmt.Errorf("%s: %w", filepath.Join(dir, "config.json"), err)
	}
	return c, err
}

func parseFolder(data []byte) (Config, error) {
	var f folderConfig
	base, err := model.ParseFolder(data, &f)
	if err != nil {
		return Config{}, err
	}
	c := Config{Config: base, Block: f.BlockSize, TargetLayers: f.TargetLayers}
	if f.Type != "" {
		c.Arch, c.Tied = "qwen3", false // the layers' fields are the target's
		c.Mask, c.Taps, c.Block = *f.Mask, f.Inputs, cmp.Or(c.Block, 8)
		return c, c.Validate()
	}
	d := f.DFlash
	c.Mask, c.Block = *d.Mask, cmp.Or(c.Block, d.BlockSize, 16)
	for _, causal := range []*bool{d.CausalOther, d.Causal} {
		if causal != nil {
			c.Causal = *causal
		}
	}
	ids := d.Layers
	if len(ids) == 0 {
		ids = defaultLayers(f.TargetLayers, f.DraftLayers)
	}
	for _, id := range ids { // numbered from the first block, whose output is tap 1
		c.Taps = append(c.Taps, id+1)
	}
	return c, c.Validate()
}

// defaultLayers are the layers tapped where a folder does not say: as many as the head has layers, from the second of the target to
// its third from last (JetSpec's build_target_layer_ids; it rounds halves to even).
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

// fields is config.json; ReadFolder is its inverse.
func (c *Config) fields(typ tensor.Type) (map[string]any, error) {
	m, err := c.Config.Fields(typ)
	if err != nil {
		return nil, err
	}
	ids := make([]int, len(c.Taps))
	for i, t := range c.Taps {
		if ids[i] = t - 1; t == 0 {
			return nil, fmt.Errorf("the head taps the embedding, which target_layer_ids of a folder cannot name: write GGUF")
		}
	}
	m["architectures"], m["tie_word_embeddings"] = []string{folderArch}, false
	m["block_size"] = c.Block
	m["dflash_config"] = map[string]any{"mask_token_id": c.Mask, "target_layer_ids": ids, "causal_head": c.Causal}
	if c.TargetLayers > 0 {
		m["num_target_layers"] = c.TargetLayers
	}
	return m, nil
}

// folderName is a folder's name of a tensor.
func folderName(name string) string {
	hf, _ := model.HFName(model.BlockHead, name)
	return hf
}

// Folder is what a folder holds whose matrices are to be of type typ: config.json, and the tensors.
func (c *Config) Folder(weights []tensor.Tensor, typ tensor.Type) (fields map[string]any, list []headfile.Out, err error) {
	if err := c.check(weights); err != nil {
		return nil, nil, err
	}
	for _, w := range weights {
		w.Name = folderName(w.Name)
		list = append(list, headfile.Out{Tensor: w})
	}
	fields, err = c.fields(typ)
	return fields, list, err
}

// WriteFolder writes a head that has the weights, by GGUF name, as a folder: config.json and model.safetensors in F32.
func WriteFolder(dir string, c *Config, weights []tensor.Tensor) error {
	fields, list, err := c.Folder(weights, tensor.F32)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return headfile.WriteFolder(dir, fields, list)
}
