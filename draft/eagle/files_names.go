// Names and order of a head's tensors in Hugging Face folders.

package eagle

import (
	"fmt"
	"strings"

	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
)

// First layers, as the folders of EAGLE-3's authors name them, as EAGLE-2's and vLLM's speculators
// do, and as vLLM's first format does.
const (
	midlayer    = "midlayer."
	layer0      = "layers.0."
	transformer = "transformer."
)

// folderName is a folder's name of a tensor; first is what its first layer is called.
func folderName(name, first string) string {
	if rest, ok := strings.CutPrefix(name, "fc."); ok && first == transformer {
		return "fusion_fc." + rest
	}
	switch name {
	case inputNorm + ".weight":
		return "input_norm.weight"
	case "blk.0.attn_norm_2.weight":
		return first + "hidden_norm.weight"
	}
	hf, ok := model.HFName(model.BlockHead, name) // whose folders name everything else the same
	if !ok {
		return name // fc_norm.0
	}
	if rest, ok := strings.CutPrefix(hf, layer0); ok {
		return first + rest
	}
	return hf
}

// names are those of the tensors that the head may have, by folder name.
func (c *Config) names(first string) map[string]string {
	names := map[string]string{}
	for name := range c.shapes() {
		names[folderName(name, first)] = name
	}
	return names
}

// order says how rows of a file differ from those that the head has: files of the llama family hold queries and keys in pairs in GGUF, in
// halves in folders.
func (c *Config) order(pairs bool) (func(name string) func(int) int, error) {
	from := c.Rope.Neighbours
	if c.Arch != "llama" && from {
		return nil, fmt.Errorf("rows of %s layers in neighbouring pairs: want halves", c.Arch)
	}
	if c.Arch != "llama" || from == pairs {
		return func(string) func(int) int { return nil }, nil
	}
	if c.Rope.Dims != c.HeadDim {
		return nil, fmt.Errorf("%d of %d dimensions of a head are rotated: want all", c.Rope.Dims, c.HeadDim)
	}
	to := headfile.Halves(c.HeadDim)
	if pairs {
		to = headfile.Pairs(c.HeadDim)
	}
	return func(name string) func(int) int {
		if strings.Contains(name, ".attn_q.") || strings.Contains(name, ".attn_k.") {
			return to
		}
		return nil
	}, nil
}
