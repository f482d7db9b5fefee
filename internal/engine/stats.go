package engine

import (
	"errors"
	"time"

	"github.com/grovellm/grove/internal/engine/pagestore"
	"github.com/grovellm/grove/internal/speculate"
)

// Errors of Submit.
var (
	ErrFull   = errors.New("engine: the queue is full: try again later, or run the engine with a longer queue")
	ErrClosed = errors.New("the model is closed, or closing: it takes no more requests")
)

// Stats describe what an engine is doing and what it has done.
type Stats struct {
	Running, Waiting int            // requests
	Keys             map[string]int // waiting requests of each key

	Submitted int64 // requests ever submitted
	Finished  int64 // requests that completed
	Cancelled int64 // requests whose context ended
	Failed    int64 // requests that ended with an error of their own
	Preempted int64 // times that a request gave up its memory, to go on later

	PromptTokens int64 // in the prompts of requests that started
	CachedTokens int64 // of those, how many an earlier request had computed
	Tokens       int64 // emitted

	CacheBytes   int64 // memory of keys and values in use, including kept prefixes
	RunningBytes int64 // at most this much of it belongs to running requests
	PrefixBytes  int64 // at most this much belongs to prefixes, which share with each other and with running requests
	CacheLimit   int64 // 0: none

	Files  pagestore.Stats // of the blocks of prefixes in files
	Missed int64           // whole blocks of prompts that were in neither files nor memory

	Steps    int64
	LastStep time.Time // when the last step ended, or a layer of the current one
	Drafters []DrafterStats
}

// DrafterStats sum up a drafter's work for the requests that have ended.
type DrafterStats struct {
	Name string
	speculate.Stats
	Speedup float64 // its tokens per second over those of plain rounds with as many requests; 0: not known yet
}

// speed is how many tokens rounds emitted, and how many plain ones would have in the same time, by the loop's
// prediction of plain passes.
type speed struct{ tokens, plain float64 }

func (s speed) plus(tokens, plain float64) speed { return speed{s.tokens + tokens, s.plain + plain} }

// over returns the speed over that of rounds without drafts, which make up for the prediction: if other programs use
// the processors, passes take longer on average than predicted. It is 0 while not known.
func (s speed) over(undrafted speed) float64 {
	switch {
	case s.plain == 0:
		return 0
	case undrafted.tokens == 0:
		return s.tokens / s.plain
	}
	return s.tokens / s.plain * undrafted.plain / undrafted.tokens
}
