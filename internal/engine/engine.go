package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/engine/pagestore"
	"github.com/grovellm/grove/internal/kernels/memory"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/tree"
)

// Options of an engine.
type Options struct {
	Parallel int // most requests that run at the same time; 0: DefaultParallel
	Queue    int // most requests that wait, not counting those that free places will take; 0: no limit. See Engine.full

	// CacheMemory limits the memory of keys and values, including the drafters', in bytes; 0: no limit. Requests that
	// end leave prefixes there, for prompts that begin alike. Prefixes are dropped first. Without a limit they take at
	// most half of what is still Available, or DefaultPrefixMemory if that is more.
	CacheMemory int64
	Available   func() int64 // memory that the program can still take, in bytes, 0: not known; nil: ask the system

	Pages []*nn.Pages // where the target keeps keys and values
	Ready int         // rows whose memory is taken from the system in advance, once all requests have ended

	// Disk keeps prefixes in files; nil: none are kept there. Model identifies what
	// their rows depend on besides the text. Close does not close Disk.
	Disk  *pagestore.Store
	Model string

	Name string // the model's, for the log; empty: not known
	Loop speculate.Options
}

// Defaults of options that are 0.
const (
	DefaultParallel     = 64
	DefaultPrefixMemory = 256 << 20 // always allowed; more where there is memory
)

const (
	// promptSlowdown and promptTime limit how long decoding requests wait for prompts. A step that also reads prompts
	// takes about promptSlowdown times as long as recent steps without prompts: each kind of work gets half of the
	// time. At 3, prompts would take two thirds of the time, and gaps between tokens would be half as long again.
	// A step may always take promptTime: 20 tokens/s come faster than people read. Short prompts are then read at
	// once, and more requests share a pass. With 4, 8 and 16 callers that arrive together, SmolLM2 gives 1.05 to
	// 1.07 times the tokens/s, and first tokens after .6 of the time; 100 ms bring no more.
	promptSlowdown = 2
	promptTime     = 50 * time.Millisecond

	// promptStep limits steps that only read prompts, for which new requests wait. A model of 4B parameters reads some
	// 50 rows in this time on two cores, and would take ten seconds for 512.
	promptStep = time.Second

	stepMemory = 8 // steps that the averages of times and pace look back on
)

// Request is one text to generate.
type Request struct {
	speculate.Request
	Prompt []int32

	Priority int       // higher ones start first; of requests with keys, those of the same Key
	Tenant   string    // tenants share their key's part of the machine evenly; they never share prefixes
	Key      string    // keys share the machine evenly; empty: Tenant
	Deadline time.Time // of the first token: a tenant's most urgent request starts first, those without a deadline last
	Fresh    bool      // the whole prompt is computed, even where there is a prefix
	Private  bool      // its rows are kept in memory only
	Call     *Call     // the call that it belongs to, if it has several requests
	Once     bool      // no other request uses its drafter: none of the drafter's state is kept
	Rows     string    // distinguishes the drafter's rows from other drafters' in files; empty: not kept there

	// Step is called after every step that emitted tokens. Done is called once, when the request has ended: err is nil
	// if the text is complete. The engine is locked during both: they must neither block nor call it.
	Step func(*Update)
	Done func(err error)

	// Hold, if not nil, is called before every step. While it returns true the request takes no part.
	// Wake makes the engine call it again.
	Hold func() bool

	pages []draft.Pages // the drafter's
}

// Call groups several requests. Once one of them has been queued the engine accepts the others too, even if the queue
// is full or the engine drains.
type Call struct {
	Tokens atomic.Int64 // emitted so far
	Unseen bool         // only the prompts are wanted: the tokens are not counted

	queued bool
}

// Queued reports whether any of the call's requests was queued. Call it only once they have all ended.
func (c *Call) Queued() bool { return c.queued }

// Update is the outcome of a step for a request. It is valid until Step returns.
type Update struct {
	Tokens []int32          // emitted
	Tree   *tree.Tree       // verified in the round; nil if the tokens come from the prompt's last row
	Path   []int32          // the tree's accepted nodes, the root first
	Budget int              // nodes that the controller allowed the tree
	Finish speculate.Finish // Running also if the request fails: Done says so
	Stats  *speculate.Stats // of the request so far
}

// Engine runs requests over one target.
type Engine struct {
	target speculate.Target
	loop   *speculate.Loop
	o      Options
	pages  []draft.Pages // of the target, and of drafters that run or hold texts
	disk   *disk         // nil: prefixes are kept in memory only

	// passing is held while the loop steps. Other goroutines take it before mu to drop prefixes: that closes drafters'
	// states, and only one goroutine may use a drafter at a time.
	passing sync.Mutex

	mu        sync.Mutex
	wake      sync.Cond // for the goroutine, while all requests are held
	queue     []*job    // waiting, in the order of Submit
	working   bool      // the goroutine runs
	closed    bool
	stats     Stats
	share     share            // of all keys
	speeds    map[string]speed // by drafter
	undrafted speed            // of rounds without drafts
	restoring int64            // most bytes of the prefix that is being read from files
	idle      chan struct{}    // closed when nothing is left to do; nil while nobody waits for that

	// These change under mu, and only in the goroutine, except that Forget and Close drop prefixes.
	running  []*job
	highest  int // priority asked for in the queue
	ended    int // requests that ran and have ended
	prefixes prefixes

	// Only the goroutine uses these.
	usual    float64 // seconds of recent steps without prompts
	pace     float64 // share of the time limit given to the loop, so that steps stay within the whole
	stepping []*job  // the running requests that take part in the step
	step     []*speculate.Sequence
	asked    askedContext
}

// job is a request in the engine.
type job struct {
	Request
	ctx     context.Context
	unwatch func() bool // stops watching for the context's end

	seq    *speculate.Sequence // while it runs
	text   []int32             // prompt and output
	stats  speculate.Stats     // of the sequences before seq
	whole  speculate.Stats     // stats and seq's
	began  time.Time           // when it was submitted
	start  time.Time           // when it began to run; the latest to begin is preempted first
	number int64               // in the order of Submit
	keyed  bool                // it has a key, whose client is not to be trusted with others' time

	share *share // its tenant's

	reported int // the last place passed to Logits, with PromptLogits
	paused   int // it waits until Engine.ended is this; see preempt

	forgotten bool // it leaves no prefix
}

// New returns an engine.
func New(target speculate.Target, o Options) (*Engine, error) {
	switch {
	case o.Parallel < 0:
		return nil, fmt.Errorf("engine: Parallel is %d: want 1 or more, or 0 for %d", o.Parallel, DefaultParallel)
	case o.Queue < 0:
		return nil, fmt.Errorf("engine: Queue is %d: want 1 or more, or 0 for no limit", o.Queue)
	case o.CacheMemory < 0:
		return nil, fmt.Errorf("engine: CacheMemory is %d bytes: want more than 0, or 0 for no limit", o.CacheMemory)
	}
	o.Parallel = cmp.Or(o.Parallel, DefaultParallel)
	if o.Available == nil {
		o.Available = memory.Available
	}
	if o.Loop.Report == nil {
		o.Loop.Report = func(err error) { speculate.LogError(o.Name, err) }
	}
	e := &Engine{target: target, o: o, pace: 1, speeds: map[string]speed{}}
	e.o.Loop.Context = target.Context()
	if o.CacheMemory > 0 {
		if least := e.textBytes(new(Request), 2*nn.PageRows); o.CacheMemory < least {
			return nil, &LittleMemoryError{o.CacheMemory, least}
		}
		e.o.Loop.Context = sort.Search(target.Context(), func(n int) bool { // a page is for the pass
			return e.textBytes(new(Request), n+1+nn.PageRows) > o.CacheMemory
		})
	}
	var err error
	if e.loop, err = speculate.New(target, nil, e.o.Loop); err != nil {
		return nil, err
	}
	for _, p := range o.Pages {
		e.pages = append(e.pages, p)
	}
	e.prefixes.least = DefaultPrefixMemory
	if o.Disk != nil {
		e.disk = newDisk(o.Disk, o.Model, o.Loop.Report)
	}
	e.wake.L = &e.mu
	return e, nil
}

// LittleMemoryError says that CacheMemory is too small for any text: a short one needs Least bytes.
type LittleMemoryError struct{ CacheMemory, Least int64 }

func (e *LittleMemoryError) Error() string {
	return fmt.Sprintf("%d bytes: want %d or more, for a short text", e.CacheMemory, e.Least)
}

// Context is the most tokens that a request's prompt and output may have together: the target's context, or fewer if
// CacheMemory does not hold that many rows of a text.
func (e *Engine) Context() int { return e.o.Loop.Context }

// Submit queues a request. When ctx ends, so does the request, with ctx's error. Submit itself returns ErrFull,
// ErrClosed, or an error for a request that can never run; Done is not called then.
func (e *Engine) Submit(ctx context.Context, r Request) error {
	keyed := r.Key != ""
	r.Key = cmp.Or(r.Key, r.Tenant)
	r.Call = cmp.Or(r.Call, new(Call))
	if r.Drafter != nil {
		if err := e.try("engine: the drafter's pages", func() { r.pages = r.Drafter.Pages() }); err != nil {
			return err
		}
	}
	e.mu.Lock()
	err := e.refuse(&r)
	e.mu.Unlock()
	if err != nil {
		return err
	}
	e.restore(&r)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.refuse(&r); err != nil {
		return err
	}
	r.Call.queued = true
	now := time.Now()
	e.stats.Submitted++
	j := &job{Request: r, ctx: ctx, text: r.Prompt, began: now, number: e.stats.Submitted, keyed: keyed}
	j.unwatch = context.AfterFunc(ctx, func() { e.cancelled(j) })
	j.share = e.share.part(r.Key).part(r.Tenant)
	j.count(1, 1, 0)
	e.queue = append(e.queue, j)
	if !e.working {
		e.working = true
		go e.work()
	}
	e.wake.Signal()
	return nil
}

// cancelled takes a request out of the queue when its context has ended. The goroutine ends one
// that runs, before the next step.
func (e *Engine) cancelled(j *job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.Contains(e.queue, j) {
		e.cancel(j)
	}
	e.wake.Signal()
}

// cancel ends a request whose context has ended.
func (e *Engine) cancel(j *job) {
	e.stats.Cancelled++
	e.end(j, context.Cause(j.ctx))
}

// Wake makes the engine call Request.Hold again.
func (e *Engine) Wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wake.Signal()
}

// deliver reports a step's outcome to the callers.
func (e *Engine) deliver(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.Steps++
	_ = e.asked.Err() // the step has ended
	for _, j := range e.stepping {
		switch {
		case err != nil && j.ctx.Err() == nil:
			e.fail(j, err) // a pass that fails without being cancelled fails all its requests
		case err == nil:
			e.update(j)
		}
	}
}

// update reports new tokens to a caller, and the end. It also reports the tokens that a sequence
// emitted in the step in which it failed.
func (e *Engine) update(j *job) {
	s := j.seq
	err := s.Err()
	if fresh := s.Fresh(); len(fresh) > 0 {
		j.text = s.Text()
		j.count(0, 0, len(fresh))
		if !j.Call.Unseen {
			e.stats.Tokens += int64(len(fresh))
			j.Call.Tokens.Add(int64(len(fresh)))
		}
		j.sum()
		u := Update{Tokens: fresh, Budget: s.Budget(), Finish: s.Finish(), Stats: &j.whole}
		if err != nil {
			u.Finish = speculate.Running
		}
		u.Tree, u.Path = s.Round()
		if stepErr := e.tellStep(j, &u); err == nil {
			err = stepErr
		}
	}
	switch {
	case err != nil:
		e.fail(j, err)
	case s.Finish() != speculate.Running:
		e.stats.Finished++
		e.end(j, nil)
	}
}

// sum adds up the statistics of the request's sequences, as if there had been only one.
func (j *job) sum() {
	first := j.stats.Tokens == 0 // no sequence before seq had a token
	stats, now := j.stats, j.seq.Stats()
	j.whole = speculate.Stats{Depths: j.whole.Depths[:0]}
	j.whole.Add(&stats)
	j.whole.Add(now)
	j.whole.Prompt = len(j.Prompt)
	j.whole.First = stats.First
	j.whole.Decode = time.Since(j.began) - stats.First
	if first {
		j.whole.First = now.First + j.start.Sub(j.began)
		j.whole.Decode = now.Decode
		j.whole.Reused = now.Reused
	} else {
		j.whole.Reused = stats.Reused
	}
}

func (e *Engine) fail(j *job, err error) {
	e.stats.Failed++
	e.end(j, err)
}

// end takes a request out of the engine, and keeps its rows as a prefix.
func (e *Engine) end(j *job, err error) {
	j.unwatch()
	j.leave()
	if j.seq != nil {
		e.account(j)
		e.ended++
		e.release(j, err == nil || errors.Is(err, context.Cause(j.ctx)))
	} else {
		e.queue = without(e.queue, j)
	}
	e.tellEnd(j, err)
}

// release closes a running request's sequence. With keep, its rows are kept for other requests.
func (e *Engine) release(j *job, keep bool) {
	if keep {
		e.prefixes.add(e, j)
	}
	j.free()
	e.running = without(e.running, j)
}

// free closes the request's sequence and frees its rows.
func (j *job) free() {
	cache := j.seq.Cache()
	j.seq.Close()
	cache.Free()
	j.seq = nil
}

// without returns the list without a job.
func without(list []*job, j *job) []*job {
	return slices.DeleteFunc(list, func(o *job) bool { return o == j })
}

// Close ends the engine: it takes no more requests, and frees its memory. Remaining requests must already have been
// cancelled; Close waits for them.
func (e *Engine) Close() {
	_ = e.Drain(context.Background()) // a context that never ends
	if e.disk != nil {
		e.disk.close()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.prefixes.list) > 0 {
		e.prefixes.remove(0)
	}
}

// Forget drops the prefixes of a tenant. Its requests that have not ended yet will leave none. Forget waits for the
// current step.
func (e *Engine) Forget(tenant string) {
	e.passing.Lock()
	defer e.passing.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, j := range slices.Concat(e.running, e.queue) {
		if j.Tenant == tenant {
			j.forgotten = true
		}
	}
	for i := len(e.prefixes.list) - 1; i >= 0; i-- {
		if e.prefixes.list[i].tenant == tenant {
			e.prefixes.remove(i)
		}
	}
}

// Drain refuses further requests with ErrClosed, except those of calls in progress. It waits until all have ended or
// ctx is done, and returns ctx's error if some are left.
func (e *Engine) Drain(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	if !e.working {
		e.mu.Unlock()
		return nil
	}
	if e.idle == nil {
		e.idle = make(chan struct{})
	}
	idle := e.idle
	e.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stats are the engine's figures.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.Running, s.Waiting = len(e.running), len(e.queue)
	s.Keys = e.waiting()
	s.CacheBytes = e.inUse()
	s.PrefixBytes = e.prefixes.bytes
	s.CacheLimit = e.o.CacheMemory
	s.Files = e.o.Disk.Stats()
	if last := e.asked.last.Load(); last > 0 {
		s.LastStep = time.Unix(0, last)
	}
	for _, j := range e.running {
		s.RunningBytes += e.textBytes(&j.Request, len(j.text))
	}
	s.RunningBytes = min(s.RunningBytes, s.CacheBytes)
	s.Drafters = make([]DrafterStats, 0, len(e.stats.Drafters))
	for _, d := range e.stats.Drafters {
		d.Depths = slices.Clone(d.Depths)
		d.Speedup = e.speeds[d.Name].over(e.undrafted)
		s.Drafters = append(s.Drafters, d)
	}
	return s
}
