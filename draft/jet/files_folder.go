// The Hugging Face form: config.json and safetensors, as JetSpec's and DFlash's heads are published (reference jetspec.md §1.8, §1.9).

package jet

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/grovellm/grove/internal/atomicfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/safetensors"
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
	ids := make([]int, min(draft, maxTaps+1))
	for i := range ids {
		ids[i] = int(math.RoundToEven(1 + float64(i)*float64(target-4)/float64(draft-1)))
	}
	return ids
}

// Fields is config.json; ReadFolder is its inverse.
func (c *Config) Fields(typ tensor.Type) (map[string]any, error) {
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

// WriteFolder writes a head that has the weights, by GGUF name, as a folder: config.json and model.safetensors in F32.
func WriteFolder(dir string, c *Config, weights []tensor.Tensor) error {
	if err := c.check(weights); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	fields, err := c.Fields(tensor.F32)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	w := safetensors.NewWriter()
	w.SetMetadata("format", "pt")
	for _, x := range weights {
		name, _ := model.HFName(model.BlockHead, x.Name)
		w.Add(name, tensor.F32, x.Shape, func(out io.Writer) error {
			values, err := x.Float32s()
			if err != nil {
				return err
			}
			x, err := tensor.FromFloat32s(name, tensor.F32, x.Shape, values)
			if err != nil {
				return err
			}
			_, err = out.Write(x.Data)
			return err
		})
	}
	if err := w.WriteFile(filepath.Join(dir, "model.safetensors")); err != nil {
		return err
	}
	return atomicfile.WriteJSON(filepath.Join(dir, "config.json"), fields)
}
