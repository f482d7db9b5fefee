package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
)

// apertus is the Swiss Apertus: norms of queries and keys, and an MLP without a gate, whose
// activation has its own numbers in each layer. They are keys in GGUF files and tensors in folders.
var apertus = architecture{
	name: "apertus", modelType: "apertus", class: "ApertusForCausalLM",
	keys:     rmsKeys,
	defaults: hfConfig{HiddenAct: "xielu", RMSNormEps: 1e-5, hfRopes: hfRopes{defaultTheta: 12e6}},
	layer: []part{
		{name: "attn_norm", folder: "attention_layernorm", out: hidden},
		{name: "ffn_norm", folder: "feedforward_layernorm", out: hidden},
		queryNorm, keyNorm, query, key, value, attnOutput, ffnUp, ffnDown,
	},
	biases:   map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	factored: true,

	implied: func(c *Config) {
		c.XIELU = nil
		for range min(c.Layers, maxLayers) { // the values at which training begins: 0.8, 0.8, 0.5
			c.XIELU = append(c.XIELU, [4]float32{0.2035, -1.0502, 0.5, -1e-6})
		}
	},
	readKeys: func(k *keys, c *Config) {
		for at, name := range xieluNames {
			v, _ := k.file.Lookup(xieluKey + name)
			list, ok := gguf.As[[]float32](v)
			if one, is := gguf.As[float64](v); is {
				list, ok = slices.Repeat([]float32{float32(one)}, len(c.XIELU)), true
			}
			if !ok || len(list) != len(c.XIELU) || len(list) != c.Layers {
				k.err = fmt.Errorf("key %q: want one number for each of the %d layers: convert the model again", xieluKey+name, c.Layers)
				return
			}
			for i, x := range list {
				c.XIELU[i][at] = x
			}
		}
	},
	readFields: func(h *hfConfig, c *Config) error {
		if h.Params == nil && h.Scaling == nil && h.Theta == nil { // transformers' default
			c.Rope.Factors = Llama3Factors(c.Rope.Base, c.Rope.Dims, 8, 1, 4, 8192)
		}
		return nil
	},
}

const xieluKey = "xielu."

// xieluNames are the names of the numbers, in the order of Config.XIELU.
var xieluNames = [...]string{"alpha_p", "alpha_n", "beta", "eps"}

// xielu returns the activation of layer i.
func (c *Config) xielu(i int) *nn.XIELU {
	if i >= len(c.XIELU) {
		i = 0
	}
	x := c.XIELU[i]
	return nn.NewXIELU(x[0], x[1], x[2], x[3])
}

// xieluTensor returns the folder's name of one number of layer i's activation.
func xieluTensor(i int, name string) string {
	return fmt.Sprintf("%s%d.mlp.act_fn.%s", layersPrefix, i, name)
}

// OfActivation reports whether a folder's tensor is a number of an activation; these are read with config.json.
func (c *Config) OfActivation(name string) bool {
	rest, ok := strings.CutPrefix(name, layersPrefix)
	layer, part := layerPart("blk." + rest)
	number, is := strings.CutPrefix(part, "mlp.act_fn.")
	return c.XIELU != nil && ok && is && layer >= 0 && layer < c.Layers && slices.Contains(xieluNames[:], number)
}

// readXIELU reads the numbers of a folder's activations.
func (c *Config) readXIELU(f *safetensors.File) error {
	for i := range c.Layers {
		var x [4]float32
		for at, name := range xieluNames {
			t, err := f.Load(xieluTensor(i, name))
			if err != nil {
				return err
			}
			v, err := t.Float32s()
			if err != nil {
				return err
			}
			if len(v) != 1 || math.IsNaN(float64(v[0])) || math.IsInf(float64(v[0]), 0) {
				return fmt.Errorf("tensor %s is %v: want one number", fileerr.Quote(t.Name), t.Shape)
			}
			x[at] = v[0]
		}
		c.XIELU = append(c.XIELU, x)
	}
	return nil
}

// Activations returns a folder's tensors for the numbers of activations, which are keys in GGUF files, and for
// BitNet's scales, which are part of the weights there.
func (c *Config) Activations() (list []tensor.Tensor, err error) {
	if c.arch().rounded {
		return c.scales()
	}
	for i, x := range c.XIELU {
		for at, name := range xieluNames {
			shape := []int{1}
			if at > 1 { // buffers without dimensions
				shape = []int{}
			}
			t, err := tensor.FromFloat32s(xieluTensor(i, name), tensor.F32, shape, x[at:at+1])
			if err != nil {
				return nil, err
			}
			list = append(list, t)
		}
	}
	return list, nil
}
