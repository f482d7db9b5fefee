// Heads in files: grove's own GGUF format, and the folders of DeepSpec, SpecForge, z-lab and vLLM's speculators.

package spark

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

var kind = headfile.Kind{
	Name: "DSpark, DFlash 2 or Domino head", Drafters: []string{dspark, dflash2, domino},
	Archs:       []string{dspark, dflash2, domino},
	Whole:       []string{dflash2, domino},
	New:         func() headfile.Shape { return new(Config) },
	Speculators: []string{dspark, dflash2},
	Published:   published,
	Examples:    []string{"dspark", "dspark:tree=chain", "dflash2:width=4", "domino", "domino:tree=accum-logp,width=3"},
}

func init() { headfile.Register(&kind) }

// Kind returns the kind of these heads.
func (*Config) Kind() *headfile.Kind { return &kind }

// Open loads a head for a target.
var Open = headfile.Opener(&kind, NewNetwork)

// FileArch returns the architecture that a GGUF file names.
func (c *Config) FileArch() string { return c.Variant }

// Keys visits the keys of a GGUF file.
func (c *Config) Keys(k *headfile.Keys) {
	if k.Reading() {
		c.Variant = k.Arch
	}
	c.Config.Keys(k)
	k.Bool(".block.sample_from_anchor", &c.Anchor, false)
	k.Int(".correction.rank", &c.Rank)
	markov := 0
	for i, name := range []string{vanilla, gated, rnn} {
		if c.Markov == name {
			markov = i
		}
	}
	k.Int(".correction.kind", &markov, 0)
	if k.Reading() && c.Variant == dspark && markov >= 0 && markov < 3 {
		c.Markov = []string{vanilla, gated, rnn}[markov]
	}
	k.Int(".correction.confidence", &c.Confidence, 0)
	k.Int(".correction.kernel", &c.Kernel, 0)
	k.Int(".correction.group", &c.Group, 0)
	k.Int(".correction.top", &c.Top, 0)
	k.Int(".correction.width", &c.Width, 0)
	k.Int(".correction.prefix", &c.Prefix, 0)
}

// Foreign says why llama.cpp does not run the head.
func (*Config) Foreign() string { return "the file is of grove's own" }

// folderConfig is what config.json says of the correction, at its top level or in dflash_config.
type folderConfig struct {
	Architectures []string `json:"architectures"`
	Type          string   `json:"speculators_model_type"`
	Anchor        *bool    `json:"sample_from_anchor"`
	Layers        []int    `json:"target_layer_ids"`
	Mask          *int32   `json:"mask_token_id"`
	correction
	Nested *struct {
		Projector string `json:"projector_type"`
		Anchor    *bool  `json:"sample_from_anchor"`
		correction
	} `json:"dflash_config"`
}

type correction struct {
	Rank       *int    `json:"markov_rank"`
	Markov     *string `json:"markov_head_type"`
	Confidence *bool   `json:"enable_confidence_head"`
	WithMarkov *bool   `json:"confidence_head_with_markov"`
	Kernel     *int    `json:"conv_kernel_size"`
	Group      *int    `json:"conv_group_size"`
	Selector   *int    `json:"selector_rank"`
	Top        *int    `json:"selector_top_k"`
	Embedding  *int    `json:"emb_dim"`
	Width      *int    `json:"gru_hidden_dim"`
	Prefix     *int    `json:"pure_draft_prefix_len"`
	Shift      *bool   `json:"shift_label"`
}

// variantOf returns the kind of head that config.json describes; empty: none.
func (f *folderConfig) variantOf() string {
	name := f.Type
	if len(f.Architectures) > 0 && name == "" {
		name = f.Architectures[0]
	}
	if f.Nested != nil && f.Type == "" && (f.Nested.Projector == domino || f.Nested.Projector == dspark) {
		name = f.Nested.Projector
	}
	return map[string]string{dspark: dspark, "Qwen3DSparkModel": dspark, "DSparkDraftModel": dspark,
		dflash2: dflash2, "DFlash2DraftModel": dflash2, domino: domino, "DominoDraftModel": domino}[name]
}

// ReadFolder reads the shape from config.json of an open folder.
func (c *Config) ReadFolder(x *headfile.File) (layout string, err error) {
	var f folderConfig
	if err := json.Unmarshal(x.JSON, &f); err != nil {
		return "", kind.Refuse("%v", err)
	}
	variant := f.variantOf()
	if variant == "" {
		return "", kind.Refuse("architectures is %q: want Qwen3DSparkModel, DSparkDraftModel, DFlash2DraftModel or DominoDraftModel", f.Architectures)
	}
	like := *x
	if like.JSON, err = asDFlash(x.JSON, &f, variant); err != nil {
		return "", err
	}
	if _, err := c.Config.ReadFolder(&like); err != nil {
		return "", err
	}
	c.Variant = variant
	said := f.correction
	anchor := f.Anchor
	if f.Nested != nil {
		said = f.Nested.correction.or(said)
		anchor = cmp.Or(f.Nested.Anchor, anchor)
	}
	return "", c.read(&said, anchor, x)
}

// or returns what n says, or, where it says nothing, what other says.
func (n correction) or(other correction) correction {
	return correction{
		cmp.Or(n.Rank, other.Rank), cmp.Or(n.Markov, other.Markov), cmp.Or(n.Confidence, other.Confidence),
		cmp.Or(n.WithMarkov, other.WithMarkov), cmp.Or(n.Kernel, other.Kernel), cmp.Or(n.Group, other.Group),
		cmp.Or(n.Selector, other.Selector), cmp.Or(n.Top, other.Top), cmp.Or(n.Embedding, other.Embedding),
		cmp.Or(n.Width, other.Width), cmp.Or(n.Prefix, other.Prefix), cmp.Or(n.Shift, other.Shift),
	}
}

// read reads what the folder says of the correction. Missing values default to those of the kind's own code.
func (c *Config) read(f *correction, anchor *bool, x *headfile.File) error {
	need := func(name string, from *int, to *int) error {
		if from == nil {
			return fmt.Errorf("field %q is missing: it says how wide the head's correction is", name)
		}
		*to = *from
		return nil
	}
	switch c.Variant {
	case dspark:
		c.Anchor = anchor == nil || *anchor
		c.Markov = vanilla
		if f.Markov != nil {
			c.Markov = *f.Markov
		}
		if x.Has("confidence_head.proj.weight") {
			c.Confidence = TokenConfident
			if f.WithMarkov != nil && !*f.WithMarkov {
				c.Confidence = stateConfident
			}
		}
		return need("markov_rank", f.Rank, &c.Rank)
	case dflash2:
		c.Kernel, c.Group = 2, 16
		c.Top, c.Rank = 16, 256
		for from, to := range map[*int]*int{f.Kernel: &c.Kernel, f.Group: &c.Group, f.Top: &c.Top, f.Selector: &c.Rank} {
			if from != nil {
				*to = *from
			}
		}
		c.Anchor = anchor != nil && *anchor
		return nil
	}
	c.Anchor = f.Shift != nil && *f.Shift
	if f.Prefix != nil {
		c.Prefix = *f.Prefix
	}
	return cmp.Or(need("emb_dim", f.Embedding, &c.Rank), need("gru_hidden_dim", f.Width, &c.Width))
}

// asDFlash returns config.json as a folder of only the head's block would have it.
func asDFlash(data []byte, f *folderConfig, variant string) ([]byte, error) {
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, err
	}
	delete(config, "sample_from_anchor")
	delete(config, "projector_type")
	if f.Type != "" {
		config["speculators_model_type"] = "dflash"
		if _, said := config["sliding_window_non_causal"]; !said {
			config["sliding_window_non_causal"] = variant == dflash2
		}
		return json.Marshal(config)
	}
	config["architectures"] = []string{"DFlashDraftModel"}
	nested, _ := config["dflash_config"].(map[string]any)
	if nested == nil {
		nested = map[string]any{}
	}
	delete(nested, "projector_type")
	delete(nested, "sample_from_anchor")
	if _, said := nested["target_layer_ids"]; !said && f.Layers != nil {
		nested["target_layer_ids"] = f.Layers
	}
	if _, said := nested["mask_token_id"]; !said && f.Mask != nil {
		nested["mask_token_id"] = *f.Mask
	}
	config["dflash_config"] = nested
	return json.Marshal(config)
}

// Place returns where a folder keeps a tensor.
func (c *Config) Place(name, layout string) headfile.Place {
	if hf, ok := places[name]; ok {
		return headfile.Place{Name: hf}
	}
	if rest, ok := strings.CutPrefix(name, "blk."); ok {
		layer, part, _ := strings.Cut(rest, ".")
		for _, half := range []string{"attention", "mlp"} {
			switch part {
			case half + "_conv.base.weight":
				return headfile.Place{Name: "layers." + layer + "." + half + "_conv.base_kernel", Dims: []int{2, c.Kernel, c.Hidden}}
			case half + "_conv.kernel.weight":
				return headfile.Place{Name: "layers." + layer + "." + half + "_conv.kernel_projection.weight"}
			}
		}
	}
	return c.Config.Place(name, layout)
}

var places = map[string]string{
	"markov.before.weight": "markov_head.markov_w1.weight", "markov.token.weight": "markov_head.markov_w2.weight",
	"markov.gate.weight": "markov_head.gate_proj.weight", "markov.gate.bias": "markov_head.gate_proj.bias",
	"markov.joint.weight": "markov_head.joint_proj.weight", "markov.joint.bias": "markov_head.joint_proj.bias",
	"confidence.weight": "confidence_head.proj.weight", "confidence.bias": "confidence_head.proj.bias",
	"selector.before.weight": "candidate_selector.predecessor_codebook",
	"selector.token.weight":  "candidate_selector.successor_codebook",
	"selector.state.weight":  "candidate_selector.hidden_projection.weight",
	"gru.input.weight":       "prefix_gru.weight_ih_l0", "gru.state.weight": "prefix_gru.weight_hh_l0",
	"domino.state.weight": "embed_proj.0.weight", "domino.token.weight": "embed_proj.2.weight",
}

// Folders reports which folders can be written: none for a Domino head.
func (c *Config) Folders() (authors, speculators bool) {
	if c.Variant == domino {
		return false, false
	}
	return c.Config.Folders()
}

// VLLM implements headfile.VLLM. vLLM has only the vanilla correction.
func (c *Config) VLLM() (method string, tokens, most int) {
	if c.Variant == domino || c.Variant == dspark && c.Markov != vanilla {
		return "", 0, 0
	}
	return c.Variant, c.Depths(), c.Depths()
}

// FolderFields returns the fields of config.json: the block's, and those of the correction.
func (c *Config) FolderFields(layers map[string]any, typ tensor.Type, weights []tensor.Tensor,
	target *model.Config) (m map[string]any, layout string, err error) {
	if c.Variant == domino {
		return nil, "", fmt.Errorf("a Domino head is written only as a GGUF file")
	}
	if m, layout, err = c.Config.FolderFields(layers, typ, weights, target); err != nil {
		return nil, "", err
	}
	said := map[string]any{"sample_from_anchor": c.Anchor}
	if c.Variant == dspark {
		said["markov_rank"] = c.Rank
		said["markov_head_type"] = c.Markov
		said["enable_confidence_head"] = c.Confidence != noConfidence
		said["confidence_head_with_markov"] = c.Confidence == TokenConfident
	} else {
		said["conv_kernel_size"] = c.Kernel
		said["conv_group_size"] = c.Group
		said["selector_rank"] = c.Rank
		said["selector_top_k"] = c.Top
	}
	m["architectures"] = []string{map[string]string{dspark: "DSparkDraftModel", dflash2: "DFlash2DraftModel"}[c.Variant]}
	if target == nil {
		d := m["dflash_config"].(map[string]any)
		if c.Variant == dspark {
			d["projector_type"] = dspark
		}
		maps.Copy(d, said)
		return m, layout, nil
	}
	m["speculators_model_type"] = c.Variant
	described := m["speculators_config"].(map[string]any)
	described["algorithm"] = c.Variant
	described["proposal_methods"].([]any)[0].(map[string]any)["speculative_tokens"] = c.Depths()
	maps.Copy(m, said)
	return m, layout, nil
}
