// Layers of a head that read the keys and values of the target's layers.

package model

import (
	"encoding/json"
	"fmt"
	"math"
)

// ParseBorrowing reads the layers of a head without keys and values of its own from the object of
// config.json that describes them like a model's: in Gemma 4's assistants, it states that all
// layers read those of other layers.
func ParseBorrowing(data []byte) (Config, error) {
	var fields map[string]json.RawMessage
	if err := decode(data, &fields); err != nil {
		return Config{}, err
	}
	const field = "num_kv_shared_layers"
	var said struct {
		Layers int `json:"num_hidden_layers"`
		Shared int `json:"num_kv_shared_layers"`
	}
	if err := decode(data, &said); err != nil {
		return Config{}, err
	}
	if said.Shared != 0 && said.Shared != said.Layers {
		return Config{}, fmt.Errorf("field %q is %d of %d layers: want all, with keys and values from the target", field,
			said.Shared, said.Layers)
	}
	delete(fields, field)
	rest, err := json.Marshal(fields)
	if err != nil {
		return Config{}, err
	}
	c, h, err := parseFolder(rest, new(struct{}))
	switch {
	case err != nil:
		return c, err
	case c.Arch != gemma4.name:
		return c, fmt.Errorf("model_type is %q: want gemma4_text, whose assistants read their target's keys and values", h.ModelType)
	case c.PerLayer > 0 || c.Experts > 0 || h.DoubleWide:
		return c, fmt.Errorf("hidden_size_per_layer_input, enable_moe_block and use_double_wide_mlp: want layers without any of them")
	}
	c.Borrows = true
	c.Tied, c.KeyValues = false, false
	c.LogitCap = 0 // transformers and llama.cpp do not cap these logits
	return c, nil
}

// BorrowedFrom returns, for each layer of c, which must Borrow, the target's layer whose keys and
// values it reads: the last with a window if the layer has one, else the last without. A target
// layer that reads another's stands for it (nn.Pages.Sources). The error states the difference.
func (c *Config) BorrowedFrom(target *Config) (layers []int, err error) {
	for i := range c.Layers {
		from := target.Layers - 1
		for from >= 0 && target.windowed(from) != c.windowed(i) {
			from--
		}
		switch {
		case from < 0:
			return nil, fmt.Errorf("layer %d of the head is a %s layer: the target has none", i, attentionKind(c.windowed(i)))
		case target.headDim(from) != c.headDim(i) || target.kvHeads(from) != c.kvHeads(i):
			return nil, fmt.Errorf("layer %d of the head reads %d key/value heads of %d, but layer %d of the target has %d of %d",
				i, c.kvHeads(i), c.headDim(i), from, target.kvHeads(from), target.headDim(from))
		case c.windowed(i) && c.Window != target.Window:
			return nil, fmt.Errorf("the head's window is %d, but the target's is %d", c.Window, target.Window)
		}
		layers = append(layers, from)
	}
	return layers, nil
}

// Borrowing returns the shape of layers, hidden wide, that read the keys and values of a target's
// layers: all have a window, except the last.
func (c *Config) Borrowing(layers, hidden, ffn int) Config {
	b := *c
	b.Name, b.Folder = "", ""
	b.Layers = layers
	b.Hidden = hidden
	b.FFN = ffn
	b.Borrows = true
	b.Sharing, b.WideSharing = 0, false
	b.KeyValues, b.Tied = false, false
	b.PerLayer = 0
	b.Experts, b.Used = 0, 0
	b.ExpertFFN = 0
	b.LogitCap = 0
	b.Padded = 0
	b.Windowed = make([]bool, layers)
	for i := range layers - 1 {
		b.Windowed[i] = c.Window > 0
	}
	b.EmbedScale = math.Sqrt(float64(hidden))
	return b
}
