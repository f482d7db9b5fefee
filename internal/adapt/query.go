// Ends of queries, and the tasks that they begin.

package adapt

import (
	"math"
	"slices"

	"github.com/grovellm/grove/internal/drafters/learn"
)

// osdQueries is the number of queries after which OSD updates: Appendix A.4 of SpecBlock.
const osdQueries = 8

// ended takes in a query.
func (a *Adapter) ended(q *query) {
	a.mu.Lock()
	if a.frozen || a.closed || a.stats.Error != "" || q.rounds == 0 {
		a.mu.Unlock()
		return
	}
	a.stats.Queries++
	a.stats.Rejected += q.rejected
	a.account.decoded(q.seconds, a.stats.Gain, &a.o.Tuning)
	var t task
	switch a.o.Policy {
	case Bandit:
		t = a.decide(q)
	case OSD:
		t = a.push(Full, q, osdQueries)
	case Always:
		t = a.push(Full, q, 1)
	default:
		t = a.push(Skip, q, 1)
	}
	if t.empty() {
		a.mu.Unlock()
		return
	}
	a.busy = true
	a.mu.Unlock()
	run := func() {
		defer a.release()
		a.spare(a.o.Threads)
		a.running.Store(true)
		a.work.run(t)
		a.running.Store(false)
		a.spare(-a.o.Threads)
	}
	if a.o.Wait {
		modestly(run)
		return
	}
	go modestly(run)
}

// keep returns the last texts: as many as a list's part of the memory holds, but at least one.
func (a *Adapter) keep(texts []*learn.Example) []*learn.Example {
	from, left := len(texts), a.o.Memory/textLists
	for from > 0 {
		left -= texts[from-1].Bytes()
		if left < 0 && from < len(texts) {
			break
		}
		from--
	}
	return slices.Delete(texts, 0, from)
}

// push puts a query into the buffer of an action. It returns a task with the buffer's texts if
// that holds n queries and a task may begin.
func (a *Adapter) push(action Action, q *query, n int) (t task) {
	f := &a.filled[action]
	f.texts = a.keep(append(f.texts, q.texts...))
	f.queries++
	learn := a.o.Policy != Judged || a.account.left() > a.account.Price
	if f.queries < n || len(f.texts) == 0 || a.busy || !learn && !(a.judging && a.account.left() > 0) {
		return t
	}
	t = task{action: action, texts: f.texts, queries: f.queries, learn: learn}
	*f = filling{}
	return t
}

// decide implements Algorithm 1: the query's action, its buffer, and the end of an interval.
func (a *Adapter) decide(q *query) (t task) {
	b := &a.bandit
	action := b.choose(q.signal, a.rng)
	trend := b.served(q, !a.busy)
	n := buffered
	if !b.may() {
		n = math.MaxInt
	}
	if action != Skip {
		t = a.push(action, q, n)
		if !t.empty() {
			b.begun(action, q.signal)
		}
	}
	t.trend = trend
	return t
}
