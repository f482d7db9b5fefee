package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/grovellm/grove/internal/callform"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/model"
)

// Requests of Ollama's clients about models: /api/tags, show, ps, version, pull.

// ollamaVersion is the version of Ollama whose API this is; clients ask for it.
const ollamaVersion = "0.33.0"

// ollamaModel describes a model.
type ollamaModel struct {
	Name     string        `json:"name"`
	Model    string        `json:"model"`
	Modified time.Time     `json:"modified_at,omitzero"`
	Size     int           `json:"size"`
	Digest   string        `json:"digest"` // of this description, so that the file is not read again
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

// ollamaList is a list of models.
type ollamaList[T any] struct {
	Models []T `json:"models"`
}

// runningModel describes a loaded model.
type runningModel struct {
	ollamaModel
	Expires time.Time `json:"expires_at"`
	VRAM    int       `json:"size_vram"`
	Context int       `json:"context_length"`
}

// ollamaShown describes a model for /api/show.
type ollamaShown struct {
	model        ollamaModel
	Modelfile    string         `json:"modelfile"`
	Parameters   string         `json:"parameters"`
	Template     string         `json:"template"`
	Details      ollamaDetails  `json:"details"`
	Info         map[string]any `json:"model_info"`
	Capabilities []string       `json:"capabilities"`
	Modified     time.Time      `json:"modified_at"`
}

func (s *Server) newOllamaModel(name string, size int, d ollamaDetails) ollamaModel {
	return ollamaModel{Name: name, Model: name, Modified: s.began, Size: size, Details: d,
		Digest: fmt.Sprintf("%x", sha256.Sum256([]byte(name)))}
}

// describe describes a loaded model.
func (s *Server) describe(m *Model) *ollamaShown {
	c, t := inside.Target(m).Model.Config, inside.Target(m).Model
	size := fmt.Sprintf("%.2fM", float64(c.Parameters())/1e6)
	if c.Parameters() >= 1e9 {
		size = fmt.Sprintf("%.1fB", float64(c.Parameters())/1e9)
	}
	d := ollamaDetails{Format: "gguf", Family: c.Arch, Families: []string{c.Arch}, Parameters: size,
		Quantization: model.FileType(t.Blocks[0].Out.W.Type()).String()}
	info := map[string]any{"general.architecture": c.Arch, "general.parameter_count": c.Parameters()}
	for name, value := range map[string]int{"context_length": m.Context(), "embedding_length": c.Hidden,
		"block_count": c.Layers, "feed_forward_length": c.FFN, "vocab_size": c.Vocab, "attention.head_count": c.Heads,
		"attention.head_count_kv": c.KVHeads} {
		info[c.Arch+"."+name] = value
	}
	can := []string{"completion"}
	if layout, err := m.Layout(); err == nil {
		if _, err := layout.CallForm(); err == nil {
			can = append(can, "tools")
		}
		if callform.MarksOf(layout).End != "" {
			can = append(can, "thinking")
		}
	}
	if t := m.Tokenizer(); t != nil {
		if _, ok := t.Infill("", ""); ok {
			can = append(can, "insert")
		}
	}
	return &ollamaShown{model: s.newOllamaModel(m.Name, inside.Target(m).Model.WeightBytes(), d),
		Modelfile: "FROM " + m.Name + "\n",
		Template:  m.template(), Details: d, Info: info, Capabilities: can, Modified: s.began}
}

// described returns the description of an entry, or nil if its model has not been loaded yet. The models are locked.
func (s *Server) described(e *entry) *ollamaShown {
	if e.shown == nil && e.model != nil {
		e.shown = s.describe(e.model)
	}
	return e.shown
}

// ollamaTags answers GET /api/tags. Little is known about a model that has not been loaded yet.
func (s *Server) ollamaTags(x *exchange) error {
	if err := s.ready(); err != nil {
		return err
	}
	list := []ollamaModel{}
	s.models.each(func(e *entry) {
		m := s.newOllamaModel(e.Name, int(e.Bytes), ollamaDetails{Format: "gguf"})
		if d := s.described(e); d != nil {
			m = d.model
		}
		list = append(list, m)
	})
	return x.writeJSON(http.StatusOK, ollamaList[ollamaModel]{list})
}

// ollamaRunning answers GET /api/ps with the loaded models, and when they will be unloaded.
func (s *Server) ollamaRunning(x *exchange) error {
	if err := s.ready(); err != nil {
		return err
	}
	list := []runningModel{}
	s.models.each(func(e *entry) {
		if e.model == nil {
			return
		}
		expires := time.Now().AddDate(100, 0, 0) // it stays loaded as long as the server runs
		if keep := s.o.KeepAlive; !e.fixed && keep >= 0 {
			expires = time.Now().Add(keep)
			if e.users == 0 {
				expires = e.last.Add(keep)
			}
		}
		shown := s.described(e).model
		shown.Modified = time.Time{} // Ollama shows it only in other lists
		list = append(list, runningModel{shown, expires, 0, e.model.Context()})
	})
	return x.writeJSON(http.StatusOK, ollamaList[runningModel]{list})
}

// ollamaShow answers POST /api/show. It loads a model only once: clients show all models to choose one.
func (s *Server) ollamaShow(x *exchange) error {
	var b nameBody
	if err := x.readBody(&b); err != nil {
		return err
	}
	name := b.name()
	var d *ollamaShown
	look := func(e *entry) { d = s.described(e) }
	err := s.models.view(s.models.find, name, look)
	if err == nil && d == nil {
		if _, err = x.useModel(name); err == nil {
			err = s.models.view(s.models.find, name, look)
		}
	}
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, d)
}

// nameBody is a body that names a model.
type nameBody struct {
	Model  field[string] `json:"model"`
	Name   field[string] `json:"name"`
	Stream field[bool]   `json:"stream"`
}

func (b *nameBody) name() string { return b.Model.or(b.Name.value) }

// ollamaVersionOf answers GET /api/version.
func (s *Server) ollamaVersionOf(x *exchange) error {
	return x.writeJSON(http.StatusOK, struct {
		Version string `json:"version"`
	}{ollamaVersion})
}

// Puller fetches a model that a client names, and reports the progress of each stage in bytes.
type Puller func(ctx context.Context, name string, progress func(stage string, done, total int64)) (Source, error)

// pulled is one line of an answer to POST /api/pull.
type pulled struct {
	Status string `json:"status,omitempty"`
	Total  int64  `json:"total,omitempty"`
	Done   int64  `json:"completed,omitempty"`
	Error  string `json:"error,omitempty"`
}

// ollamaPull answers POST /api/pull: it fetches a model, which is then served. Without
// Options.Pull, clients may not fill the server's disk.
func (s *Server) ollamaPull(x *exchange) error {
	var b nameBody
	if err := x.readBody(&b); err != nil {
		return err
	}
	name := b.name()
	switch {
	case s.serves(name):
		return x.writeJSON(http.StatusOK, pulled{Status: "success"})
	case s.o.Pull != nil:
		return s.pull(x, name, b.Stream.or(true))
	}
	return newError(http.StatusNotImplemented, "invalid_request_error", "not_supported",
		"this server does not fetch models: start it with --allow-pull, or run \"grove pull %s\" on its machine and start it with the model",
		cmp.Or(name, "NAME"))
}

// serves reports whether a model has exactly that name, apart from the tag that Ollama's clients append.
func (s *Server) serves(name string) (found bool) {
	name = strings.TrimSuffix(name, ":latest")
	s.models.each(func(e *entry) { found = found || e.Name == name })
	return found
}

// pull fetches a model, and adds it to the list.
func (s *Server) pull(x *exchange, name string, stream bool) error {
	ctx, end := x.limit()
	defer end(nil)
	line := func(p pulled) { // ctx ends if the client has gone
		if !stream || ctx.Err() != nil {
			return
		}
		text, _ := json.Marshal(p) // strings and numbers
		if x.status == 0 {
			x.Header().Set("Content-Type", "application/x-ndjson")
		}
		if _, err := x.Write(append(text, '\n')); err == nil {
			_ = x.flush()
		}
	}
	line(pulled{Status: "pulling manifest"})
	var mu sync.Mutex
	said, last := "", time.Time{}
	source, err := s.o.Pull(ctx, name, func(stage string, done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		if stage != said || done == total || time.Since(last) > 200*time.Millisecond {
			said, last = stage, time.Now()
			line(pulled{Status: stage + " " + name, Done: done, Total: total})
		}
	})
	if err == nil {
		s.models.add(source)
	}
	mu.Lock()
	defer mu.Unlock()
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		if x.status != 0 {
			line(pulled{Error: err.Error()})
		}
		return newError(http.StatusBadGateway, "server_error", "pull_failed", "%v", err)
	case !stream:
		return x.writeJSON(http.StatusOK, pulled{Status: "success"})
	}
	line(pulled{Status: "success"})
	return nil
}
