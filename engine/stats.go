package engine

import (
	"errors"
	"time"

	"github.com/grovellm/grove/speculate"
)

// Errors of Submit.
var (
	ErrFull   = errors.New("engine: the queue is full: try again later, or run the engine with a longer queue")
	ErrClosed = errors.New("engine: it takes no more requests")
)

// Stats say what an engine is doing and what it did.
type Stats struct {
	Running, Waiting int // requests

	Submitted int64 // requests ever
	Finished  int64 // requests that ended by themselves
	Cancelled int64 // whose context ended
	Failed    int64 // by an error of their own
	Preempted int64 // times that a request gave its memory up, to go on later

	PromptTokens int64 // read, of requests that started
	CachedTokens int64 // of those, how many an earlier request had computed
	Tokens       int64 // emitted

	CacheBytes  int64 // memory of keys and values in use, kept prefixes included
	PrefixBytes int64 // of those, what only kept prefixes use, at most
	CacheLimit  int64 // 0: none

	Steps    int64
	LastStep time.Time // when the last step ended
	Drafters []DrafterStats
}

// DrafterStats say what a drafter brought to the requests that ended.
type DrafterStats struct {
	Name string
	speculate.Stats
	Speedup float64 // speed of its rounds over that of plain rounds, as the controller measured both; 0: not known yet
}
