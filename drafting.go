package grove

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"sync"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/drafters/lm"       // drafters that run a model
	_ "github.com/grovellm/grove/internal/drafters/lookup" // drafters that need no model
	_ "github.com/grovellm/grove/internal/drafters/merge"  // several drafters in one tree
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads" // this also brings in the drafters that run heads
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/speculate"
)

// drafting is what a model's generations use to draft.
type drafting struct {
	model *model.Model    // the draft model that this model was opened with; may be nil
	heads []registry.Head // the heads that it was opened with
	files string          // distinguishes rows of its files in Options.CacheDir from others; empty: none are kept
	auto  string          // the drafter that "auto" means; empty: registry.Resolve's choice

	shared registry.Shared // what drafters made for all others to use

	mu     sync.Mutex
	opened map[string]*model.Model // every draft model, by path, until the model is closed

	adapt      *AdaptOptions                 // nil: heads learn only with the modifier +adapt
	adapters   map[learn.Head]*adapt.Adapter // of the heads that learn
	learnShare float64                       // the fraction of decoding time that learning may take; 0: the default

	control *speculate.Controller // the engine's
	learned learned

	making   sync.Mutex // held while a drafter is made
	keeping  sync.Mutex // guards the next fields, so that getting a kept drafter does not wait for another to be made
	closed   bool
	drafters map[string]draft.Drafter // by text; drafters, and what was learned about them, outlive a generation
}

// maxDrafters bounds the number of drafters that are kept. Any others are made for one generation,
// and share what was learned about them.
const maxDrafters = 64

// otherDrafters is the name under which what is learned about those others is kept.
const otherDrafters = "other"

// use returns the drafter that text describes, and the name under which what is learned about it is kept; nil for none.
func (d *drafting) use(m *Model, text string) (made draft.Drafter, name string, err error) {
	if text == "" || text == registry.Plain {
		return nil, "", nil
	}
	if made, err = d.find(text); made != nil || err != nil {
		return made, text, err
	}
	d.making.Lock()
	defer d.making.Unlock()
	if made, err = d.find(text); made != nil || err != nil { // another request made it in the meantime
		return made, text, err
	}
	defer par.Recover("the drafter "+text, &err)
	o, err := m.drafter(text)
	switch {
	case err != nil:
		return nil, "", err
	case len(d.drafters) >= maxDrafters:
		return o, otherDrafters, nil
	}
	if err := d.learned.set(text, o.Learned(), d.control.Learned(text)); err != nil {
		return nil, "", err
	}
	d.keeping.Lock()
	defer d.keeping.Unlock()
	if d.drafters == nil {
		d.drafters = map[string]draft.Drafter{}
	}
	d.drafters[text] = o
	return o, text, nil
}

// find returns a drafter that is kept, or nil if it is not.
func (d *drafting) find(text string) (draft.Drafter, error) {
	d.keeping.Lock()
	defer d.keeping.Unlock()
	if d.closed {
		return nil, ErrClosed
	}
	return d.drafters[text], nil
}

// openDraft opens the draft model at path on the model's workers, unless it is open.
func (m *Model) openDraft(path string) (*model.Model, error) {
	return m.drafting.open(filepath.Clean(path), func() (*model.Model, error) {
		return model.Open(path, model.Options{Workers: m.m})
	})
}

// openDraftGGUF opens a draft model from the contents of its file.
func (m *Model) openDraftGGUF(data []byte) (*model.Model, error) {
	return m.drafting.open("", func() (*model.Model, error) {
		return model.OpenGGUF("DraftGGUF", data,
			model.Options{Workers: m.m})
	})
}

// checkDraft refuses a draft model that cannot draft for the model.
func (m *Model) checkDraft() error {
	if m.drafting.model == nil {
		return nil
	}
	if err := lm.Compatible(m.drafting.model, m.target()); err != nil {
		return optionf("Draft", "%v", err)
	}
	return nil
}

// madeFor returns those heads that were made for the model's weights.
func (m *Model) madeFor(offered [][]byte) (list [][]byte, err error) {
	id := m.m.WeightsID()
	for i, data := range offered {
		made, err := heads.MadeFor(headIn("OfferedHeads", i, data))
		if err != nil {
			return nil, err
		}
		if made == id {
			list = append(list, data)
		}
	}
	return list, nil
}

// headIn is the i-th head of a field with the contents of files. No contents are an empty file: nil would mean a path.
func headIn(field string, i int, data []byte) registry.Head {
	if data == nil {
		data = []byte{}
	}
	return registry.Head{Name: fmt.Sprintf("%s[%d]", field, i), Data: data}
}

// addHeads adds heads, if they fit the model.
func (m *Model) addHeads(paths []string, contents [][]byte) error {
	var list []registry.Head
	for _, path := range paths {
		list = append(list, registry.Head{Name: path})
	}
	for i, data := range contents {
		list = append(list, headIn("HeadGGUF", i, data))
	}
	for _, h := range list {
		if err := heads.Check(h, m.m.Config); err != nil {
			return err
		}
	}
	m.drafting.heads = list
	return nil
}

func (d *drafting) open(key string, open func() (*model.Model, error)) (*model.Model, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.opened[key]; o != nil {
		return o, nil
	}
	o, err := open()
	if err != nil {
		return nil, err
	}
	if d.opened == nil {
		d.opened = map[string]*model.Model{}
	}
	d.opened[key] = o
	return o, nil
}

// note records what drafters learned. No decoding may run and no drafter be made meanwhile.
func (d *drafting) note() {
	for text, o := range d.drafters {
		d.learned.note(text, o.Learned(), d.control.Learned(text))
	}
}

// saveLearned saves what drafters learned, while the model is open.
func (m *Model) saveLearned() {
	d := &m.drafting
	d.making.Lock()
	defer d.making.Unlock()
	if d.closed {
		return
	}
	if err := errors.Join(m.engine.Between(d.note), d.learned.save()); err != nil {
		slog.Error("cannot save what drafters learned", "error", err)
	}
}

func (d *drafting) close() error {
	d.making.Lock()
	defer d.making.Unlock()
	d.keeping.Lock()
	defer d.keeping.Unlock()
	d.closed = true
	d.note()
	errs := []error{d.learned.save(), d.closeAdapters()}
	for _, o := range d.opened {
		errs = append(errs, o.Close())
	}
	d.model, d.opened = nil, nil
	d.heads = nil
	return errors.Join(errs...)
}

// drafter makes the drafter that text describes.
func (m *Model) drafter(text string) (draft.Drafter, error) {
	d, err := registry.New(text, m.target())
	if err == nil {
		if err = m.checkDrafter(d); err != nil {
			return nil, optionf("Drafter", "%s: %v", text, err)
		}
		return m.learning(d)
	}
	name, _, _ := registry.Split(text)
	if slices.ContainsFunc(registry.Families(), func(f registry.Family) bool { return f.Name == name }) {
		return nil, optionf("Drafter", "%v", err)
	}
	return nil, optionf("Drafter", "%v, or %s", err, registry.Plain)
}

// checkDrafter refuses a drafter that the engine cannot run.
func (m *Model) checkDrafter(d draft.Drafter) error {
	if !reflect.ValueOf(d).Comparable() {
		return fmt.Errorf("its type %T is not comparable: let its family's New return a pointer", d)
	}
	for _, p := range d.Pages() {
		if !reflect.ValueOf(p).Comparable() {
			return fmt.Errorf("the type %T of its pages is not comparable: let Pages return pointers", p)
		}
	}
	for _, layer := range d.Taps() {
		if layers := m.m.Config.Layers; layer < 0 || layer > layers {
			return fmt.Errorf("it asks for the hidden states of layer %d: this model has 0 to %d", layer, layers)
		}
	}
	return nil
}
