// Admission: which requests run, and how much memory they take.

package engine

import (
	"cmp"
	"hash/maphash"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
)

// ageing is how long a request waits before its priority rises by one.
const ageing = 10 * time.Second

// order compares waiting requests: by priority, which rises with the time waited, but not above the highest that was
// asked for; then by how little their keys, and then their tenants, have been served; then by priority and time waited;
// then by the deadline of the first token; then by the order of Submit. So a long queue of one tenant, which grows old,
// does not hold up the others. Among different keys, priorities above 0 count as 0.
func (e *Engine) order(a, b *job) int {
	now := time.Now()
	p, q := a.rank(now), b.rank(now)
	highest := rankOf(e.highest)
	among := func(j *job) rank { // the highest among keys
		if j.keyed {
			return rank{}
		}
		return highest
	}
	return cmp.Or(
		q.within(among(b)).compare(p.within(among(a))),
		cmp.Compare(a.share.whole.served, b.share.whole.served),
		q.within(highest).compare(p.within(highest)),
		cmp.Compare(a.share.served, b.share.served),
		q.compare(p),
		compareDeadlines(a.Deadline, b.Deadline),
		cmp.Compare(a.number, b.number))
}

// rank is a priority including what it gained by waiting. It has 128 bits: a client may ask for any priority.
type rank struct {
	high int64
	low  uint64
}

func rankOf(priority int) rank { return rank{int64(priority) >> 63, uint64(priority)} }

func (j *job) rank(now time.Time) rank {
	r := rankOf(j.Priority)
	low, carry := bits.Add64(r.low, uint64(now.Sub(j.began)/ageing), 0)
	return rank{r.high + int64(carry), low}
}

func (r rank) compare(o rank) int {
	return cmp.Or(cmp.Compare(r.high, o.high), cmp.Compare(r.low, o.low))
}

// within returns the rank, or most if it is higher.
func (r rank) within(most rank) rank {
	if r.compare(most) > 0 {
		return most
	}
	return r
}

// compareDeadlines puts the earlier deadline first, and requests without one last.
func compareDeadlines(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return -a.Compare(b)
	}
	return a.Compare(b)
}

// share is the service that requests of a key or a tenant have received. The parts of the engine's
// share are those of keys, and the parts of a key's share are those of tenants.
type share struct {
	whole  *share            // the share that it is a part of; nil: it is the engine's
	parts  map[uint64]*share // by the hash of the name, which a client may make long; nil without requests
	jobs   int               // waiting and running
	waits  int               // of those, waiting
	served float64           // tokens
	turn   float64           // served of the least served waiting part when the last request started
}

// mostParts limits how many keys, and tenants of a key, are remembered without requests.
const mostParts = 4096

// nameSeed is the seed of the hashes of names.
var nameSeed = maphash.MakeSeed()

// part returns the part with the name of a new request. A part without waiting requests counts from the turn at least,
// so that a client that asks for little or nothing builds up no credit.
func (s *share) part(name string) *share {
	if s.jobs == 0 {
		s.parts = map[uint64]*share{}
		s.turn = 0
	}
	hash := maphash.String(nameSeed, name)
	p := s.parts[hash]
	if p == nil {
		if len(s.parts) >= mostParts {
			maps.DeleteFunc(s.parts, func(_ uint64, p *share) bool { return p.jobs == 0 })
		}
		p = &share{whole: s}
		s.parts[hash] = p
	}
	if p.waits == 0 {
		p.served = max(p.served, s.turn)
	}
	return p
}

// count records that requests came or went, that they wait or started, or that they got tokens. A share without
// requests forgets its parts.
func (j *job) count(jobs, waits, tokens int) {
	for s := j.share; s != nil; s = s.whole {
		s.jobs += jobs
		s.waits += waits
		s.served += float64(tokens)
		if s.jobs == 0 {
			s.parts = nil
		}
	}
}

// starts records that a waiting request starts, and the number of tokens of its prompt that it will compute.
func (j *job) starts(tokens int) {
	for s := j.share; s.whole != nil; s = s.whole {
		least := s.served
		for _, p := range s.whole.parts {
			if p.waits > 0 {
				least = min(least, p.served)
			}
		}
		s.whole.turn = max(s.whole.turn, least)
	}
	j.count(0, -1, tokens)
}

// leave records that a request has gone. It is called once.
func (j *job) leave() {
	waits := 0
	if j.seq == nil {
		waits = 1
	}
	j.count(-1, -waits, 0)
	j.share = nil
}

// refuse returns the reason why a request cannot be queued now, or nil.
func (e *Engine) refuse(r *Request) error {
	switch {
	case e.closed && !(e.working && r.Call.queued): // others of its call are in progress, and Drain waits for them
		return ErrClosed
	case e.o.Queue > 0 && !r.Call.queued && e.full(r.Key):
		return ErrFull
	}
	return nil
}

// full reports whether the queue has no place for a request of a key. Waiting keys share its places. When other keys
// have taken them all, up to twice as many requests may wait, so that this key still gets its share.
func (e *Engine) full(key string) bool {
	waiting := len(e.queue) + len(e.running) - e.o.Parallel
	if waiting < e.o.Queue {
		return false
	}
	keys := e.waiting()
	keys[key]++
	return waiting >= 2*e.o.Queue || keys[key] > max(1, e.o.Queue/len(keys))
}

// waiting returns how many requests of each key wait.
func (e *Engine) waiting() map[string]int {
	keys := map[string]int{}
	for _, j := range e.queue {
		keys[j.Key]++
	}
	return keys
}

// admit starts waiting requests while there is room for them.
func (e *Engine) admit() {
	e.takeTurns()
	for len(e.queue) > 0 && len(e.running) < e.o.Parallel {
		e.sortQueue()
		at := slices.IndexFunc(e.queue, func(j *job) bool { return !e.prefixes.comes(e, j) })
		if at < 0 {
			break // all wait for prefixes that are being computed
		}
		j := e.queue[at]
		if len(e.running) > 0 && (j.paused > e.ended || !e.fits(e.whole(j))) {
			return
		}
		e.fits(e.whole(j)) // drops prefixes, if that makes room
		e.take(j)
	}
	e.giveWay()
}

// sortQueue puts the waiting requests into the order in which they start. There is at least one.
func (e *Engine) sortQueue() {
	e.highest = slices.MaxFunc(e.queue, func(a, b *job) int { return cmp.Compare(a.Priority, b.Priority) }).Priority
	slices.SortFunc(e.queue, e.order)
}

// takeTurns starts requests that others of their call are held for: those have the places, and perhaps the memory.
func (e *Engine) takeTurns() {
	for _, j := range slices.Clone(e.queue) {
		if j.Hold == nil {
			continue
		}
		held := slices.DeleteFunc(slices.Clone(e.running), func(o *job) bool { return o.Call != j.Call || o.takesPart() })
		if len(held) == 0 || !j.takesPart() {
			continue
		}
		for len(held) > 0 && !e.fits(e.whole(j)) {
			e.preempt(held[0], false)
			held = held[1:]
		}
		if len(e.running) == 0 || e.fits(e.whole(j)) {
			e.take(j)
		}
	}
}

// giveWay stops a running request of a key that has several, for a key that has none and was served less: its requests
// may be long, and have all places. It goes on later from the rows that it leaves.
func (e *Engine) giveWay() {
	if len(e.running) < e.o.Parallel || len(e.queue) == 0 {
		return
	}
	last := e.last(func(*job) int { return 0 })
	gets := func(j *job) bool {
		less := j.ofKey() == 0 && j.share.whole.served < last.share.whole.served
		return j.keyed && less && j.paused <= e.ended && !e.prefixes.comes(e, j)
	}
	if last.ofKey() < 2 || !slices.ContainsFunc(e.queue, gets) {
		return
	}
	e.sortQueue()
	j := e.queue[slices.IndexFunc(e.queue, gets)]
	if !e.fits(e.whole(j)) {
		return
	}
	e.preempt(last, true)
	e.take(j)
}

// ofKey returns how many requests of the job's key run.
func (j *job) ofKey() int { return j.share.whole.jobs - j.share.whole.waits }

// amongKeys returns the priority that counts among the requests of different keys, as in order.
func (j *job) amongKeys() int {
	if j.keyed {
		return min(j.Priority, 0)
	}
	return j.Priority
}

// last returns the running request that is the first to stop. Its key is that of the lowest priority, then the one that
// has most requests running, then the one whose request began last; of the key's requests of the lowest priority, it
// began last.
func (e *Engine) last(priority func(*job) int) *job {
	begun := func(a, b *job) int { return cmp.Or(b.start.Compare(a.start), cmp.Compare(b.number, a.number)) }
	key := slices.MinFunc(e.running, func(a, b *job) int {
		return cmp.Or(cmp.Compare(priority(a), priority(b)), cmp.Compare(b.ofKey(), a.ofKey()), begun(a, b))
	}).share.whole
	others := slices.DeleteFunc(slices.Clone(e.running), func(j *job) bool { return j.share.whole != key })
	return slices.MinFunc(others, func(a, b *job) int { return cmp.Or(cmp.Compare(a.Priority, b.Priority), begun(a, b)) })
}

// take starts a waiting request.
func (e *Engine) take(j *job) {
	e.queue = without(e.queue, j)
	if err := e.begin(j); err != nil {
		e.fail(j, err)
	}
}

// begin starts a request's sequence.
func (e *Engine) begin(j *job) error {
	r := j.Request.Request
	if emitted := len(j.text) - len(j.Prompt); r.MaxTokens > 0 {
		r.MaxTokens -= emitted
	}
	r.Written += len(j.text) - len(j.Prompt)
	r.Cache = e.target.NewCache()
	if !j.Fresh && !r.PromptLogits {
		var p *found
		if err := e.try("engine: a prefix", func() { p = e.prefixes.find(e, j) }); err != nil {
			r.Cache.Free()
			return err
		}
		if p != nil {
			r.Cache.Free()
			r.Cache, r.Kept = p.cache, p.kept
			if p.made {
				defer p.kept.Close()
			}
		}
	}
	switch {
	case len(j.text) > len(j.Prompt):
		r.PromptLogits = false // the callers have them already
	case r.PromptLogits && r.Logits != nil:
		r.Logits = j.tellLogits // the callers have some of them already if it was preempted
	}
	var seq *speculate.Sequence
	var err error
	panicked := e.try("engine: the start of a request", func() { seq, err = e.loop.Start(j.text, r) })
	if err := cmp.Or(panicked, err); err != nil {
		r.Cache.Free()
		return err
	}
	j.seq, j.start = seq, time.Now()
	e.running = append(e.running, j)
	j.starts(seq.Stats().Prompt - seq.Stats().Reused)
	if len(j.text) == len(j.Prompt) {
		e.stats.PromptTokens += int64(seq.Stats().Prompt)
		e.stats.CachedTokens += int64(seq.Stats().Reused)
	}
	for _, p := range j.pages {
		if !slices.Contains(e.pages, p) {
			e.pages = append(slices.DeleteFunc(e.pages, e.unused), p)
		}
	}
	return nil
}

// unused reports whether a drafter's pages hold no text and no running request uses them. Their drafter may be gone,
// and the list must not keep its memory alive. A drafter that returns adds its pages again.
func (e *Engine) unused(p draft.Pages) bool {
	return p.InUse() == 0 && !slices.Contains(e.pages[:len(e.o.Pages)], p) &&
		!slices.ContainsFunc(e.running, func(j *job) bool { return slices.Contains(j.pages, p) })
}

// whole returns the most memory that a request takes when it starts, with that of the prefix that is being read for
// another, which was promised before.
func (e *Engine) whole(j *job) int64 {
	return e.textBytes(&j.Request, len(j.text)+j.nodes()) + e.restoring
}

// takesPart reports whether the request is not held.
func (j *job) takesPart() bool { return j.Hold == nil || !j.Hold() }

// chunk returns the most rows of the request's prompt that a step computes.
func (j *job) chunk() int { return min(speculate.DefaultChunk, len(j.text)) }

// tellLogits passes logits to the caller, unless it already has those of that place.
func (j *job) tellLogits(place int, token int32, logits []float32) {
	if place > j.reported {
		j.reported = place
		j.Logits(place, token, logits)
	}
}

// nodes returns the most nodes that the request's trees have.
func (j *job) nodes() int { return cmp.Or(j.Budget, speculate.DefaultBudget) }

// rowBytes returns the most memory that a token of a request's text takes.
func (e *Engine) rowBytes(r *Request) (bytes int64) {
	for _, p := range e.o.Pages {
		bytes += int64(p.RowBytes())
	}
	for _, p := range r.pages {
		bytes += int64(p.RowBytes())
	}
	return bytes
}

// textBytes returns the most memory that the given number of tokens of a request's text takes. The target frees
// rows that its layers with windows no longer see.
func (e *Engine) textBytes(r *Request, tokens int) (bytes int64) {
	for _, p := range e.o.Pages {
		bytes += p.TextBytes(tokens, cmp.Or(e.o.Loop.Chunk, speculate.DefaultChunk))
	}
	for _, p := range r.pages {
		bytes += int64(p.RowBytes()) * int64(tokens)
	}
	return bytes
}

// inUse returns the memory of all keys and values.
func (e *Engine) inUse() (bytes int64) {
	for _, p := range e.pages {
		bytes += p.InUse()
	}
	return bytes
}

// fits reports whether that many more bytes fit within the limit. It drops prefixes to make room.
func (e *Engine) fits(bytes int64) bool {
	limit := e.o.CacheMemory
	if limit == 0 {
		return true
	}
	for e.inUse()+bytes > limit && len(e.prefixes.list) > 0 {
		before := e.inUse()
		e.prefixes.remove(0)
		if e.disk != nil && e.inUse() == before { // a text that waits to be written may share all its pages
			e.disk.release()
		}
	}
	if e.disk != nil && e.inUse()+bytes > limit {
		e.disk.release()
	}
	return e.inUse()+bytes <= limit
}

// makeRoom makes the next step fit into memory. While it does not fit, makeRoom preempts requests. The only one left
// goes on with smaller trees, and without its drafter if the drafter holds memory that the text itself needs.
func (e *Engine) makeRoom() {
	if e.o.CacheMemory == 0 {
		return
	}
	for {
		need := int64(0)
		for _, j := range e.running {
			j.seq.LimitTrees(j.nodes())
			rows := min(j.nodes(), e.Context()-len(j.text)+1)
			if j.reading() {
				rows = j.chunk()
			}
			need += e.rowBytes(&j.Request) * int64(nn.PageRows+rows)
			for _, p := range e.o.Pages {
				need += int64(p.StateBytes())
			}
		}
		if len(e.running) == 0 || e.fits(need) {
			return
		}
		if len(e.running) == 1 {
			j := e.running[0]
			left := e.o.CacheMemory - e.inUse()
			for _, p := range e.o.Pages {
				left -= int64(p.StateBytes())
			}
			rows := int(left/e.rowBytes(&j.Request)) - nn.PageRows
			short := rows < 1 || j.reading() && rows < j.chunk()
			if short && j.Drafter != nil && e.restoring == 0 { // what is being restored becomes a prefix, which is then dropped
				j.seq.Dismiss()
				j.Drafter, j.pages = nil, nil
				continue
			}
			j.seq.LimitTrees(rows)
			return
		}
		e.preempt(e.last((*job).amongKeys), false)
	}
}

// preempt stops a running request and queues it again. Its text so far becomes its prompt, and goes
// on as it would have. It starts again once another request has ended: until then the others' texts
// only grow, and it would be stopped again. With keep, its rows are kept while there is room for them.
func (e *Engine) preempt(j *job, keep bool) {
	if !keep { // operators take more of these for a lack of memory
		e.stats.Preempted++
	}
	e.account(j)
	j.sum()
	j.stats = j.whole
	j.stats.Depths = slices.Clone(j.whole.Depths)
	j.text = slices.Clone(j.seq.Text())
	j.paused = e.ended + 1
	e.release(j, keep)
	j.count(0, 1, 0)
	e.queue = append(e.queue, j)
}

// account adds the statistics of a sequence that ends to its drafter's.
func (e *Engine) account(j *job) {
	if j.Name == "" {
		return
	}
	at := slices.IndexFunc(e.stats.Drafters, func(d DrafterStats) bool { return d.Name == j.Name })
	if at < 0 {
		at = len(e.stats.Drafters)
		e.stats.Drafters = append(e.stats.Drafters, DrafterStats{Name: j.Name})
	}
	d := &e.stats.Drafters[at]
	d.Stats.Add(j.seq.Stats())
}
