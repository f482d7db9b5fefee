// Heads in files: GGUF modelled on llama.cpp's eagle3, and the Hugging Face folders of vLLM's
// speculators and of vLLM itself. Folders may or may not describe the layer separately, and name
// the mask token in several ways.

package peagle

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// arch is the architecture of GGUF files.
const arch = "peagle"

// Names of the drafters.
const (
	pEagle       = "peagle"
	parallelSpec = "parallelspec"
)

var kind = headfile.Kind{
	Name: "P-EAGLE head", Drafters: []string{pEagle, parallelSpec}, Archs: []string{arch},
	New: func() headfile.Shape { return new(Config) }, Pairs: true, Output: true, SpeculatorsEmbedding: true,
	Speculators: []string{"peagle"},
	Published:   published,
	Examples: []string{
		"peagle:width=4", "peagle:tree=chain,depth=1", "parallelspec", "parallelspec:tree=accum-logp,width=3",
	},
}

func init() { headfile.Register(&kind) }

// published returns the shapes of published heads; see headfile.Kind.Published.
func published(t *model.Config) []headfile.Published {
	c := Config{Config: eagle.Config{Base: headfile.Base{Config: headfile.PublishedLayers(t, "llama", 2),
		DraftVocab: min(headfile.DraftVocab, t.Vocab)}, Version: 3}, Depths: 8}
	return []headfile.Published{{Drafter: pEagle, About: "2 layers, 8 depths, 32,000 tokens", Shape: &c}}
}

// Kind returns the kind of P-EAGLE heads.
func (*Config) Kind() *headfile.Kind { return &kind }

// Open loads a head for a target, whose tensors it uses where it has none of its own.
var Open = headfile.Opener(&kind, NewNetwork)

// FileArch returns the architecture that a GGUF file names.
func (*Config) FileArch() string { return arch }

// Keys visits the keys of a GGUF file.
func (c *Config) Keys(k *headfile.Keys) {
	c.Config.Keys(k)
	k.Int(".depths", &c.Depths)
	mask := int(c.Mask)
	k.Int("tokenizer.ggml.mask_token_id", &mask)
	c.Mask = int32(mask)
	own := c.Masks > 0
	k.Flag(".mask_embeddings", &own, false)
	c.Masks = 0
	if own {
		c.Masks = c.Depths - 1
	}
}

// Foreign says why llama.cpp does not run the head.
func (*Config) Foreign() string { return "llama.cpp has no P-EAGLE" }

// usualDepths is the depth of a folder that does not say how many tokens a pass drafts.
const usualDepths = 8

// folderConfig is what config.json says of the blocks.
type folderConfig struct {
	Type   string `json:"speculators_model_type"`
	DFlash struct {
		Mask *int32 `json:"mask_token_id"`
	} `json:"dflash_config"`
	Mask        *int32 `json:"mask_token_id"`
	PARD        *int32 `json:"pard_token"`
	PTD         *int32 `json:"ptd_token_id"`
	Speculators struct {
		Proposals []struct {
			Tokens int `json:"speculative_tokens"`
		} `json:"proposal_methods"`
	} `json:"speculators_config"`
}

// ReadFolder reads the shape from config.json of an open folder.
func (c *Config) ReadFolder(x *headfile.File) (layout string, err error) {
	var f folderConfig
	if err := json.Unmarshal(x.JSON, &f); err != nil {
		return "", err
	}
	if f.Type != kind.Speculators[0] && !x.Has(maskHidden) {
		return "", kind.Refuse("the folder has no tensor %s as such heads have", maskHidden)
	}
	if layout, err = c.ReadFolderAs(x, kind.Speculators...); err != nil {
		return "", err
	}
	mask := cmp.Or(f.DFlash.Mask, f.Mask, f.PARD, f.PTD)
	if mask == nil {
		return "", fmt.Errorf("field \"mask_token_id\" is missing: it names the token that stands for those to be drafted")
	}
	c.Mask, c.Depths = *mask, usualDepths
	if p := f.Speculators.Proposals; len(p) > 0 {
		c.Depths = max(p[0].Tokens, 2)
	}
	return layout, nil
}

// Place returns where a folder keeps a tensor.
func (c *Config) Place(name, layout string) headfile.Place {
	if name == maskHidden+".weight" {
		return headfile.Place{Name: maskHidden, Ones: 1}
	}
	return c.Config.Place(name, layout)
}

// Folders reports which folders can be written: vLLM's speculators, for heads whose mask rows have
// no embeddings of their own.
func (c *Config) Folders() (authors, speculators bool) { return false, c.Masks == 0 }

// VLLM implements headfile.VLLM. vLLM ignores the norms of EAGLE-3.1 in such heads.
func (c *Config) VLLM() (method string, tokens, most int) {
	if method, _, _ := c.Config.VLLM(); method == "" || c.Masks > 0 || c.FCNorm || c.NormOutput {
		return "", 0, 0
	}
	return "eagle3", min(c.Depths, 5), c.Depths
}

// Parallel implements headfile.Parallel.
func (*Config) Parallel() bool { return true }

// FolderFields returns the fields of config.json.
func (c *Config) FolderFields(m map[string]any, typ tensor.Type, weights []tensor.Tensor,
	target *model.Config) (_ map[string]any, layout string, err error) {
	if target == nil {
		return nil, "", fmt.Errorf("a folder of a %s is vLLM's speculators', which name its target: "+
			"say which (--speculators --target FILE)", kind.Name)
	}
	if m, layout, err = c.Config.FolderFields(m, typ, weights, target); err != nil {
		return nil, "", err
	}
	m["architectures"] = []string{"PEagleSpeculator"}
	m["speculators_model_type"] = "peagle"
	m["mask_token_id"] = c.Mask
	s := m["speculators_config"].(map[string]any)
	s["algorithm"] = "peagle"
	s["proposal_methods"].([]any)[0].(map[string]any)["speculative_tokens"] = c.Depths
	return m, layout, nil
}
