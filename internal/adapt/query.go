// What the end of a query sets going.

package adapt

import (
	"slices"

	"github.com/grovellm/grove/internal/learn"
)

const (
	osdQueries = 8  // after so many OSD updates
	paceMemory = .1 // the weight of a query in the mean of how long they decode
)

// ended takes in a query.
func (a *Adapter) ended(q *query) {
	a.mu.Lock()
	if a.frozen || a.closed || a.stats.Error != "" || q.rounds == 0 {
		a.mu.Unlock()
		return
	}
	a.stats.Queries++
	a.stats.Rejected += q.rejected
	if a.pace == 0 {
		a.pace = q.seconds
	}
	a.pace += paceMemory * (q.seconds - a.pace)
	var t task
	if a.o.Policy == OSD {
		t = a.always(q)
	} else {
		t = a.decide(q)
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

// checkUp is after how many queries without an update a head that has learned is compared with the first in any case.
const checkUp = 12

// fewRounds are no ground to judge an update by: its interval goes on for longer.
const fewRounds = 16

func rounds(texts []*learn.Lesson) (n int) {
	for _, l := range texts {
		n += len(l.Rounds)
	}
	return n
}

// keep returns the last of the texts: as many as a list's part of the memory holds, at least one.
func (a *Adapter) keep(texts []*learn.Lesson) []*learn.Lesson {
	from, left := len(texts), a.o.Memory/textLists
	for from > 0 {
		if left -= texts[from-1].Bytes(); left < 0 && from < len(texts) {
			break
		}
		from--
	}
	return slices.Delete(texts, 0, from)
}

// always is OSD's rule.
func (a *Adapter) always(q *query) (t task) {
	b := &a.filled[Full]
	b.texts = a.keep(append(b.texts, q.texts...))
	b.queries++
	a.stats.Actions[Full]++
	if b.queries >= osdQueries && !a.busy {
		t.update, t.texts = Full, b.texts
		*b = filling{}
	}
	return t
}

// decide is Algorithm 1: the query's action, its buffer, and the end of the interval that the last update is judged in.
func (a *Adapter) decide(q *query) (t task) {
	b := &a.bandit
	action := b.choose(q.signal, a.o.Policy == Bandit, a.rng)
	if a.o.Policy == Always && b.Queries > a.o.WarmUp {
		action = Full
	}
	a.stats.Actions[action]++
	if a.open != nil && a.open.queries >= 0 {
		a.texts = a.keep(append(a.texts, q.texts...))
		if a.open.queries++; a.open.queries >= a.o.Window && rounds(a.texts) >= fewRounds && !a.busy {
			t.judge, t.judgeOn = a.open, a.texts
			a.open, a.texts = nil, nil
		}
	}
	if a.open == nil && a.now() != a.first { // what was learned from one kind of traffic may be bad for another
		if a.since++; a.since >= checkUp {
			a.open, a.since = &event{}, 0
		}
	}
	may := b.may()
	if action == Skip || len(q.texts) == 0 {
		return t
	}
	f := &a.filled[action]
	f.texts, f.signal = a.keep(append(f.texts, q.texts...)), q.signal
	f.queries++
	if f.queries >= a.o.Buffer[action] && may && !a.busy && (a.open == nil || t.judge != nil) {
		t.update, t.texts, t.signal = action, f.texts, f.signal
		*f = filling{}
		b.begun()
		a.since = 0
		a.open = &event{action: action, signal: t.signal, before: a.now(), queries: -1} // until it is in use
		t.event = a.open
	}
	return t
}
