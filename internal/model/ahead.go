// Layers in a model's files that are no part of it: Config.Ahead.

package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/gguf"
)

// aheadKey is the key of their number, which block_count includes.
const aheadKey = "nextn_predict_layers"

// AheadFolders are the beginnings of the names of their tensors in folders: Qwen's, MiMo's.
var AheadFolders = []string{"mtp.", "model.mtp_layers."}

// aheadFuse is the tensor that Qwen's folders have where there is such a layer.
const aheadFuse = "mtp.fc.weight"

// AheadAlone reports whether a GGUF file of an architecture of models has such layers and not the
// model.
func AheadAlone(f *gguf.File) bool {
	arch, _ := f.String("general.architecture")
	n, _ := f.Uint(arch + "." + aheadKey)
	_, attention := f.Tensor("blk.0.attn_output.weight")
	_, recurrent := f.Tensor("blk.0.ssm_out.weight")
	return Runs(arch) && n > 0 && !attention && !recurrent
}

// readLayers reads how many layers there are. A drafter's head has none behind its own.
func (c *Config) readLayers(f *gguf.File, k *keys, model bool) error {
	c.Layers, c.Ahead = k.int("block_count"), k.int(aheadKey, 0)
	name := fmt.Sprintf("blk.%d.nextn.eh_proj.weight", c.Layers-c.Ahead)
	switch _, ok := f.Tensor(name); {
	case c.Ahead == 0:
		return nil
	case !model && c.Ahead == c.Layers && c.Arch == gemma4.name: // whose assistants' layers are all such
		c.Ahead = 0
		return nil
	case !model || c.Ahead < 0 || c.Ahead >= c.Layers:
		return fmt.Errorf("key %q is %d of %d layers: want 0 here", k.name(aheadKey), c.Ahead, c.Layers)
	case !ok:
		return fmt.Errorf("key %q is %d, and there is no tensor %s: the file is incomplete", k.name(aheadKey), c.Ahead, name)
	}
	c.Layers -= c.Ahead
	return nil
}

// Gated reports whether layers of an architecture, by the name that GGUF files give it, have gated attention.
func Gated(arch string) bool { a := archNamed(arch); return a != nil && a.gated }

// BehindParts are the tensors of a layer with gated attention behind a model's, as layer 0, in folders with
// names that begin with folder.
func (c *Config) BehindParts(folder string) (list []Part) {
	a := c.layout()
	for _, p := range a.layer {
		if c.hasPart(p, 0) {
			list = append(list, c.part(a, p, 0, "blk.0.", folder))
		}
	}
	return list
}

// ahead reports whether a tensor of a folder is of a layer behind the model's.
func (c *Config) ahead(name string) bool {
	if c.Ahead == 0 {
		return false
	}
	if rest, ok := strings.CutPrefix(name, layersPrefix); ok { // GLM's are numbered after the model's
		layer, _ := layerPart("blk." + rest)
		return layer >= c.Layers && layer < c.Layers+c.Ahead
	}
	return slices.ContainsFunc(AheadFolders, func(start string) bool { return strings.HasPrefix(name, start) })
}
