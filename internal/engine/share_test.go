package engine_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/testing/cases"
)

// Keys share the machine evenly, however many tenants each has, and the tenants of a key share its
// part: similar requests start in turns, as long as all have some.
func TestKeysShareEvenly(t *testing.T) {
	e := start(t, open(t), engine.Options{Parallel: 1})
	cases.Check(t, 20, func(rt *rapid.T) {
		const each = 12 // requests of a key
		var list []engine.Request
		var names []string
		for key, tenants := range rapid.SliceOfN(rapid.SampledFrom([]int{1, 2, 3, each}), 2, 4).Draw(rt, "tenants of each key") {
			for i := range each {
				r := request(4, 3)
				r.Fresh = true
				r.Key = fmt.Sprint(key)
				r.Tenant = fmt.Sprintf("%d/%d", key, i%tenants)
				list = append(list, r)
				names = append(names, r.Tenant)
			}
		}
		left, got := map[string]int{}, map[string]int{}
		shares := map[string][]string{} // names of parts, by the name of what they share
		count := func(tenant string, n int, counts map[string]int) {
			key, _, _ := strings.Cut(tenant, "/")
			counts[key] += n
			counts[tenant] += n
			for whole, part := range map[string]string{"": key, key: tenant} {
				if !slices.Contains(shares[whole], part) {
					shares[whole] = append(shares[whole], part)
				}
			}
		}
		for _, name := range names {
			count(name, 1, left)
		}
		order := runInOrder(t, e, list, names)
		for i, name := range order {
			count(name, 1, got)
			count(name, -1, left)
			for _, parts := range shares {
				for _, a := range parts {
					for _, b := range parts {
						if got[a] > got[b]+1 && left[b] > 0 {
							rt.Fatalf("after %d, %q had %d turns and %q %d: %v", i+1, a, got[a], b, got[b], order)
						}
					}
				}
			}
		}
	})
}

// A pause earns nothing: a tenant that comes back to an engine that is never idle, and received little before, takes
// turns with those that stayed, as a new one does. One that received more before waits until they have as much.
func TestPauseEarnsNothing(t *testing.T) {
	m := open(t)
	for _, c := range []struct {
		key, back string
		before    int // tokens of "gone", which then pauses
		want      string
	}{
		{"", "gone", 1, "takes turns"}, {"", "new", 1, "takes turns"}, {"", "gone", 500, "waits"},
		{"key", "gone", 1, "takes turns"}, {"key", "new", 1, "takes turns"}, {"key", "gone", 500, "waits"},
	} {
		e := start(t, m, engine.Options{Parallel: 1})
		of := func(tenant string, tokens int) engine.Request {
			r := request(4, tokens)
			r.Tenant, r.Key = tenant, c.key
			r.Fresh = true
			return r
		}
		stays := of("stays", 20)
		ended := make(chan error, 9)
		release := hold(t, e, stays)
		for _, r := range []engine.Request{of("gone", c.before), stays, stays, stays, stays} {
			r.Done = func(err error) { ended <- err }
			if err := e.Submit(context.Background(), r); err != nil {
				t.Fatal(err)
			}
		}
		after := make(chan func(), 1)
		go func() { after <- hold(t, e, stays) }() // so that the engine is never idle
		for e.Stats().Waiting < 6 {
			runtime.Gosched()
		}
		release()
		for range cap(ended) - 4 {
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		}
		release = <-after
		var all sync.WaitGroup
		var order []string
		for range 4 {
			for _, name := range []string{"stays", c.back} {
				r := of(name, 20)
				all.Add(1)
				r.Done = func(error) { order = append(order, name); all.Done() }
				if err := e.Submit(context.Background(), r); err != nil {
					t.Fatal(err)
				}
			}
		}
		release()
		all.Wait()
		first := 0 // how many of the first four turns are of the tenant that comes back
		for _, name := range order[:4] {
			if name == c.back {
				first++
			}
		}
		if c.want == "takes turns" && first != 2 || c.want == "waits" && first != 0 {
			t.Errorf("key %q: %q with %d tokens before %s: %v", c.key, c.back, c.before, c.want, order)
		}
	}
}

// A tenant that always has a request running, but takes little, saves nothing up: with more requests it takes turns.
func TestTrickleEarnsNothing(t *testing.T) {
	m := open(t)
	for _, key := range []string{"", "key"} {
		e := start(t, m, engine.Options{Parallel: 2})
		of := func(tenant string) engine.Request {
			r := request(4, 20)
			r.Tenant, r.Key = tenant, key
			r.Fresh = true
			return r
		}
		always := hold(t, e, of("always"))
		for range 5 {
			ended := make(chan error)
			r := of("stays")
			r.Done = func(err error) { ended <- err }
			if err := e.Submit(context.Background(), r); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		}
		release := hold(t, e, of("stays"))
		var all sync.WaitGroup
		var order []string
		for range 4 {
			for _, name := range []string{"always", "stays"} {
				r := of(name)
				all.Add(1)
				r.Done = func(error) { order = append(order, name); all.Done() }
				if err := e.Submit(context.Background(), r); err != nil {
					t.Fatal(err)
				}
			}
		}
		release()
		all.Wait()
		always()
		first := slices.Sorted(slices.Values(order[:4]))
		if want := []string{"always", "always", "stays", "stays"}; !slices.Equal(first, want) {
			t.Errorf("key %q: the first turns are of %v", key, order[:4])
		}
	}
}

// One key fills the queue with any number of tenants. Others still have their shares, until twice as many wait.
func TestQueueIsShared(t *testing.T) {
	m := open(t)
	cases.Check(t, 20, func(rt *rapid.T) {
		o := engine.Options{Parallel: 1, Queue: rapid.IntRange(1, 6).Draw(rt, "queue")}
		e := start(t, m, o)
		defer e.Close()
		var all sync.WaitGroup
		defer all.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		total, waiting := -1, map[string]int{} // the first one runs
		submit := func(key string, tenant int) (refused bool) {
			r := request(4, 5)
			r.Key, r.Tenant = key, fmt.Sprint(key, "/", tenant)
			r.Hold = func() bool { return true }
			r.Done = func(error) { all.Done() }
			all.Add(1)
			err := e.Submit(ctx, r)
			if err != nil {
				all.Done()
				return true
			}
			total++
			for e.Stats().Running == 0 {
				runtime.Gosched()
			}
			return false
		}
		submit("first", 0)
		for i := range o.Queue {
			if submit("many", i) {
				rt.Fatalf("place %d of %d is refused", i, o.Queue)
			}
			waiting["many"]++
		}
		if !submit("many", o.Queue) {
			rt.Fatalf("a key has more than the %d places", o.Queue)
		}
		for i, key := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "many"}), 1, 20).Draw(rt, "keys") {
			keys := len(waiting)
			if waiting[key] == 0 {
				keys++
			}
			want := total == 2*o.Queue || waiting[key] > 0 && (waiting[key]+1)*keys > o.Queue
			refused := submit(key, i)
			if refused != want {
				rt.Fatalf("%q, of which %d wait: refused %v, want %v; waiting %v", key, waiting[key], refused, want, waiting)
			}
			if !refused {
				waiting[key]++
			}
		}
		if s := e.Stats(); s.Waiting != total || !maps.Equal(s.Keys, waiting) {
			rt.Fatalf("%d wait, %v, want %d, %v", s.Waiting, s.Keys, total, waiting)
		}
	})
}

// A key whose requests wait while another's have all places gets one of them at once. The request
// that had it goes on later, with the same text.
func TestKeyGetsPlace(t *testing.T) {
	e := start(t, open(t), engine.Options{Parallel: 2})
	const tokens = 20
	var released atomic.Bool
	var all sync.WaitGroup
	var texts [2][]int32
	busy := make(chan struct{}, len(texts))
	submit := func(r engine.Request) {
		all.Add(1)
		r.Done = func(err error) {
			if err != nil {
				t.Error(err)
			}
			all.Done()
		}
		if err := e.Submit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for i := range texts {
		r := request(30+i, tokens)
		r.Key, r.Tenant = "a", fmt.Sprint("a", i)
		r.Hold = func() bool { return len(texts[i]) >= 5 && !released.Load() }
		r.Step = func(u *engine.Update) {
			texts[i] = append(texts[i], u.Tokens...)
			if len(texts[i]) == 5 {
				busy <- struct{}{}
			}
		}
		submit(r)
	}
	<-busy
	<-busy
	other := request(10, 3)
	other.Key, other.Tenant = "b", "b"
	ended := make(chan error, 1)
	other.Done = func(err error) { ended <- err }
	if err := e.Submit(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits")
	}
	released.Store(true)
	e.Wake()
	all.Wait()
	if n := e.Stats().Preempted; n > 0 {
		t.Errorf("%d requests were stopped for memory", n)
	}
	for i, got := range texts {
		r := request(30+i, tokens)
		r.Fresh = true
		if want, _ := generated(t, e, r); !slices.Equal(got, want) {
			t.Errorf("text %d is %v, want %v", i, got, want)
		}
	}
}

// When memory runs out, the key with the most running requests gives some of it up, whatever their priorities, unless
// another's are below 0. Of its own requests, those of the lowest priority stop.
func TestMemoryIsShared(t *testing.T) {
	m := open(t)
	const tokens = 150
	row := int64(m.NewCache().Pages().RowBytes())
	for name, c := range map[string]struct {
		stops string
		of    []engine.Request
	}{
		"high priorities": {"a1", []engine.Request{{Key: "a", Priority: 9}, {Key: "a", Priority: 9}, {Key: "b"}}},
		"the highest":     {"a0", []engine.Request{{Key: "a", Priority: 8}, {Key: "a", Priority: math.MaxInt}, {Key: "b"}}},
		"of its own":      {"a1", []engine.Request{{Key: "a", Priority: 2}, {Key: "a", Priority: 1}, {Key: "a", Priority: 2}}},
		"below 0":         {"b2", []engine.Request{{Key: "a"}, {Key: "a"}, {Key: "b", Priority: -1}}},
		"the last":        {"c2", []engine.Request{{Key: "a"}, {Key: "b", Priority: 1}, {Key: "c", Priority: 2}}},
		"without keys":    {"1", []engine.Request{{Priority: 3}, {Priority: 1}, {Priority: 2}}},
		"of tenants, no keys": {"1", []engine.Request{{Tenant: "x", Priority: 3}, {Tenant: "y", Priority: 1},
			{Tenant: "x", Priority: 2}}},
		"of one tenant, no key": {"1", []engine.Request{{Tenant: "x"}, {Tenant: "x"}, {Tenant: "y"}}},
	} {
		e := start(t, m, engine.Options{CacheMemory: row * 640}) // enough for two, not for three
		var all sync.WaitGroup
		order := []string{}
		var began atomic.Int32
		for i, of := range c.of {
			r := request(30+i, tokens)
			r.Key, r.Tenant = of.Key, of.Tenant
			r.Priority, r.Fresh = of.Priority, true
			r.Hold = func() bool { return int(began.Load()) < len(c.of) }
			all.Add(1)
			r.Done = func(err error) {
				if err != nil {
					t.Error(err)
				}
				order = append(order, fmt.Sprint(of.Key, i))
				all.Done()
			}
			if err := e.Submit(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			for e.Stats().Running <= i {
				runtime.Gosched()
			}
			began.Add(1)
		}
		e.Wake()
		all.Wait()
		if e.Stats().Preempted == 0 || order[len(order)-1] != c.stops {
			t.Errorf("%s: %d were stopped, and they ended as %v: want %s last", name, e.Stats().Preempted, order, c.stops)
		}
	}
}
