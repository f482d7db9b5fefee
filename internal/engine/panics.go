// Panics. Package speculate turns those in the pass, drafters and requests' functions into errors of the requests.

package engine

import (
	"slices"

	"github.com/grovellm/grove/internal/kernels/par"
)

// try calls a function, and reports and returns a panic in it as an error.
func (e *Engine) try(what string, f func()) (err error) {
	defer func() {
		if err != nil {
			e.o.Loop.Report(err)
		}
	}()
	defer par.Recover(what, &err)
	f()
	return nil
}

// Between calls a function between steps.
func (e *Engine) Between(f func()) error {
	e.passing.Lock()
	defer e.passing.Unlock()
	return e.try("engine: between steps", f)
}

// abandon ends all requests and drops all prefixes after a panic of the engine itself: their state is unknown.
func (e *Engine) abandon(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.o.Loop.Report(err)
	jobs, kept := slices.Concat(e.running, e.queue), e.prefixes.list
	e.running = nil
	e.queue = nil
	e.prefixes.list = nil
	e.prefixes.bytes = 0
	for _, j := range jobs {
		e.stats.Failed++
		j.unwatch()
		j.leave()
		if j.seq != nil {
			_ = e.try("engine: the end of a sequence", j.free) // reported
		}
		e.tellEnd(j, err)
	}
	for _, q := range kept {
		_ = e.try("engine: the end of a prefix", q.free) // reported
	}
}

// tellStep reports a step to a caller.
func (e *Engine) tellStep(j *job, u *Update) error {
	if j.Step == nil {
		return nil
	}
	return e.try("engine: Request.Step", func() { j.Step(u) })
}

// tellEnd tells a caller that the request has ended.
func (e *Engine) tellEnd(j *job, err error) {
	if j.Done != nil {
		_ = e.try("engine: Request.Done", func() { j.Done(err) }) // reported
	}
}
