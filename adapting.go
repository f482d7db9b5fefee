package grove

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/drafters/registry"
)

// AdaptOptions say how drafters with trained heads learn from generated text while the model
// generates. The tokens stay the same; only how many of them are drafted changes. See
// docs/adapt.md.
type AdaptOptions struct {
	// Dir is a folder that keeps what was learned for the next time the model is opened. It has a file for each head,
	// which only one open model can use at a time. Empty: Close discards what was learned.
	Dir string

	Threads int  // processors that a running update takes from decoding; 0: one
	Frozen  bool // use what was learned before, and learn nothing new
}

// adapter returns the adapter of the head that a drafter's text names. The first call makes it.
func (m *Model) adapter(d learn.Learner) (*adapt.Adapter, error) {
	f := &m.drafting
	head := d.Head()
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.adapters[head]; a != nil {
		return a, nil
	}
	given := AdaptOptions{}
	if f.adapt != nil {
		given = *f.adapt
	}
	o := adapt.Options{Threads: given.Threads, Dir: cmp.Or(given.Dir, f.learned.dir), Workers: m.m.Pool()}
	if f.learnShare > 0 {
		o.Tuning = adapt.DefaultTuning()
		o.Tuning.Share = f.learnShare
	}
	a, err := adapt.New(head, m.m.Config.Vocab, o)
	if err != nil {
		return nil, err
	}
	a.Freeze(given.Frozen)
	if f.adapters == nil {
		f.adapters = map[learn.Head]*adapt.Adapter{}
	}
	f.adapters[head] = a
	return a, nil
}

// adapting makes a drafter's head learn.
func (m *Model) adapting(d draft.Drafter) (draft.Drafter, error) {
	l, ok := d.(learn.Learner)
	if !ok {
		return nil, fmt.Errorf("the drafter has no head that can learn")
	}
	a, err := m.adapter(l)
	if err != nil {
		return nil, err
	}
	return a.Wrap(l), nil
}

// learning makes a drafter's head learn if the model was opened for that.
func (m *Model) learning(d draft.Drafter) (draft.Drafter, error) {
	if _, ok := d.(learn.Learner); !ok || m.drafting.adapt == nil || adapt.Of(d) != nil {
		return d, nil
	}
	return m.adapting(d)
}

// adapterOf returns the adapter of the head that a drafter, described as in Request.Drafter, runs.
// The drafter has the modifier +adapt, or the model was opened with Options.Adapt.
func (m *Model) adapterOf(drafter string) (*adapt.Adapter, error) {
	d, err := registry.New(drafter, m.target())
	if err == nil {
		d, err = m.learning(d)
	}
	if err != nil {
		return nil, optionf("Drafter", "%v", err)
	}
	switch a := adapt.Of(d); {
	case a != nil:
		return a, nil
	case m.drafting.adapt == nil:
		return nil, optionf("Adapt", "without it only drafters with the modifier +adapt learn: set it when opening the model")
	}
	return nil, optionf("Drafter", "%q has no head that can learn: name a drafter with a trained head", drafter)
}

// ExportHead writes the current head of a drafter to a GGUF file that Options.Heads takes. A model
// opened with that file makes exactly the same drafts. The drafter, named as in Request.Drafter,
// must have the modifier +adapt, or the model must have been opened with Options.Adapt.
func (m *Model) ExportHead(drafter, path string) error {
	a, err := m.adapterOf(drafter)
	if err != nil {
		return err
	}
	return a.Export(path, "grove adapted "+drafter)
}

// closeAdapters stops learning and saves what was learned.
func (f *drafting) closeAdapters() error {
	var errs []error
	for _, a := range f.adapters {
		if err := a.Close(); err != nil {
			errs = append(errs, fmt.Errorf("saving what the drafter learned: %w", err))
		}
	}
	f.adapters = nil
	return errors.Join(errs...)
}
