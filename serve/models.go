// The models of a server: which are loaded, who uses them, and how much memory they take.

package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/grovellm/grove/internal/inside"
)

// Source is a model that the server loads when a request names it.
type Source struct {
	Name  string                 // what clients call it
	Bytes int64                  // memory that it takes when loaded: weights, draft model and heads, keys and values
	Load  func() (*Model, error) // called by one goroutine at a time; the server closes the model
}

// defaultKeepAlive is how long a model stays loaded after its last request, unless Options say otherwise.
const defaultKeepAlive = 5 * time.Minute

// models are the models of a server.
type models struct {
	o        *Options
	draining <-chan struct{} // closed when waiting requests are to be refused

	mu      sync.Mutex
	list    []*entry        // nil until known
	used    int64           // bytes of models that are loaded or being loaded
	waiting int             // requests that wait for a model to load
	closing <-chan struct{} // closed when all unloaded models are closed; nil if none was unloaded
	left    chan struct{}   // closed when a model loses its last user or is loaded; nil if nobody waits
	ended   bool            // close new models at once
}

// roomWait is how long a request waits for requests of other models to end, if these leave no
// memory for its own: so that a client whose last answer has just ended is not refused.
const roomWait = 2 * time.Second

// entry is a model of the list.
type entry struct {
	Source
	fixed, dropped bool // given already loaded, and stays loaded; a later list has replaced it

	model   *Model    // nil if not loaded
	loading *loading  // the load in progress; nil if none
	users   int       // requests that use it or wait for it
	last    time.Time // when the last of them ended
	expiry  *time.Timer
	loads   int64      // how often it was loaded
	failed  error      // of the last load
	meta    *modelMeta // of the last load
	shown   *ollamaShown

	liveness liveness
}

// loading is one load of a model.
type loading struct {
	done chan struct{} // closed when the load ends
	err  error         // set before done is closed
}

// set installs a list. Models of the previous list are unloaded when nobody uses them.
func (p *models) set(list []*entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.list {
		e.dropped = true
		e.users++
		p.leave(e)
	}
	p.list = list
}

// add adds a model, unless there is one with its name.
func (p *models) add(s Source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.ContainsFunc(p.list, func(e *entry) bool { return e.Name == s.Name }) {
		p.list = append(slices.Clip(p.list), &entry{Source: s})
	}
}

// find returns the entry for a name. Any name matches an only model; an empty name matches the first of several.
func (p *models) find(name string) (*entry, error) {
	switch {
	case p.list == nil:
		return nil, errLoading
	case len(p.list) == 1 || name == "" && len(p.list) > 0:
		return p.list[0], nil
	}
	return p.named(name)
}

// named returns the entry with a name, which may have the tag that Ollama's clients append.
func (p *models) named(name string) (*entry, error) {
	short := strings.TrimSuffix(name, ":latest")
	for _, e := range p.list {
		if e.Name == name || e.Name == short {
			return e, nil
		}
	}
	return nil, noModel(name)
}

func noModel(name string) error {
	return newError(http.StatusNotFound, "invalid_request_error", "model_not_found",
		"there is no model %q: GET /v1/models lists the models", name)
}

// use returns the model of a name, loaded. It stays loaded until release is called. ctx ends the wait.
func (p *models) use(ctx context.Context, name string) (m *Model, release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, err := p.find(name)
	if err != nil {
		return nil, nil, err
	}
	e.users++
	if err := p.await(ctx, e); err != nil {
		p.leave(e)
		return nil, nil, err
	}
	return e.model, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.leave(e)
	}, nil
}

// await waits until an entry that has a user is loaded. It unlocks p.mu while it waits.
func (p *models) await(ctx context.Context, e *entry) (err error) {
	if e.model != nil {
		return nil
	}
	if p.o.Waiting > 0 && p.waiting >= p.o.Waiting {
		return errFull
	}
	p.waiting++
	defer func() { p.waiting-- }()
	timeout := time.After(roomWait)
	for e.model == nil && e.loading == nil {
		var busy *busyError
		err := p.load(e)
		if errors.As(err, &busy) {
			if p.left == nil {
				p.left = make(chan struct{})
			}
			err = p.wait(ctx, p.left, timeout, busy.error)
		}
		if err != nil {
			return err
		}
	}
	if e.model != nil { // another request has loaded it
		return nil
	}
	l := e.loading
	if err := p.wait(ctx, l.done, nil, nil); err != nil {
		return err
	}
	if l.err == nil && e.model == nil { // the server has closed it since
		return errStopped
	}
	return l.err
}

// wait waits for a channel with p.mu unlocked; late is the error after a timeout.
func (p *models) wait(ctx context.Context, c <-chan struct{}, timeout <-chan time.Time, late error) error {
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-c:
		return nil
	case <-timeout:
		return late
	case <-p.draining:
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave removes a user from an entry.
func (p *models) leave(e *entry) {
	e.users--
	e.last = time.Now()
	if e.users == 0 {
		p.rest(e)
		p.tellLeft()
	}
}

// tellLeft makes requests that wait for memory look again.
func (p *models) tellLeft() {
	if p.left != nil {
		close(p.left)
		p.left = nil
	}
}

// each calls f for every entry, in order, while none can change.
func (p *models) each(f func(*entry)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.list {
		f(e)
	}
}

// view calls f for the entry that find returns for a name, while none can change.
func (p *models) view(find func(name string) (*entry, error), name string, f func(*entry)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, err := find(name)
	if err == nil {
		f(e)
	}
	return err
}

// loaded returns the models that are loaded.
func (p *models) loaded() (list []*Model) {
	p.each(func(e *entry) {
		if e.model != nil {
			list = append(list, e.model)
		}
	})
	return list
}

// drain waits until no request uses a model, or ctx ends.
func (p *models) drain(ctx context.Context) {
	for busy := true; busy && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		busy = false
		p.each(func(e *entry) { busy = busy || e.users > 0 })
	}
}

// state returns an entry's state for clients, in llama.cpp's words.
func (e *entry) state() modelState {
	s := modelState{Value: "unloaded", Failed: e.failed != nil}
	switch {
	case e.model != nil:
		s.Value = "loaded"
	case e.loading != nil:
		s.Value = "loading"
	}
	return s
}

// modelState is the field "status" of a model.
type modelState struct {
	Value  string `json:"value"`
	Failed bool   `json:"failed,omitempty"` // of the last load
}

// SetModel makes the server ready with a loaded model. The model must stay open until Serve has returned.
func (s *Server) SetModel(m *Model) {
	m.before = inside.EngineStats(m)
	s.models.set([]*entry{{Source: Source{Name: m.Name}, model: m, fixed: true, meta: newModelMeta(m)}})
}

// SetSources makes the server ready with models that it loads on request, unloads and closes. Names must differ. A
// single model is loaded at once: the error is that of its load. Earlier models end with their last request.
func (s *Server) SetSources(list []Source) error {
	entries := make([]*entry, len(list))
	for i, source := range list {
		if slices.ContainsFunc(list[:i], func(s Source) bool { return s.Name == source.Name }) {
			return fmt.Errorf("serve: two sources are named %q: give one of them another name", source.Name)
		}
		entries[i] = &entry{Source: source}
	}
	if len(list) == 1 {
		if err := s.models.preload(entries[0]); err != nil {
			return err
		}
	}
	s.models.set(entries)
	return nil
}

// preload loads an entry that is not in the list yet.
func (p *models) preload(e *entry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.users++
	err := p.await(context.Background(), e)
	p.leave(e)
	return cmp.Or(e.failed, err)
}
