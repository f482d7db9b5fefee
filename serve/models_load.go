package serve

// Loading and unloading models, and the memory that they take.

import (
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/kernels/par"
)

// busyError says that models with requests in progress take the memory.
type busyError struct{ error }

// load starts to load an entry, once there is room.
func (p *models) load(e *entry) error {
	if p.ended {
		return errStopped
	}
	if err := p.makeRoom(e); err != nil {
		return err
	}
	l := &loading{done: make(chan struct{})}
	closing := p.closing
	began := time.Now()
	e.loading = l
	p.used += e.Bytes
	go func() {
		if closing != nil {
			<-closing // their memory is in use until then
		}
		m, err := e.tryLoad()
		p.mu.Lock()
		defer p.mu.Unlock()
		e.loading, e.failed = nil, err
		if err != nil {
			if p.list != nil { // otherwise SetSources returns it
				p.o.Log.Error("cannot load a model", "model", e.Name, "error", err)
			}
			p.used -= e.Bytes
			l.err = newError(http.StatusInternalServerError, "server_error", "load_failed",
				"the model %q cannot be loaded: the server's log says why", e.Name)
		} else {
			p.o.Log.Info("loaded", "model", e.Name, "drafter", m.Drafter, "context", m.Context(),
				"took_ms", ms(time.Since(began)))
			m.Name, m.before = e.Name, inside.EngineStats(m)
			e.model = m
			e.meta, e.shown = newModelMeta(m), nil // the file may have been replaced
			e.loads++
		}
		close(l.done)
		if e.users == 0 {
			p.rest(e)
		}
		p.tellLeft()
	}()
	return nil
}

// tryLoad loads the model. It returns a panic as an error, so that other models' requests go on.
func (e *entry) tryLoad() (m *Model, err error) {
	defer par.Recover("the load", &err)
	if m, err = e.Load(); m == nil && err == nil {
		err = errors.New("Source.Load returned neither a model nor an error")
	}
	return m, err
}

// makeRoom unloads models that nobody uses, the least recently used first, until the entry's model fits.
func (p *models) makeRoom(e *entry) error {
	if p.o.Memory == 0 {
		return nil
	}
	idle, most := []*entry{}, p.used
	for _, o := range p.list {
		if o.model != nil && o.users == 0 && !o.fixed {
			idle = append(idle, o)
			most -= o.Bytes
		}
	}
	full := func(format string, args ...any) error {
		return newError(http.StatusServiceUnavailable, "server_error", "out_of_memory", format, args...)
	}
	switch {
	case e.Bytes > p.o.Memory:
		return full("the model %q takes %d MiB, and the server has %d MiB for models: start the server with a larger --model-memory",
			e.Name, e.Bytes>>20, p.o.Memory>>20)
	case most+e.Bytes > p.o.Memory:
		return &busyError{full("the model %q takes %d MiB, and models that answer requests take %d of the server's %d MiB: "+
			"try again later",
			e.Name, e.Bytes>>20, most>>20, p.o.Memory>>20)}
	}
	slices.SortFunc(idle, func(a, b *entry) int { return a.last.Compare(b.last) })
	for ; p.used+e.Bytes > p.o.Memory; idle = idle[1:] {
		p.unload(idle[0], "memory is needed")
	}
	return nil
}

// rest unloads an entry after it has had no users for its keep-alive time.
func (p *models) rest(e *entry) {
	keep := p.o.KeepAlive
	switch {
	case e.model == nil || e.fixed:
	case p.ended || e.dropped:
		p.unload(e, "it is no longer served")
	case keep < 0:
	case e.expiry != nil:
		e.expiry.Reset(keep)
	default:
		e.expiry = time.AfterFunc(keep, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if e.model != nil && e.users == 0 && time.Since(e.last) >= keep {
				p.unload(e, "it was idle")
			}
		})
	}
}

// unload closes an entry's model. Its requests have ended, or are being cancelled.
func (p *models) unload(e *entry, why string) {
	m := e.model
	before := p.closing
	closed := make(chan struct{})
	e.model, p.closing = nil, closed
	p.used -= e.Bytes
	p.o.Log.Info("unloading", "model", e.Name, "because", why)
	go func() {
		if err := m.Close(); err != nil {
			p.o.Log.Error("cannot close a model", "model", e.Name, "error", err)
		}
		debug.FreeOSMemory()
		if before != nil {
			<-before
		}
		close(closed)
	}()
}

// CloseModels closes the models that the server loaded, and waits until they are closed. A model
// that is still loading is closed later. All requests must have ended; new ones are refused. Serve
// calls it when it ends.
func (s *Server) CloseModels() {
	p := &s.models
	p.mu.Lock()
	p.ended = true
	for _, e := range p.list {
		if e.model != nil && !e.fixed {
			p.unload(e, "the server shuts down")
		}
	}
	closing := p.closing
	p.mu.Unlock()
	if closing != nil {
		<-closing
	}
}
