package grove

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/grovellm/grove/adapt"
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/heads" // and with it the drafters that run one
	"github.com/grovellm/grove/draft/learn"
	_ "github.com/grovellm/grove/draft/lm"     // those that run a model
	_ "github.com/grovellm/grove/draft/lookup" // the one that needs none
	_ "github.com/grovellm/grove/draft/merge"  // several in one tree
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/speculate"
)

// drafting is what a model's generations draft with.
type drafting struct {
	model *model.Model // the draft model that the model was opened with; may be nil
	heads []draft.Head // as it was opened with

	shared draft.Shared // what drafters made for all of them

	mu     sync.Mutex
	opened map[string]*model.Model // every draft model, by path, until the model is closed

	adapt    *AdaptOptions                 // nil: drafters do not learn
	adapters map[learn.Head]*adapt.Adapter // of the heads that do

	controllers map[string]*speculate.Controller // what was learned of drafters, by text, outlives a generation
}

// maxControllers bounds what is kept of drafters; those beyond learn anew in each session.
const maxControllers = 64

// options are those of a loop for a method.
func (d *drafting) options(how method) speculate.Options {
	o := speculate.Options{Accept: how.accept, Uncontrolled: how.uncontrolled}
	if how.uncontrolled || how.drafter == "" || how.drafter == "none" {
		return o
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if o.Controller = d.controllers[how.drafter]; o.Controller == nil && len(d.controllers) < maxControllers {
		if d.controllers == nil {
			d.controllers = map[string]*speculate.Controller{}
		}
		o.Controller = speculate.NewController()
		d.controllers[how.drafter] = o.Controller
	}
	return o
}

// openDraft opens the draft model at path on the model's workers, once.
func (m *Model) openDraft(path string) (*model.Model, error) {
	path = filepath.Clean(path)
	return m.drafting.open(path, func() (*model.Model, error) { return model.Open(path, model.Options{Workers: m.m}) })
}

// openDraftGGUF opens one from the contents of its file.
func (m *Model) openDraftGGUF(data []byte) (*model.Model, error) {
	return m.drafting.open("", func() (*model.Model, error) { return model.OpenGGUF("DraftGGUF", data, model.Options{Workers: m.m}) })
}

// addHeads takes heads in, if they fit.
func (m *Model) addHeads(paths []string, contents [][]byte) error {
	var list []draft.Head
	for _, path := range paths {
		list = append(list, draft.Head{Name: filepath.Clean(path)})
	}
	for i, data := range contents {
		list = append(list, draft.Head{Name: fmt.Sprintf("HeadGGUF[%d]", i), Data: data})
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

func (d *drafting) close() error {
	errs := []error{d.closeAdapters()}
	for _, o := range d.opened {
		errs = append(errs, o.Close())
	}
	d.model, d.opened, d.heads = nil, nil, nil
	return errors.Join(errs...)
}

// drafter makes the drafter that text describes; nil for none.
func (m *Model) drafter(text string) (draft.Drafter, error) {
	if text == "" || text == "none" {
		return nil, nil
	}
	d, err := draft.New(text, m.Target())
	if err == nil {
		return m.learning(d)
	}
	name, _, _ := strings.Cut(text, ":")
	if slices.ContainsFunc(draft.Families(), func(f draft.Family) bool { return f.Name == name }) {
		return nil, optionf("Drafter", "%v", err)
	}
	return nil, optionf("Drafter", "%v, or none", err)
}
