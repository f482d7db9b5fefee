// Folders with vision or audio towers beside the text model, which alone runs.

package model

import (
	"encoding/json"
	"slices"
	"strings"
)

// towers are the beginnings of names of tensors that are no part of the text model.
var towers = []string{"visual.", "model.visual.", "model.vision_", "model.audio_tower.", "model.embed_vision.",
	"model.embed_audio.", "vision_tower.", "multi_modal_projector.", "model.multi_modal_projector."}

// OfTower reports whether a tensor of a folder is of a vision or audio tower, which grove leaves out.
func OfTower(name string) bool {
	return slices.ContainsFunc(towers, func(start string) bool { return strings.HasPrefix(name, start) })
}

// textFields are the fields of a config.json that are of the text model: its text_config, where it has
// one whose model_type is one that grove runs, with the fields of the whole that apply to it.
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

// outerTied is the field of hfConfig that has tie_word_embeddings of the whole.
const outerTied = "tie_word_embeddings of the whole"

// textName is the name that a text model alone has for a tensor. A bare one, without an output matrix, has names
// without a beginning, as those of Qwen3-Embedding.
func textName(name string) string {
	for _, bare := range []string{"layers.", "embed_tokens.", "norm."} {
		if strings.HasPrefix(name, bare) {
			return "model." + name
		}
	}
	for _, start := range []string{"model.language_model.", "language_model.model."} {
		if rest, ok := strings.CutPrefix(name, start); ok {
			return "model." + rest
		}
	}
	return strings.TrimPrefix(name, "language_model.")
}

// Spare reports whether a tensor of a GGUF file or of a folder is of keys and values of a layer that
// reads another's. Older files have some, which nothing reads.
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
