package serve

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/grovellm/grove"
)

// maxInputs is the most texts of a request for embeddings.
const maxInputs = 2048

// embeddings answers POST /v1/embeddings.
func (s *Server) embeddings(x *exchange) error {
	m, o, err := x.readModel()
	if err != nil {
		return err
	}
	format := "float"
	o.read("encoding_format", &format)
	if format != "float" && format != "base64" {
		o.fail("encoding_format", "%q: want float or base64", format)
	}
	vectors, tokens, err := x.embed(o, m, "input", false)
	if err != nil {
		return err
	}
	type one struct {
		Object    string `json:"object"`
		Index     int    `json:"index"`
		Embedding any    `json:"embedding"`
	}
	list := make([]one, len(vectors))
	for i, v := range vectors {
		list[i] = one{"embedding", i, v}
		if format == "base64" { // of little-endian numbers of 32 bits
			var data []byte
			for _, x := range v {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
			}
			list[i].Embedding = base64.StdEncoding.EncodeToString(data)
		}
	}
	return x.writeJSON(http.StatusOK, map[string]any{"object": "list", "model": m.Name, "data": list,
		"usage": map[string]int{"prompt_tokens": tokens, "total_tokens": tokens}})
}

// ollamaEmbed answers POST /api/embed.
func (s *Server) ollamaEmbed(x *exchange) error {
	m, o, err := x.readModel()
	if err != nil {
		return err
	}
	truncate := true
	o.read("truncate", &truncate)
	vectors, tokens := [][]float32{}, 0
	if !o.empty("input") {
		if vectors, tokens, err = x.embed(o, m, "input", truncate); err != nil {
			return err
		}
	}
	return x.writeJSON(http.StatusOK, map[string]any{"model": m.Name, "embeddings": vectors,
		"prompt_eval_count": tokens, "total_duration": time.Since(x.began), "load_duration": 0})
}

// ollamaEmbedding answers POST /api/embeddings, which /api/embed replaced.
func (s *Server) ollamaEmbedding(x *exchange) error {
	m, o, err := x.readModel()
	if err != nil {
		return err
	}
	vectors := [][]float32{{}}
	if !o.empty("prompt") {
		if vectors, _, err = x.embed(o, m, "prompt", true); err != nil {
			return err
		}
	}
	return x.writeJSON(http.StatusOK, map[string]any{"embedding": vectors[0]})
}

// empty reports whether a field has no text: it is not there, empty, or an empty list. For Ollama's clients such a request
// asks for the model to be loaded.
func (o *object) empty(name string) bool {
	text, isText := decode[string](o.fields[name])
	list, isList := decode[[]any](o.fields[name])
	return o.err == nil && (!o.has(name) || isText && text == "" || isList && len(list) == 0)
}

// embed returns the embeddings of the texts in a field, and how many tokens they have.
func (x *exchange) embed(o *object, m *Model, field string, truncate bool) (
	vectors [][]float32, tokens int, err error) {
	x.param = func(name string) string {
		if name == "Width" {
			return "dimensions"
		}
		return field
	}
	options, how := grove.EmbedOptions{}, "mean"
	o.read("pooling", &how)
	if how == "last" {
		options.Pooling = grove.LastPooling
	} else if how != "mean" {
		o.fail("pooling", "%q: want mean or last", how)
	}
	o.read("dimensions", &options.Width)
	c := &call{model: m}
	if err := c.readPrompts(o, field, maxInputs); err != nil {
		return nil, 0, err
	}
	ctx, end := x.limit()
	defer end(nil)
	for i, p := range c.prompts {
		if len(p.tokens) == 0 && len(c.prompts) > 1 {
			return nil, 0, fieldError(fmt.Sprintf("%s[%d]", field, i), "it has no tokens: give some text")
		}
		if most := m.Context(); truncate && len(p.tokens) > most {
			p.tokens = p.tokens[:most]
		}
		v, err := m.Embed(ctx, p.tokens, options)
		if err != nil {
			return nil, 0, err
		}
		vectors, tokens = append(vectors, v), tokens+len(p.tokens)
	}
	x.figure.prompt = tokens
	return vectors, tokens, nil
}
