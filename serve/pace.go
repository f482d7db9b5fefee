package serve

import (
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/grovellm/grove/internal/inside"
)

// pace tracks how long generations take once they run: a mean that favours the latest.
type pace struct {
	mu   sync.Mutex
	mean time.Duration // 0 until one has ended
}

// paceWeight is the weight of the latest generation.
const paceWeight = 0.2

func (p *pace) add(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean == 0 {
		p.mean = took
	}
	p.mean += time.Duration(paceWeight * float64(took-p.mean))
}

// known reports whether a generation has ended yet.
func (p *pace) known() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mean > 0
}

// late reports whether the requests ahead of this one take longer than its deadline allows.
func (x *exchange) late(m *Model) bool {
	s := inside.EngineStats(m)
	before := ahead(s.Keys, x.tenant)
	if before == 0 || !x.s.pace.known() {
		return false
	}
	return time.Now().Add(x.s.pace.wait(s.Running, before)).After(x.deadline())
}

// ahead estimates how many of the waiting requests start before a new one: keys take turns.
func ahead(waiting map[string]int, key string) (n int) {
	for _, others := range waiting {
		n += min(others, waiting[key]+1)
	}
	return n
}

// wait estimates how long it takes until the waiting requests have started, if as many run at a
// time as now.
func (p *pace) wait(running, waiting int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean == 0 {
		return unknownWait
	}
	return p.mean * time.Duration(max(waiting, 1)) / time.Duration(max(running, 1))
}

// Bounds of Retry-After. The SDKs of OpenAI and Anthropic obey it up to a minute, and retry twice.
const (
	leastRetry  = time.Second
	mostRetry   = time.Minute
	unknownWait = 5 * time.Second // before anything was measured
)

// retryAfter returns after how many seconds a client should retry after an error: when the queue
// will have emptied, if requests take as long as the last ones did; while the server loads its
// model, after as long again as that has taken.
func (x *exchange) retryAfter(e *apiError) string {
	wait := leastRetry
	switch {
	case e == errLoading:
		wait = time.Since(x.s.began)
	case e != errStopped:
		running, waiting := 0, 0
		for _, m := range x.s.models.loaded() {
			s := inside.EngineStats(m)
			running, waiting = running+s.Running, waiting+s.Waiting
		}
		wait = x.s.pace.wait(running, waiting)
	}
	return seconds(wait)
}

// seconds returns a time in the form of Retry-After.
func seconds(wait time.Duration) string {
	return strconv.Itoa(int(math.Ceil(min(max(wait, leastRetry), mostRetry).Seconds())))
}
