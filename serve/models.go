// The models of a server: which are loaded, who uses them, and what memory they take.

package serve

import (
	"cmp"
	"context"
	"errors"
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
	Bytes int64                  // memory that it takes when it is loaded: weights, what drafts for it, keys and values
	Load  func() (*Model, error) // called by one goroutine at a time; the server closes the model
}

// defaultKeepAlive is how long a model stays loaded after its last request, where Options do not say.
const defaultKeepAlive = 5 * time.Minute

// models are those of a server.
type models struct {
	o        *Options
	draining <-chan struct{} // closed when requests that wait are to be refused

	mu      sync.Mutex
	list    []*entry        // nil: not known yet
	used    int64           // bytes of those that are loaded or being loaded
	waiting int             // requests that wait until a model is loaded
	closing <-chan struct{} // closed when all models that were unloaded are closed; nil: none was
	left    chan struct{}   // closed when a model lost its last user, or was loaded; nil: nobody waits
	ended   bool            // models that come are closed at once
}

// roomWait is how long a request waits for the requests of other models to end, where these leave
// no memory for its own: a client whose last answer has just ended is not refused.
const roomWait = 2 * time.Second

// entry is a model of the list.
type entry struct {
	Source
	fixed, dropped bool // it was given loaded, and stays so; another list has come

	model   *Model    // nil: it is not loaded
	loading *loading  // under way; nil: none
	users   int       // requests that use it or wait for it
	last    time.Time // when the last of them ended
	expiry  *time.Timer
	loads   int64      // times that it was loaded
	failed  error      // of the last load
	meta    *modelMeta // of the last load
	shown   *ollamaShown

	liveness liveness
}

// loading is one load of a model.
type loading struct {
	done chan struct{} // closed at its end
	err  error         // set before
}

// set takes the list in. Models of the list before are unloaded when nobody uses them.
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

// add takes a further model in, unless there is one of its name.
func (p *models) add(s Source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.ContainsFunc(p.list, func(e *entry) bool { return e.Name == s.Name }) {
		p.list = append(slices.Clip(p.list), &entry{Source: s})
	}
}

// find returns the entry of a name: any name means the model where there is one, no name the first of several.
func (p *models) find(name string) (*entry, error) {
	switch {
	case p.list == nil:
		return nil, errLoading
	case len(p.list) == 1 || name == "" && len(p.list) > 0:
		return p.list[0], nil
	}
	return p.named(name)
}

// named returns the entry that has a name, which may end with the tag that Ollama's clients add.
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

// use returns the model of a name, loaded. It stays so until release is called. ctx ends the wait.
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

// await waits until an entry that has a user is loaded. It unlocks p.mu meanwhile.
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
	if e.model != nil { // another request had it loaded
		return nil
	}
	l := e.loading
	if err := p.wait(ctx, l.done, nil, nil); err != nil {
		return err
	}
	if l.err == nil && e.model == nil { // the server closed it meanwhile
		return errStopped
	}
	return l.err
}

// wait waits for a channel with p.mu unlocked; late is the error at a timeout.
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

// leave takes a user off an entry.
func (p *models) leave(e *entry) {
	e.users--
	e.last = time.Now()
	if e.users == 0 {
		p.rest(e)
		p.tellLeft()
	}
}

// tellLeft has requests that wait for memory look again.
func (p *models) tellLeft() {
	if p.left != nil {
		close(p.left)
		p.left = nil
	}
}

// each calls f for every entry, in order, while none changes.
func (p *models) each(f func(*entry)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.list {
		f(e)
	}
}

// view calls f for the entry that find finds for a name, while none changes.
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

// state is what clients are told of an entry, in llama.cpp's words.
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
	Failed bool   `json:"failed,omitempty"` // the last load
}

// SetModel makes the server ready with a model that is loaded. It must stay open until Serve has returned.
func (s *Server) SetModel(m *Model) {
	m.before = inside.EngineStats(m)
	s.models.set([]*entry{{Source: Source{Name: m.Name}, model: m, fixed: true, meta: newModelMeta(m)}})
}

// SetSources makes the server ready with models that it loads when requests name them, unloads and closes. The names
// differ. A single one is loaded at once: the error is that of its load. Earlier models go with their last request.
func (s *Server) SetSources(list []Source) error {
	entries := make([]*entry, len(list))
	for i, source := range list {
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
