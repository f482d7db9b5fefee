// Heads in files: GGUF of architecture specblock, which is grove's own in the likeness of
// llama.cpp's eagle3, and Hugging Face folders as the release has them. Rows of queries and keys are alike in both.

package specblock

import (
	"fmt"
	"strings"

	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// arch is the architecture of GGUF files.
const arch = "specblock"

var kind = headfile.Kind{
	Name: "SpecBlock head", Drafters: []string{arch}, Archs: []string{arch},
	New: func() headfile.Shape { return new(Config) },
	Examples: []string{
		"specblock:widths=2/3/5/2,blocks=2,starts=6,nodes=35", "specblock:widths=3/3/3/3,blocks=2,nodes=35",
		"specblock:blocks=3,starts=2,cached=1,nodes=60",
	},
}

func init() { headfile.Register(&kind) }

// Kind returns the kind of SpecBlock heads.
func (*Config) Kind() *headfile.Kind { return &kind }

// Open loads a head for a target, of which it uses what it has not of its own.
var Open = headfile.Opener(&kind, NewNetwork)

// FileArch returns the architecture that a GGUF file names.
func (*Config) FileArch() string { return arch }

// Keys goes through the keys of a GGUF file. The ways of the released code are false where a file
// does not say them, broadcast and shift are true.
func (c *Config) Keys(k *headfile.Keys) {
	k.Int(".block_size", &c.Block)
	k.Taps(&c.Base)
	k.Int(".rank_length", &c.RankWidth, 0)
	k.Bool(".shift", &c.Shift, true)
	k.Bool(".broadcast", &c.Broadcast, true)
	k.Bool(".same_position", &c.SamePosition, false)
	k.Bool(".rank_normed", &c.RankNormed, false)
	k.Bool(".rank_full", &c.RankFull, false)
	offset := c.RankOffset[:]
	k.Floats(".rank_offset", &offset)
	if err := c.setOffset(offset); err != nil {
		k.Fail(fmt.Errorf("%s.rank_offset %w", arch, err))
	}
}

// setOffset takes in the rank head's offsets as a file has them.
func (c *Config) setOffset(v []float32) error {
	if len(v) != RankBuckets {
		return fmt.Errorf("has %d numbers: want %d, one for each bucket", len(v), RankBuckets)
	}
	c.RankOffset = [RankBuckets]float32(v)
	return nil
}

// folderConfig is what config.json says of a head beyond its layers; the last six are not in the
// release's.
type folderConfig struct {
	Block        int  `json:"diffspec_draft_token_num"`
	RankClasses  int  `json:"rank_classes"`
	DraftVocab   int  `json:"draft_vocab_size"`
	HiddenSize   int  `json:"hidden_size"`
	TargetHidden *int `json:"target_hidden_size"`

	Taps         []int     `json:"eagle_aux_hidden_state_layer_ids"`
	TargetLayers int       `json:"num_target_layers"`
	Broadcast    *bool     `json:"prefix_broadcast"`
	SamePosition *bool     `json:"same_position"`
	RankNormed   *bool     `json:"rank_normed"`
	RankFull     bool      `json:"rank_full"`
	RankOffset   []float32 `json:"rank_offset"`
}

// Check refuses heads that do not run here, before fields that they may not have are missed.
func (f *folderConfig) Check() error {
	switch {
	case f.TargetHidden != nil && *f.TargetHidden != f.HiddenSize:
		return fmt.Errorf("field \"target_hidden_size\" is %d and hidden_size %d: heads narrower or wider than their target are not supported", *f.TargetHidden, f.HiddenSize)
	case f.RankClasses != 0 && f.RankClasses != RankBuckets:
		return fmt.Errorf("field \"rank_classes\" is %d: want %d", f.RankClasses, RankBuckets)
	case f.Block == 0:
		return fmt.Errorf("field \"diffspec_draft_token_num\" is missing: it says how many rows a block has")
	}
	return nil
}

// ReadFolder reads the shape from config.json of an open folder.
func (c *Config) ReadFolder(x *headfile.File) (layout string, err error) {
	if !x.Has("input_layer.fuse.weight") {
		return "", kind.Refuse("the folder has no tensor input_layer.fuse.weight as such heads have")
	}
	var f folderConfig
	base, err := x.FolderLayers("layers.0.self_attn.q_norm.weight", &f)
	if err != nil {
		return "", err
	}
	set := func(value *bool) bool { return value == nil || *value } // all are the release's ways
	*c = Config{
		Base: headfile.Base{Config: base, Taps: headfile.Stated(f.Taps), DraftVocab: f.DraftVocab,
			TargetLayers: f.TargetLayers}, Block: f.Block, Shift: x.Has("shift_proj.0.weight"),
		Broadcast: set(f.Broadcast), SamePosition: set(f.SamePosition), RankNormed: set(f.RankNormed),
		RankFull: f.RankFull,
	}
	if f.RankOffset != nil {
		if err := c.setOffset(f.RankOffset); err != nil {
			return "", fmt.Errorf("field \"rank_offset\" %w", err)
		}
	}
	if t, ok := x.Tensor("rank_head.0.weight"); ok && len(t.Shape) == 2 {
		c.RankWidth = t.Shape[0]
	}
	if c.DraftVocab == c.Vocab {
		c.DraftVocab = 0
	}
	return "", nil
}

// Place returns where a folder has a tensor. Matrices that are products of a part of a vector each here
// are columns of one there.
func (c *Config) Place(name, _ string) headfile.Place {
	h := c.Hidden
	if place, ok := map[string]headfile.Place{
		"fc.weight":            {Name: "input_layer.condition_proj.weight"},
		"cond_norm.weight":     {Name: "input_layer.condition_norm.weight"},
		"token_norm.weight":    {Name: "input_layer.token_norm.weight"},
		"query_norm.weight":    {Name: "input_layer.query_norm.weight"},
		"query.weight":         {Name: "input_layer.position_queries.weight"},
		"fuse_cond.weight":     {Name: "input_layer.fuse.weight", To: h},
		"fuse_token.weight":    {Name: "input_layer.fuse.weight", From: h, To: 2 * h},
		"fuse_query.weight":    {Name: "input_layer.fuse.weight", From: 2 * h, To: 3 * h},
		"rank_hidden.weight":   {Name: "rank_head.0.weight", To: h},
		"rank_features.weight": {Name: "rank_head.0.weight", From: h, To: h + Features},
		"rank_out.weight":      {Name: "rank_head.2.weight"},
	}[name]; ok {
		return place
	}
	if block, part, ok := strings.Cut(strings.TrimPrefix(name, "blk."), "."); ok {
		switch part {
		case "shift_own.weight":
			return headfile.Place{Name: "shift_proj." + block + ".weight", To: h}
		case "shift_prev.weight":
			return headfile.Place{Name: "shift_proj." + block + ".weight", From: h, To: 2 * h}
		}
	}
	hf, _ := model.HFName(model.Head, name)
	return headfile.Place{Name: hf}
}

// Folders reports which folders can be written.
func (*Config) Folders() (authors, speculators bool) { return true, false }

// FolderFields returns the fields of config.json.
func (c *Config) FolderFields(m map[string]any, _ tensor.Type, _ []tensor.Tensor, _ *model.Config) (map[string]any,
	string, error) {
	class := "LlamaForCausalLMSpecBlock"
	if c.Shift {
		class += "Shift"
	}
	m["architectures"] = []string{class}
	m["diffspec_draft_token_num"], m["rank_classes"] = c.Block, RankBuckets
	m["draft_vocab_size"], m["target_hidden_size"] = c.Output(), c.Hidden
	m["prefix_broadcast"] = c.Broadcast
	if c.Taps != nil {
		m["eagle_aux_hidden_state_layer_ids"] = c.Taps
	}
	m["same_position"] = c.SamePosition
	m["rank_normed"] = c.RankNormed
	m["rank_offset"] = c.RankOffset
	m["rank_full"] = c.RankFull
	return m, "", nil
}
