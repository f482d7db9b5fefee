// Writing folders: what files_folder.go reads.

package eagle

import (
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/tensor"
)

// WriteFolder writes a head that has the weights, by GGUF name with rows in the order that c.Rope.Neighbours says, as its authors' code
// reads it: config.json and model.safetensors in F32. That code has an output matrix of the head's own, so the weights include one,
// output.weight, be it the target's; tokens are those of a draft vocabulary; nil: it is the whole one.
func WriteFolder(dir string, c *Config, weights []tensor.Tensor, tokens []int32) error {
	return c.writeFolder(dir, weights, tokens, nil)
}

// WriteSpeculators is WriteFolder for vLLM, which is told the target's name and architecture.
func WriteSpeculators(dir string, c *Config, weights []tensor.Tensor, tokens []int32, target model.Config) error {
	return c.writeFolder(dir, weights, tokens, &target)
}

func (c *Config) writeFolder(dir string, weights []tensor.Tensor, tokens []int32, target *model.Config) error {
	if !has(weights, "output.weight") {
		return fmt.Errorf("%s: tensor output.weight is missing, which other engines want in a folder as lm_head.weight: add the target's", dir)
	}
	fields, list, err := c.Folder(weights, tokens, tensor.F32, target)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return headfile.WriteFolder(dir, fields, list)
}

func has(weights []tensor.Tensor, name string) bool {
	return slices.ContainsFunc(weights, func(t tensor.Tensor) bool { return t.Name == name })
}

// Folder is what a folder holds whose matrices are to be of type typ: config.json, and the tensors. target is nil for the layout of EAGLE's
// authors.
func (c *Config) Folder(weights []tensor.Tensor, tokens []int32, typ tensor.Type, target *model.Config) (fields map[string]any, list []headfile.Out, err error) {
	if fields, err = c.fields(typ, target); err != nil {
		return nil, nil, err
	}
	if c.Version == 2 {
		fields["bias"] = has(weights, "fc.bias")
	}
	list, err = c.folderTensors(weights, tokens, target != nil)
	return fields, list, err
}

// folderTensors are the tensors of a folder.
func (c *Config) folderTensors(weights []tensor.Tensor, tokens []int32, speculators bool) ([]headfile.Out, error) {
	if err := c.check(weights, tokens, nil); err != nil {
		return nil, err
	}
	order, err := c.order(false)
	if err != nil {
		return nil, err
	}
	first := midlayer
	if speculators || c.Version == 2 {
		first = layer0
	}
	var list []headfile.Out
	for _, w := range weights {
		o := headfile.Out{Tensor: w, Order: order(w.Name)}
		o.Name = folderName(w.Name, first)
		list = append(list, o)
	}
	if tokens == nil && speculators { // whose loader wants the map in any case
		for t := range c.DraftVocab {
			tokens = append(tokens, int32(t))
		}
	}
	return append(list, headfile.FolderTokens(tokens, c.Vocab)...), nil
}

// fields is config.json.
func (c *Config) fields(typ tensor.Type, target *model.Config) (map[string]any, error) {
	layer := c.Config
	layer.Tied = false
	m, err := layer.Fields(typ)
	switch {
	case err != nil:
		return nil, err
	case target != nil && c.Version != 3:
		return nil, fmt.Errorf("an EAGLE-%d head: speculators of this layout are EAGLE-3's", c.Version)
	case target != nil:
		if m, err = speculator(m, typ, target); err != nil {
			return nil, err
		}
	case c.Version == 3:
		m["architectures"] = []string{"LlamaForCausalLMEagle3"}
	}
	if c.TargetLayers > 0 {
		m["num_target_layers"] = c.TargetLayers
	}
	if c.Version == 2 {
		return m, nil
	}
	m["draft_vocab_size"] = c.DraftVocab
	m["target_hidden_size"] = c.Hidden
	m["norm_before_residual"], m["norm_before_fc"] = c.NormBeforeResidual, c.NormBeforeFC
	m["fc_norm"], m["norm_output"] = c.FCNorm, c.NormOutput
	if c.Taps == nil { // as the folder that this one is made of
		return m, nil
	}
	m["eagle_aux_hidden_state_layer_ids"] = c.Taps
	if target == nil && !slices.Contains(c.Taps, 0) {
		outputs := make([]int, len(c.Taps))
		for i, t := range c.Taps {
			outputs[i] = t - 1
		}
		m["eagle_config"] = map[string]any{"eagle_aux_hidden_state_layer_ids": outputs, "use_aux_hidden_state": true}
	}
	return m, nil
}

// speculator is config.json of vLLM's speculators, around the fields of the layer.
func speculator(layer map[string]any, typ tensor.Type, target *model.Config) (map[string]any, error) {
	verifier, err := target.Fields(typ)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"architectures": []string{"Eagle3Speculator"}, "speculators_model_type": "eagle3", "speculators_version": "0.3.0",
		"torch_dtype": layer["torch_dtype"], "tie_word_embeddings": false, "embed_requires_grad": false, "transformer_layer_config": layer,
		"speculators_config": map[string]any{
			"algorithm": "eagle3", "default_proposal_method": "greedy",
			"proposal_methods": []any{map[string]any{"proposal_type": "greedy", "speculative_tokens": 5, "verifier_accept_k": 1, "accept_tolerance": 0.0}},
			"verifier":         map[string]any{"name_or_path": target.Name, "architectures": verifier["architectures"]},
		},
	}, nil
}
