// Assistants in files: llama.cpp's GGUF, and Hugging Face folders.

package assistant

import (
	"encoding/json"
	"fmt"

	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
)

var kind = headfile.Kind{
	Name: "Gemma 4 assistant", Drafters: []string{arch}, Archs: []string{arch}, Whole: []string{arch}, Target: target,
	New:       func() headfile.Shape { return new(Config) },
	Published: published,
	Examples: []string{
		arch + ":k=10,depth=7,n=60", arch + ":tree=best-first,width=6,branch=4,depth=10", arch + ":tree=linear,k=6", arch +
			":tree=fixed,d=4,b=3",
	},
}

func init() { headfile.Register(&kind) }

// published returns the shapes of published heads; see headfile.Kind.Published.
func published(t *model.Config) []headfile.Published {
	if t.Arch != target {
		return nil
	}
	all := Config{Base: headfile.Base{Config: t.Borrowing(4, 256, 2048), TargetHidden: t.Hidden}}
	size := 128
	for t.Vocab%size != 0 {
		size /= 2
	}
	ordered := all
	ordered.Centroids = t.Vocab / size
	ordered.Chosen = min(32, ordered.Centroids)
	return []headfile.Published{
		{Drafter: arch, About: "4 layers 256 wide, all tokens", Shape: &all},
		{Drafter: arch, Shape: &ordered,
			About: fmt.Sprintf("4 layers 256 wide, %d of %d clusters of tokens", ordered.Chosen, ordered.Centroids)},
	}
}

// Kind returns the kind of assistants.
func (*Config) Kind() *headfile.Kind { return &kind }

// Open loads an assistant for a target.
var Open = headfile.Opener(&kind, NewNetwork)

// FileArch returns the architecture that a GGUF file names.
func (*Config) FileArch() string { return arch }

// Keys visits the keys of a GGUF file. The keys of the target's layers and of the clusters are
// grove's own: llama.cpp computes logits of all tokens.
func (c *Config) Keys(k *headfile.Keys) {
	layers := c.Layers
	k.Int(".nextn_predict_layers", &layers, 0)
	k.Int(".embedding_length_out", &c.TargetHidden)
	k.Int(model.TargetLayersKey, &c.TargetLayers, 0)
	k.Int(".masked_embedding.centroids", &c.Centroids, 0)
	k.Int(".masked_embedding.chosen", &c.Chosen, 0)
}

// Foreign says why llama.cpp does not run the head.
func (c *Config) Foreign() string {
	if c.TargetHidden == c.Hidden {
		return "llama.cpp wants an assistant that is not as wide as its target"
	}
	return ""
}

// folderConfig is what config.json says.
type folderConfig struct {
	Type         string          `json:"model_type"`
	Text         json.RawMessage `json:"text_config"`
	Backbone     int             `json:"backbone_hidden_size"`
	Ordered      bool            `json:"use_ordered_embeddings"`
	Centroids    int             `json:"num_centroids"`
	Chosen       int             `json:"centroid_intermediate_top_k"`
	TargetLayers int             `json:"num_target_layers"`
}

// folderTypes are the values of model_type in folders.
var folderTypes = map[string]bool{"gemma4_assistant": true, "gemma4_unified_assistant": true}

// ReadFolder reads the shape from config.json of an open folder.
func (c *Config) ReadFolder(x *headfile.File) (layout string, err error) {
	f := folderConfig{Backbone: 1536, Centroids: 2048, Chosen: 32}
	if err := json.Unmarshal(x.JSON, &f); err != nil || !folderTypes[f.Type] {
		return "", kind.Refuse("model_type is %q: want gemma4_assistant", f.Type)
	}
	if f.Text == nil {
		return "", fmt.Errorf("field \"text_config\" is missing: it describes the layers")
	}
	c.Config, err = model.ParseBorrowing(f.Text)
	if err != nil {
		return "", err
	}
	c.TargetHidden, c.TargetLayers = f.Backbone, f.TargetLayers
	if f.Ordered {
		c.Centroids, c.Chosen = f.Centroids, f.Chosen
	}
	return "", nil
}

// Names of tensors other than the layers'.
const (
	preName      = "nextn.pre_projection"
	postName     = "nextn.post_projection"
	centroidName = "masked_embd_centroids"
	orderName    = "masked_embd_ordering"
)

var places = map[string]string{
	preName + ".weight": "pre_projection.weight", postName + ".weight": "post_projection.weight",
	centroidName + ".weight": "masked_embedding.centroids.weight", orderName: "masked_embedding.token_ordering",
}

// Place returns where a folder keeps a tensor.
func (*Config) Place(name, _ string) headfile.Place {
	if hf, ok := places[name]; ok {
		return headfile.Place{Name: hf}
	}
	hf, _ := model.HFName(target, name)
	return headfile.Place{Name: hf}
}
