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
	ErrClosed = errors.New("engine: it takes no more requests")
)

// Stats say what an engine is doing and what it did.
type Stats struct {
	Running, Waiting int            // requests
	Keys             map[string]int // of those that wait, how many each key has

	Submitted int64 // requests ever
	Finished  int64 // requests that ended by themselves
	Cancelled int64 // whose context ended
	Failed    int64 // by an error of their own
	Preempted int64 // times that a request gave its memory up, to go on later

	PromptTokens int64 // read, of requests that started
	CachedTokens int64 // of those, how many an earlier request had computed
	Tokens       int64 // emitted

	CacheBytes   int64 // memory of keys and values in use, kept prefixes included
	RunningBytes int64 // what the texts of running requests take of it, at most
	PrefixBytes  int64 // what kept prefixes take of it, at most; they share with each other and with running requests
	CacheLimit   int64 // 0: none

	Files  pagestore.Stats // of the blocks of prefixes in files
	Missed int64           // whole blocks of prompts that neither files nor memory had

	Steps    int64
	LastStep time.Time // when the last step ended, or a layer of the one under way
	Drafters []DrafterStats
}

// DrafterStats say what a drafter brought to the requests that ended.
type DrafterStats struct {
	Name string
	speculate.Stats
	Speedup float64 // tokens a second of its rounds over plain rounds' of as many requests; 0: not known yet
}

// speed is how many tokens the rounds of a drafter brought, and how many plain ones would have in that time.
type speed struct{ tokens, plain float64 }
