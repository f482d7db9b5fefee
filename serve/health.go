package serve

import (
	"net/http"
	"sync"
	"time"

	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/inside"
)

// liveness determines whether an engine is still making steps.
type liveness struct {
	mu   sync.Mutex
	step time.Time // the last step, when last checked
	seen time.Time // when that step was first seen with work pending; zero if there was no work
}

// stuckTime is far longer than any step takes.
const stuckTime = time.Minute

// alive reports whether the engine is idle, or has made a step recently.
func (l *liveness) alive(stats engine.Stats, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case stats.Running+stats.Waiting == 0:
		l.seen = time.Time{}
		return true
	case l.seen.IsZero() || !stats.LastStep.Equal(l.step):
		l.step, l.seen = stats.LastStep, now
	}
	return now.Sub(l.seen) < stuckTime
}

// state is the answer of a health check.
type state struct {
	Status string `json:"status"`
}

// ready returns an error until the server knows its models.
func (s *Server) ready() error {
	s.models.mu.Lock()
	defer s.models.mu.Unlock()
	if s.models.list == nil {
		return errLoading
	}
	return nil
}

// health answers that the server has its models.
func (s *Server) health(x *exchange) error {
	if err := s.ready(); err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, state{"ok"})
}

// livez answers that the program works and need not be restarted.
func (s *Server) livez(x *exchange) error {
	alive, now := true, time.Now()
	s.models.each(func(e *entry) {
		if e.model != nil && !e.liveness.alive(inside.EngineStats(e.model), now) {
			alive = false
		}
	})
	if !alive {
		return newError(http.StatusServiceUnavailable, "server_error", "stuck", "an engine has not made a step for %v",
			stuckTime)
	}
	return x.writeJSON(http.StatusOK, state{"ok"})
}

// readyz answers that the server accepts requests.
func (s *Server) readyz(x *exchange) error {
	if s.draining.Err() != nil {
		return errStopped
	}
	if err := s.ready(); err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, state{"ok"})
}
