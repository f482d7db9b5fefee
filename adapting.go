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

// AdaptOptions say how drafters with trained heads learn from what is generated, beside generating.
// The text stays the same to the token; what changes is how much of it is drafted. See
// docs/adapt.md.
type AdaptOptions struct {
	// Dir is a folder that keeps what was learned until the model is opened again: a file for each
	// head, which one open model uses at a time. Empty: Close forgets it.
	Dir string

	Threads int  // processors that an update takes from decoding while it runs; 0: one
	Frozen  bool // use what was learned before, and learn no more
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
		return nil, optionf("Adapt", "no drafter learns without it but those with the modifier +adapt: open the model with it")
	}
	return nil, optionf("Drafter", "%q has no head that can learn: name a drafter with a trained head", drafter)
}

// ExportHead writes the head of a drafter, as it now is, as a GGUF file that Options.Heads takes. A
// model opened with that file drafts the same to the bit. The drafter, described as in
// Request.Drafter, has the modifier +adapt, or the model was opened with Options.Adapt.
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
			errs = append(errs, fmt.Errorf("what the drafter learned: %w", err))
		}
	}
	f.adapters = nil
	return errors.Join(errs...)
}
