// Heads in files: GGUF of grove's own, and the folders of Medusa's authors, of
// text-generation-inference (the authors' without output matrices) and of vLLM.

package medusa

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// arch is the architecture of GGUF files.
const arch = "medusa"

var kind = headfile.Kind{
	Name: "Medusa head", Drafters: []string{arch}, Archs: []string{arch},
	New:  func() headfile.Shape { return new(Config) },
	File: "medusa_lm_head", Bare: true,
	Published: published,
	Examples: []string{
		"medusa", "medusa:tree=mc_sim_7b_63,depth=1", "medusa:tree=best-first,width=8", "medusa:tree=chain",
	},
}

func init() { headfile.Register(&kind) }

// published: see headfile.Kind.
func published(t *model.Config) []headfile.Published {
	c := Config{Base: headfile.Base{Config: model.Config{Vocab: t.Vocab, Hidden: t.Hidden}}, Depths: 5, ResBlocks: 1}
	return []headfile.Published{{Drafter: arch, About: "5 heads of a block", Shape: &c}}
}

// Kind returns the kind of Medusa heads.
func (*Config) Kind() *headfile.Kind { return &kind }

// Open loads heads for a target, of which they use what they have not of their own.
var Open = headfile.Opener(&kind, NewNetwork)

// FileArch returns the architecture that a GGUF file names.
func (*Config) FileArch() string { return arch }

// Keys goes through the keys of a GGUF file.
func (c *Config) Keys(k *headfile.Keys) {
	if k.Reading() {
		c.DraftVocab = c.Vocab
	}
	k.Int(".head_count", &c.Depths)
	k.Int(".block_count", &c.ResBlocks)
	k.Flag(".own_outputs", &c.OwnOutputs, true)
	k.Ints(".tree", (*[]int32)(&c.Template))
	k.Taps(&c.Base)
}

// Foreign says why llama.cpp does not run the heads.
func (*Config) Foreign() string { return "llama.cpp has no Medusa heads" }

// folderConfig is what config.json says of heads. Medusa's authors and vLLM call the numbers
// otherwise; vLLM reads either.
type folderConfig struct {
	Heads        *int    `json:"medusa_num_heads"`
	Blocks       *int    `json:"medusa_num_layers"`
	VLLMHeads    *int    `json:"num_heads"`
	VLLMBlocks   *int    `json:"num_hidden_layers"`
	OneHead      bool    `json:"original_lm_head"` // vLLM: heads share an output matrix
	Vocab        int     `json:"vocab_size"`
	TargetLayers int     `json:"num_target_layers"`
	Choices      [][]int `json:"medusa_choices"`
}

// Layouts of folders: what precedes the number of a head in the names of tensors.
const (
	authors = ""
	whole   = "medusa_head." // the authors', saved as a part of the target
	vllm    = "blocks."
	vllmOne = vllm + "lm_heads.0" // vLLM's, where the first head's output matrix is that of all
)

// ReadFolder reads the shape from config.json of an open folder, and sizes from its tensors:
// config.json mostly lacks them.
func (c *Config) ReadFolder(x *headfile.File) (layout string, err error) {
	find := func(head, block int) (tensor.Tensor, bool) {
		return x.Tensor(c.Place(blockName(head, block)+".weight", layout).Name)
	}
	var first tensor.Tensor
	found := false
	for _, layout = range []string{authors, whole, vllm} {
		first, found = find(0, 0)
		if found {
			break
		}
	}
	if !found || len(first.Shape) != 2 {
		return "", kind.Refuse("the folder has no tensor 0.0.linear.weight or blocks.0.layers.0.weight")
	}
	var f folderConfig
	if err := json.Unmarshal(x.JSON, &f); err != nil {
		return "", err
	}
	*c = Config{Base: headfile.Base{Config: model.Config{Vocab: f.Vocab, Hidden: first.Cols()},
		TargetLayers: f.TargetLayers}}
	if f.TargetLayers > 0 {
		c.Taps = []int{f.TargetLayers}
	}
	if n := cmp.Or(f.Heads, f.VLLMHeads); n != nil {
		c.Depths = *n
	} else {
		for found = true; found && c.Depths < maxHeads; c.Depths++ {
			_, found = find(c.Depths+1, 0)
		}
	}
	c.ResBlocks = 1
	if n := cmp.Or(f.Blocks, f.VLLMBlocks); n != nil {
		c.ResBlocks = *n
	}
	if layout == vllm && f.OneHead && !x.Has(sharedOutput) {
		layout = vllmOne
	}
	if c.Template, err = templateOf(f.Choices); err != nil {
		return "", fmt.Errorf("field \"medusa_choices\": %w", err)
	}
	output, shared := x.Tensor(c.Place("output.weight", layout).Name)
	if !shared {
		output, c.OwnOutputs = x.Tensor(c.Place(outputName(0)+".weight", layout).Name)
	}
	if (shared || c.OwnOutputs) && len(output.Shape) == 2 {
		c.DraftVocab = output.Shape[0]
		c.Vocab = cmp.Or(c.Vocab, c.DraftVocab)
	}
	return layout, nil
}

// sharedOutput is where a folder of vLLM's has the output matrix that heads share.
const sharedOutput = "lm_head.weight"

// Place returns where a folder has a tensor.
func (c *Config) Place(name, layout string) headfile.Place {
	var head, block int
	switch part := strings.TrimPrefix(name, "medusa."); {
	case part == name:
		name = sharedOutput
		if layout == vllmOne {
			name = strings.TrimPrefix(vllmOne, vllm) + ".weight"
		}
	case strings.HasSuffix(part, ".output.weight"):
		_, _ = fmt.Sscanf(part, "%d", &head)
		name = fmt.Sprintf("%s%d.%d.weight", layout, head, c.ResBlocks)
		if layout == vllm {
			name = fmt.Sprintf("lm_heads.%d.weight", head)
		}
	default:
		var end string
		_, _ = fmt.Sscanf(part, "%d.%d.%s", &head, &block, &end)
		name = fmt.Sprintf("%s%d.%d.linear.%s", layout, head, block, end)
		if strings.HasPrefix(layout, vllm) {
			name = fmt.Sprintf("%s%d.layers.%d.%s", vllm, head, block, end)
		}
	}
	return headfile.Place{Name: name}
}

// Folders says that the authors' folders can be written, which text-generation-inference reads too.
func (*Config) Folders() (authors, speculators bool) { return true, false }

// FolderFields returns the fields of config.json. The authors' code reads the first two; it has no place for a draft
// vocabulary.
func (c *Config) FolderFields(
	m map[string]any, _ tensor.Type, _ []tensor.Tensor, _ *model.Config,
) (map[string]any, string, error) {
	if c.DraftVocab > 0 && c.DraftVocab < c.Vocab {
		return nil, "", fmt.Errorf("a draft vocabulary of %d tokens, for which folders of Medusa heads have no place: write GGUF",
			c.DraftVocab)
	}
	m["medusa_num_heads"], m["medusa_num_layers"] = c.Depths, c.ResBlocks
	m["hidden_size"], m["vocab_size"] = c.Hidden, c.Vocab
	if c.Template != nil {
		m["medusa_choices"] = c.Template.paths()
	}
	return m, authors, nil
}
