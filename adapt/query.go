// What the end of a query sets going.

package adapt

import "github.com/grovellm/grove/draft/learn"

// osdQueries is after how many queries OSD updates.
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
	a.work.pace(q.seconds)
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
	a.done.Add(1)
	a.mu.Unlock()
	run := func() {
		defer a.done.Done()
		a.spare(a.o.Threads)
		a.running.Store(true)
		a.work.run(t)
		a.running.Store(false)
		a.spare(-a.o.Threads)
		a.mu.Lock()
		a.busy = false
		a.mu.Unlock()
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

func rounds(lessons []*learn.Lesson) (n int) {
	for _, l := range lessons {
		n += len(l.Rounds)
	}
	return n
}

// always is OSD's rule.
func (a *Adapter) always(q *query) (t task) {
	b := &a.filled[Full]
	b.lessons = append(b.lessons, q.lessons...)
	b.queries++
	a.stats.Actions[Full]++
	if b.queries >= osdQueries && !a.busy {
		t.update, t.lessons = Full, b.lessons
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
		a.heard = append(a.heard, q.lessons...)
		if a.open.queries++; a.open.queries >= a.o.Window && rounds(a.heard) >= fewRounds && !a.busy {
			t.judge, t.heard = a.open, a.heard
			a.open, a.heard = nil, nil
		}
	}
	if a.open == nil && a.now() != a.first { // what was learned from one kind of traffic may be bad for another
		if a.since++; a.since >= checkUp {
			a.open, a.since = &event{}, 0
		}
	}
	may := b.may()
	if action == Skip || len(q.lessons) == 0 {
		return t
	}
	f := &a.filled[action]
	f.lessons, f.signal = append(f.lessons, q.lessons...), q.signal
	f.queries++
	if f.queries >= a.o.Buffer[action] && may && !a.busy && (a.open == nil || t.judge != nil) {
		t.update, t.lessons, t.signal = action, f.lessons, f.signal
		*f = filling{}
		b.begun()
		a.since = 0
		a.open = &event{action: action, signal: t.signal, before: a.now(), queries: -1} // until it is in use
		t.event = a.open
	}
	f.lessons = f.lessons[max(0, len(f.lessons)-a.o.Replay):]
	return t
}
