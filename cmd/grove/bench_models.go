package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/grovellm/grove/draft"
	_ "github.com/grovellm/grove/draft/hostile" // what the controller is measured against
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/models"
)

// pair is a target and its draft model, below the façade, where measurements are taken.
type pair struct {
	draft.Target
	name, draftName string
	opened          map[string]*model.Model // draft models by path
}

// openPair opens the models that the flags name. Without any they are those in the program.
func (f *modelFlags) openPair(p *program) (*pair, error) {
	if f.Context < 0 {
		return nil, usagef("--context %d: want 0 (what the model was made for) or more", f.Context)
	}
	o := model.Options{Threads: p.Threads, Context: f.Context}
	var err error
	if o.Pad, o.PadType, err = f.padding(); err != nil {
		return nil, err
	}
	bar := p.progress("loading", true)
	defer bar.end()
	o.Progress = bar.set
	t := &pair{name: f.Model, draftName: f.DraftModel, opened: map[string]*model.Model{}}
	if f.Model == "" {
		t.name = embedded
		t.Model, err = model.OpenGGUF(embedded, models.Target(), o)
	} else {
		t.Model, err = model.Open(f.Model, o)
	}
	if err != nil {
		return nil, err
	}
	t.Vocab, t.Context, t.Open = t.Model.Config.Vocab, t.Model.Context(), t.open
	switch {
	case f.DraftModel != "":
		t.Draft, err = t.open(f.DraftModel)
	case f.Model == "":
		t.draftName = embedded
		t.Draft, err = model.OpenGGUF(embedded, models.Draft(), model.Options{Workers: t.Model})
		t.opened[""] = t.Draft
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the draft model: %w", err), t.Close())
	}
	t.name = ownName(t.Model, t.name)
	if t.Draft != nil {
		t.draftName = ownName(t.Draft, t.draftName)
	}
	return t, nil
}

// ownName is what a model calls itself, or its path.
func ownName(m *model.Model, path string) string {
	if m.Config.Name != "" {
		return m.Config.Name
	}
	return filepath.Base(path)
}

// open opens a draft model on the target's workers, once.
func (t *pair) open(path string) (*model.Model, error) {
	if m := t.opened[path]; m != nil {
		return m, nil
	}
	m, err := model.Open(path, model.Options{Workers: t.Model})
	if err == nil {
		t.opened[path] = m
	}
	return m, err
}

// Close closes all that was opened.
func (t *pair) Close() error {
	var errs []error
	for _, m := range t.opened {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	return errors.Join(append(errs, t.Model.Close())...)
}
