// The Hugging Face form: config.json and safetensors, as JetSpec's and DFlash's heads are published (reference jetspec.md §1.8, §1.9).

package jet

import (
	"fmt"
	"math"
	"path/filepath"

	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/tensor"
)

// folderArch is what config.json calls a block head, JetSpec's and DFlash's alike.
const folderArch = "DFlashDraftModel"

// others are the names of heads that grow from the same root and need layers that are not here.
var others = map[string]string{
	"DFlash2DraftModel": "it has convolutions within the block and selects candidates in pairs",
	"Qwen3DSparkModel":  "it adds to the logits of a row what the token before it says (DSpark)",
}

// folderConfig is what config.json says of a head beyond its layers. Pointers tell a missing field from a zero.
type folderConfig struct {
	Architectures []string `json:"architectures"`
	BlockSize     int      `json:"block_size"`
	TargetLayers  int      `json:"num_target_layers"`
	DraftLayers   int      `json:"num_hidden_layers"`
	HiddenSize    int      `json:"hidden_size"`
	DFlash        *struct {
		Mask         *int32 `json:"mask_token_id"`
		Layers       []int  `json:"target_layer_ids"`
		Causal       *bool  `json:"causal_head"`
		CausalOther  *bool  `json:"causal"` // as vLLM reads it
		TargetHidden int    `json:"target_hidden_size"`
		Shift        bool   `json:"draft_shift"`
	} `json:"dflash_config"`
}

// Check refuses heads that are not of this kind, before fields that they may not have are missed.
func (f *folderConfig) Check() error {
	arch := ""
	if len(f.Architectures) > 0 {
		arch = f.Architectures[0]
	}
	if why, ok := others[arch]; ok {
		return fmt.Errorf("architectures: %s is not a head that grove runs: %s; want a JetSpec or DFlash head (%s)", arch, why, folderArch)
	}
	if arch != folderArch {
		return fmt.Errorf("%w: architectures names %q: want %s", ErrKind, arch, folderArch)
	}
	d := f.DFlash
	switch {
	case d == nil:
		return fmt.Errorf("field \"dflash_config\" is missing: the folder is incomplete, or of another kind of head")
	case d.Mask == nil:
		return fmt.Errorf("field \"dflash_config.mask_token_id\" is missing: it says which token stands for those to be drafted")
	case d.TargetHidden != 0 && d.TargetHidden != f.HiddenSize:
		return fmt.Errorf("field \"dflash_config.target_hidden_size\" is %d and hidden_size %d: heads narrower or wider than their target (hidden_dim_adapter) are not supported",
			d.TargetHidden, f.HiddenSize)
	case d.Shift:
		return fmt.Errorf("field \"dflash_config.draft_shift\" is true: heads whose rows predict the token after their own are not supported")
	case len(d.Layers) == 0 && f.TargetLayers == 0:
		return fmt.Errorf("fields \"dflash_config.target_layer_ids\" and \"num_target_layers\" are missing: one must say which layers are tapped")
	}
	return nil
}

// ReadFolder reads the shape of a head from a folder's config.json.
func ReadFolder(dir string) (Config, error) {
	var f folderConfig
	base, err := model.ReadFolderWith(dir, &f)
	if err != nil {
		return Config{}, err
	}
	d := f.DFlash
	c := Config{Config: base, Block: f.BlockSize, Mask: *d.Mask, TargetLayers: f.TargetLayers}
	if c.Block == 0 {
		c.Block = 16
	}
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
	if err := c.Validate(); err != nil {
		return c, fmt.Errorf("%s: %w", filepath.Join(dir, "config.json"), err)
	}
	return c, nil
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
