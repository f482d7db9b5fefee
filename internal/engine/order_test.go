package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/testing/cases"
)

// Of two requests that have waited equally long, the one of the higher priority starts first; of two
// of the same priority, the one that has waited longer: at every priority, including the extreme ones.
func TestPriorities(t *testing.T) {
	priority := rapid.OneOf(rapid.Int(), rapid.IntRange(-3, 3), rapid.IntRange(math.MaxInt-3, math.MaxInt),
		rapid.IntRange(math.MinInt, math.MinInt+3))
	submitted := func(priority, steps int, number int64) *job {
		return &job{Request: Request{Priority: priority}, number: number, share: &share{whole: &share{}},
			began: time.Now().Add(-time.Duration(steps)*ageing - ageing/2)}
	}
	e := &Engine{}
	cases.Check(t, 40, func(rt *rapid.T) {
		p, q := priority.Draw(rt, "priority"), priority.Draw(rt, "other priority")
		waited, longer := rapid.IntRange(0, 1000).Draw(rt, "steps waited"), rapid.IntRange(0, 3).Draw(rt, "steps more")
		if got := e.order(submitted(p, waited, 1), submitted(q, waited, 1)); got != cmp.Compare(q, p) {
			rt.Errorf("priorities %d and %d after %d steps compare as %d", p, q, waited, got)
		}
		a, b := submitted(p, waited, 2), submitted(p, waited+longer, 1)
		if got := e.order(a, b); got != 1 {
			rt.Errorf("priority %d after %d steps and after %d compare as %d", p, waited, waited+longer, got)
		}
	})
}

// A request of the least served starts before older ones of others, unless its priority is lower, and
// no priority of a key's request gets it before those of other keys. One below 0 yields to them, for a while.
func TestAgeAndPriorityAmongTenants(t *testing.T) {
	type request struct {
		key             int // 0 or 1; 1 was served more
		user            float64
		priority, steps int
	}
	e := &Engine{}
	parts := []*share{{whole: &e.share}, {whole: &e.share, served: 100}}
	for name, c := range map[string]struct {
		first, second request
		keyed         bool
	}{
		"a long queue":            {request{0, 0, 0, 0}, request{1, 0, 0, 100}, true},
		"a long queue, no keys":   {request{0, 0, 0, 0}, request{1, 0, 0, 100}, false},
		"a long queue of a user":  {request{0, 0, 0, 0}, request{0, 50, 0, 100}, true},
		"a high priority":         {request{0, 0, 0, 0}, request{1, 0, math.MaxInt, 100}, true},
		"that of the program":     {request{1, 0, 1, 0}, request{0, 0, 0, 0}, false},
		"that of the same key":    {request{0, 50, 1, 0}, request{0, 0, 0, 0}, true},
		"a low priority":          {request{1, 0, 0, 0}, request{0, 0, -2, 1}, true},
		"a low priority in time":  {request{0, 0, -2, 2}, request{1, 0, 0, 0}, true},
		"an old one of one user":  {request{0, 0, 0, 100}, request{0, 0, 1, 0}, true},
		"the next one of its key": {request{1, 0, 5, 0}, request{1, 0, 0, 4}, true},
	} {
		e.highest = max(c.first.priority, c.second.priority)
		made := func(r request, number int64) *job {
			return &job{Request: Request{Priority: r.priority}, number: number, keyed: c.keyed,
				share: &share{whole: parts[r.key], served: r.user},
				began: time.Now().Add(-time.Duration(r.steps)*ageing - ageing/2)}
		}
		if e.order(made(c.first, 2), made(c.second, 1)) >= 0 {
			t.Errorf("%s: the other request comes first", name)
		}
	}
}

// What is remembered of tenants that are gone is bounded, whatever their names, and is forgotten with the last
// request. A new tenant counts from what the least served of those waiting had when the last request started.
func TestGoneTenants(t *testing.T) {
	e := &Engine{}
	come := func(key, tenant string, tokens int) *job {
		j := &job{share: e.share.part(key).part(tenant)}
		j.count(1, 1, tokens)
		return j
	}
	stays := []*job{come("stays", "a", 100), come("users", "a", 200)}
	for i := range 2*mostParts + 10 {
		come(fmt.Sprint(i), "", 0).count(-1, -1, 0)
		come("users", fmt.Sprint(i), 0).count(-1, -1, 0)
	}
	stays[1].starts(0)
	stays[0].starts(0)
	if keys, users := len(e.share.parts), len(stays[1].share.whole.parts); keys > mostParts || users > mostParts {
		t.Errorf("%d keys and %d users are remembered: want %d at most", keys, users, mostParts)
	}
	key, user := come("new", "", 0), come("users", "new", 0)
	if key.share.whole.served != 100 || user.share.served != 200 {
		t.Errorf("a new key counts from %g, a new user from %g", key.share.whole.served, user.share.served)
	}
	for _, j := range append(stays, key, user) {
		j.count(-1, 0, 0)
		if j.share.whole.jobs == 0 && j.share.whole.parts != nil {
			t.Error("a key without requests remembers its users")
		}
	}
	if e.share.jobs != 0 || e.share.parts != nil {
		t.Errorf("in the end %d requests are counted, and %d keys known", e.share.jobs, len(e.share.parts))
	}
}

// Where all places are another key's, the request that would start first in an empty engine gets one of them, not the
// one that was queued first.
func TestPlaceOfAnotherKeyGoesInOrder(t *testing.T) {
	cases.Check(t, 20, func(rt *rapid.T) {
		e := byHand(t, 32)
		e.o.Parallel = 2
		come := func(key string, served float64, priority int) *job {
			j := submitted(Request{Prompt: []int32{1, int32(e.stats.Submitted)}, Priority: priority, Fresh: true})
			e.stats.Submitted++
			j.number, j.keyed = e.stats.Submitted, true
			j.Key = key
			j.share = e.share.part(key).part(key)
			j.share.whole.served = served
			j.count(1, 1, 0)
			e.queue = append(e.queue, j)
			return j
		}
		come("all", 1000, 0)
		come("all", 1000, 0)
		e.admit()
		if len(e.running) != 2 || len(e.queue) != 0 {
			rt.Fatalf("%d run, %d wait", len(e.running), len(e.queue))
		}
		served := map[string]float64{}
		for _, key := range []string{"a", "b", "c"} {
			served[key] = float64(rapid.IntRange(0, 2).Draw(rt, "served"))
		}
		for range rapid.IntRange(1, 5).Draw(rt, "waiting") {
			key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key")
			come(key, served[key], rapid.IntRange(-1, 1).Draw(rt, "priority"))
		}
		e.sortQueue()
		first := e.queue[0]
		slices.SortFunc(e.queue, func(a, b *job) int { return cmp.Compare(a.number, b.number) }) // as they came
		e.admit()
		if first.seq == nil {
			rt.Errorf("the first of %d is not the one that runs", len(e.queue))
		}
	})
}
