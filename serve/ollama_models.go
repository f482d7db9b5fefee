package serve

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/grovellm/grove/model"
)

// What Ollama's clients ask about models: /api/tags, show, ps, version, pull.

// ollamaVersion is the version of Ollama whose API this is; clients ask for it.
const ollamaVersion = "0.33.0"

// ollamaModel describes a model.
type ollamaModel struct {
	Name     string        `json:"name"`
	Model    string        `json:"model"`
	Modified time.Time     `json:"modified_at"`
	Size     int           `json:"size"`
	Digest   string        `json:"digest"` // of this description: the file is not read again
	Details  ollamaDetails `json:"details"`
}

type ollamaDetails struct {
	Parent       string   `json:"parent_model"`
	Format       string   `json:"format"`
	Family       string   `json:"family"`
	Families     []string `json:"families"`
	Parameters   string   `json:"parameter_size"`
	Quantization string   `json:"quantization_level"`
}

func (s *Server) ollamaModel(m *Model) ollamaModel {
	c, t := m.Config(), m.Target().Model
	d := ollamaDetails{Format: "gguf", Family: c.Arch, Families: []string{c.Arch}, Parameters: fmt.Sprintf("%.1fB", float64(c.Parameters())/1e9),
		Quantization: model.FileType(t.Blocks[0].Out.W.Type()).String()}
	if n := float64(c.Parameters()); n < 1e9 {
		d.Parameters = fmt.Sprintf("%.2fM", n/1e6)
	}
	o := ollamaModel{Name: m.Name, Model: m.Name, Modified: s.began, Size: m.WeightBytes(), Details: d}
	shown, _ := json.Marshal(o.Details)
	o.Digest = fmt.Sprintf("%x", sha256.Sum256(fmt.Append(shown, o.Name, o.Size)))
	return o
}

// ollamaTags answers GET /api/tags.
func (s *Server) ollamaTags(x *exchange) error {
	if err := s.ready(); err != nil {
		return err
	}
	list := []ollamaModel{}
	s.models.each(func(e *entry) {
		if e.model != nil {
			list = append(list, s.ollamaModel(e.model))
			return
		}
		list = append(list, ollamaModel{Name: e.Name, Model: e.Name, Modified: s.began, Size: int(e.Bytes), Details: ollamaDetails{Format: "gguf"},
			Digest: fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, e.Name, e.Bytes)))})
	})
	return x.writeJSON(http.StatusOK, map[string]any{"models": list})
}

// ollamaRunning answers GET /api/ps with the models that are loaded, and when they will be unloaded.
func (s *Server) ollamaRunning(x *exchange) error {
	if err := s.ready(); err != nil {
		return err
	}
	type running struct {
		ollamaModel
		Expires time.Time `json:"expires_at"`
		VRAM    int       `json:"size_vram"`
		Context int       `json:"context_length"`
	}
	list := []running{}
	s.models.each(func(e *entry) {
		if e.model == nil {
			return
		}
		expires := time.Now().AddDate(100, 0, 0) // it stays as long as the server does
		if keep := s.o.KeepAlive; !e.fixed && keep >= 0 {
			if expires = time.Now().Add(keep); e.users == 0 {
				expires = e.last.Add(keep)
			}
		}
		list = append(list, running{s.ollamaModel(e.model), expires, 0, e.model.Context()})
	})
	return x.writeJSON(http.StatusOK, map[string]any{"models": list})
}

// ollamaShow answers POST /api/show.
func (s *Server) ollamaShow(x *exchange) error {
	m, _, err := x.readModel()
	if err != nil {
		return err
	}
	c, d := m.Config(), s.ollamaModel(m)
	info := map[string]any{"general.architecture": c.Arch, "general.parameter_count": c.Parameters()}
	for name, value := range map[string]int{"context_length": m.Context(), "embedding_length": c.Hidden, "block_count": c.Layers,
		"feed_forward_length": c.FFN, "vocab_size": c.Vocab, "attention.head_count": c.Heads, "attention.head_count_kv": c.KVHeads} {
		info[c.Arch+"."+name] = value
	}
	template, can := "", []string{"completion"}
	if t := m.Tokenizer(); t != nil && len(t.Templates()) > 0 {
		template = t.Templates()[0].Text
	}
	if layout, err := m.Layout(); err == nil {
		if toolFormat(layout) != "" {
			can = append(can, "tools")
		}
		if layout.Mentions(thinkEnd) {
			can = append(can, "thinking")
		}
	}
	return x.writeJSON(http.StatusOK, map[string]any{"modelfile": "FROM " + m.Name + "\n", "parameters": "", "template": template,
		"details": d.Details, "model_info": info, "capabilities": can, "modified_at": d.Modified})
}

// ollamaVersionOf answers GET /api/version.
func (s *Server) ollamaVersionOf(x *exchange) error {
	return x.writeJSON(http.StatusOK, map[string]string{"version": ollamaVersion})
}

// ollamaPull answers POST /api/pull, which it cannot do: clients must not fill the server's disk.
func (s *Server) ollamaPull(x *exchange) error {
	_, o, err := x.readModel()
	if err != nil {
		return err
	}
	name := "NAME"
	o.readFirst(&name, "model", "name")
	return newError(http.StatusNotImplemented, "invalid_request_error", "not_supported",
		"this server fetches no models: run \"grove pull %s\" beside it, and start it with the model", name)
}
