// Steps: which requests take part in one, how long it may take, and what is learned from its time.

package engine

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/grovellm/grove/internal/kernels/fineclock"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
)

// work steps until nothing is left to do.
func (e *Engine) work() {
	for {
		more, err := e.takeStep()
		if err != nil {
			e.abandon(err)
			continue
		}
		if !more {
			return
		}
	}
}

// takeStep takes a step, if there is something to do. An error is a panic of the engine itself: the
// loop turns panics in the pass, in drafters and in callers' functions into errors of the requests.
func (e *Engine) takeStep() (more bool, err error) {
	defer par.Recover("engine: the step", &err)
	if !e.choose() {
		return false, nil
	}
	limits, decoding := e.limits()
	began := fineclock.Now()
	err = e.pass(limits)
	seconds := fineclock.Since(began).Seconds()
	switch {
	case err != nil:
	case !slices.ContainsFunc(e.step, (*speculate.Sequence).Prefilling):
		e.learn(seconds)
	case decoding > 0:
		e.keepPace(limits.Time.Seconds(), seconds)
	}
	e.deliver(err)
	runtime.Gosched() // let callers take the tokens: workers that never wait would hold them up for 10 to 20 ms
	return true, nil
}

// pass takes the loop's step.
func (e *Engine) pass(limits speculate.Limits) error {
	e.passing.Lock()
	defer e.passing.Unlock()
	return e.loop.StepWithin(e.stepContext(), e.step, limits)
}

// stepContext returns the context that may cancel a step: the request's, if only one runs.
func (e *Engine) stepContext() context.Context {
	e.asked.Context = context.Background()
	if len(e.stepping) == 1 {
		e.asked.Context = e.stepping[0].ctx
	}
	return &e.asked
}

// askedContext notes when a step last checked whether the context has ended. A pass checks at every layer: a pass of
// many rows through a large model may take minutes without being stuck.
type askedContext struct {
	context.Context
	last atomic.Int64 // in nanoseconds of Unix time
}

func (c *askedContext) Err() error {
	c.last.Store(time.Now().UnixNano())
	return c.Context.Err()
}

// limits returns the bounds of a step, and how many of its requests decode while others have prompts to read.
func (e *Engine) limits() (l speculate.Limits, decoding int) {
	for _, j := range e.stepping {
		if !j.reading() {
			decoding++
		}
	}
	l = speculate.Limits{Rows: decoding + speculate.DefaultChunk, Time: promptStep}
	if decoding > 0 {
		usual := max(time.Duration(e.usual*float64(time.Second)), e.loop.PlainTime(decoding))
		l.Time = time.Duration(e.pace * float64(max(promptSlowdown*usual, promptTime)))
	}
	return l, decoding
}

// keepPace adjusts the pace to the time of a step that read prompts within a limit. The loop predicts
// a pass's time from its rows only, but rows of a long prompt take longer, as they attend to more. The
// limit shrinks until such steps take as long as they should, down to the time of one without prompts.
func (e *Engine) keepPace(limit, seconds float64) {
	whole := limit / e.pace
	e.pace = min(max(e.pace*math.Pow(whole/seconds, 1./stepMemory), e.usual/whole), 1)
}

// learn learns from the time of a step without prompts.
func (e *Engine) learn(seconds float64) {
	if plain := e.loop.PlainTime(len(e.step)).Seconds(); plain > 0 {
		e.compare(seconds / plain)
	}
	if e.usual == 0 {
		e.usual = seconds
	}
	e.usual += (min(seconds, 2*e.usual) - e.usual) / stepMemory
}

// compare counts a step whose time is that of the given number of plain passes.
func (e *Engine) compare(passes float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	undrafted := !slices.ContainsFunc(e.step, func(s *speculate.Sequence) bool { return s.Budget() > 1 })
	for _, j := range e.stepping {
		tokens := float64(len(j.seq.Fresh()))
		if j.Name != "" {
			e.speeds[j.Name] = e.speeds[j.Name].plus(tokens, passes)
		}
		if undrafted {
			e.undrafted = e.undrafted.plus(tokens, passes)
		}
	}
}

// reading reports whether the request's prompt is still being read.
func (j *job) reading() bool { return len(j.seq.Output()) == 0 }

// choose prepares a step. It returns false when there is nothing to do; the goroutine then ends.
func (e *Engine) choose() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	ready := false
	for {
		for _, j := range slices.Concat(e.running, e.queue) {
			if j.ctx.Err() != nil {
				e.cancel(j)
			}
		}
		e.makeRoom()
		e.admit()
		e.stepping, e.step = e.stepping[:0], e.step[:0]
		for _, j := range e.running {
			if j.takesPart() {
				e.stepping, e.step = append(e.stepping, j), append(e.step, j.seq)
			}
		}
		if len(e.step) > 0 {
			return true
		}
		switch {
		case len(e.running)+len(e.queue) > 0:
			e.wake.Wait()
		case e.closed || ready:
			e.working = false
			if e.idle != nil {
				close(e.idle)
				e.idle = nil
			}
			return false
		default:
			ready = !e.readyMemory()
		}
	}
}

// readyMemory takes memory for some rows in advance, without the lock, as far as Ready asks and prefixes leave room.
func (e *Engine) readyMemory() bool {
	left := e.prefixMemory() - e.inUse()
	e.mu.Unlock()
	defer e.mu.Lock()
	return slices.ContainsFunc(e.o.Pages, func(p *nn.Pages) bool {
		return p.Ready(int(min(int64(e.o.Ready), left/int64(max(p.RowBytes(), 1)))))
	})
}
