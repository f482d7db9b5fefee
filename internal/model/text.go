// Folders with vision or audio towers alongside the text model; only the text model runs.

package model

import (
	"encoding/json"
	"slices"
	"strings"
)

// towers are the prefixes of names of tensors that are not part of the text model.
var towers = []string{"visual.", "model.visual.", "model.vision_", "model.audio_tower.", "model.embed_vision.",
	"model.embed_audio.", "vision_tower.", "vision_model.", "vit_large_projector.",
	"multi_modal_projector.", "model.multi_modal_projector."}

// OfTower reports whether a folder's tensor belongs to a vision or audio tower, which grove leaves out.
func OfTower(name string) bool {
	return slices.ContainsFunc(towers, func(start string) bool { return strings.HasPrefix(name, start) })
}

// textFields returns the fields of the text model in a config.json: those of its text_config, if
// that has a model_type that grove runs, plus the outer fields that apply to it.
func textFields(data []byte) (text []byte, nested bool, err error) {
	var all map[string]json.RawMessage
	if err := decode(data, &all); err != nil {
		return nil, false, err
	}
	var inner struct {
		ModelType string `json:"model_type"`
	}
	raw := all["text_config"]
	if json.Unmarshal(raw, &inner) != nil || byModelType(inner.ModelType) == nil {
		return data, false, nil
	}
	fields := map[string]json.RawMessage{}
	if err := decode(raw, &fields); err != nil {
		return nil, false, err
	}
	for _, name := range []string{"tie_word_embeddings", "quantization_config", "compression_config"} {
		if v, ok := all[name]; ok && fields[name] == nil {
			fields[name] = v
		}
	}
	if v, ok := all["tie_word_embeddings"]; ok {
		fields[outerTied] = v
	}
	text, err = json.Marshal(fields)
	return text, true, err
}

// outerTied is the field of hfConfig for the outer tie_word_embeddings.
const outerTied = "tie_word_embeddings of the whole"

// textName returns the name that a tensor has in a text-only model. A bare model, without an output
// matrix, has names without a prefix, as in Qwen3-Embedding.
func textName(name string) string {
	for _, bare := range []string{"layers.", "embed_tokens.", "norm."} {
		if strings.HasPrefix(name, bare) {
			return "model." + name
		}
	}
	for _, bare := range []string{"h.", "wte.", "wpe.", "ln_f."} { // of GPT-2
		if strings.HasPrefix(name, bare) {
			return "transformer." + name
		}
	}
	for _, start := range []string{"model.language_model.", "language_model.model."} {
		if rest, ok := strings.CutPrefix(name, start); ok {
			return "model." + rest
		}
	}
	return strings.TrimPrefix(name, "language_model.")
}

// Spare reports whether a tensor of a GGUF file or folder belongs to keys and values of a layer
// that reads another's. Older files have some, which are not used.
func (c *Config) Spare(name string) bool {
	if rest, ok := strings.CutPrefix(name, layersPrefix); ok {
		name = "blk." + rest
	}
	layer, part := layerPart(name)
	return layer >= 0 && layer < c.Layers && c.reads(layer) && slices.ContainsFunc(spareParts, func(start string) bool {
		return strings.HasPrefix(part, start)
	})
}

var spareParts = []string{"attn_k.", "attn_v.", "attn_k_norm.", "self_attn.k_proj.",
	"self_attn.v_proj.", "self_attn.k_norm."}
