// Models, opened by commands.

package command

import (
	"fmt"
	"path/filepath"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/models"
)

// Close closes a model, and reports a failure: closing saves what drafters learned.
func (p *Program) Close(m *grove.Model) {
	if err := m.Close(); err != nil {
		fmt.Fprintf(p.Stderr, "%s: %v\n", p.Name, err)
	}
}

// OpenWeights loads a model, showing its progress.
func (p *Program) OpenWeights(path string, kv KVFlag) (*model.Model, error) {
	t, err := kv.Parse()
	if err != nil {
		return nil, err
	}
	bar := p.Progress("loading", true)
	defer bar.End()
	return model.Open(path, model.Options{Threads: p.Threads, KV: t, Progress: bar.Set})
}

// OwnName returns the name that a model gives itself, or else its file's, or Embedded; "" if there is no model.
func OwnName(m *model.Model, path string) string {
	switch {
	case m == nil:
		return ""
	case m.Config.Name != "":
		return PlainText(m.Config.Name)
	case path == "":
		return Embedded
	}
	return filepath.Base(path)
}

// OpenBare opens a model to compute with, without drafters: the one at path, or grove's own if path is empty.
func (p *Program) OpenBare(path string, kv KVFlag) (m *model.Model, err error) {
	t, err := kv.Parse()
	if err != nil {
		return nil, err
	}
	bar := p.Progress("loading", true)
	o := model.Options{Threads: p.Threads, KV: t, Progress: bar.Set}
	if path == "" {
		m, err = model.OpenGGUF(Embedded, models.Target(), o)
	} else {
		m, err = model.Open(path, o)
	}
	bar.End()
	return m, err
}
