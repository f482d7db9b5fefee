package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/grammar"
	embedded "github.com/grovellm/grove/models"
)

// watched is a context that does something when it is asked whether it has ended.
type watched struct {
	context.Context
	do func()
}

func (w watched) Err() error {
	w.do()
	return w.Context.Err()
}

// A schema is relaxed while no lock is held, and the cached result gives the same answers.
func TestRelaxationsOfOthers(t *testing.T) {
	schema := func(name string, more int) string {
		return `{"type":"object","properties":{"` + name + `":{"type":"string","pattern":"^\\bx"}` +
			strings.Repeat(`,"y":{"type":"string"}`, more) + `}}`
	}
	relaxations.Lock()
	clear(relaxations.known)
	relaxations.Unlock()
	asked := 0
	work := grammar.MostWork
	_, err := relaxed(watched{context.Background(), func() {
		asked++
		if !relaxations.TryLock() {
			t.Fatal("the lock is held")
		}
		relaxations.Unlock()
	}}, schema("locked", 0), &work)
	if err != nil || asked == 0 || work == grammar.MostWork {
		t.Errorf("asked %d times, work left %d, %v", asked, work, err)
	}
	for left := range 4 { // the work that this many schemas take, minus one
		var answers [2][]grammar.Relaxed
		for again := range answers {
			one := grammar.MostWork - work
			budget := left*one + one - 1
			for i := range 4 {
				r, err := relaxed(context.Background(), schema(fmt.Sprintf("same%d%d", left, i), 0), &budget)
				if err != nil {
					t.Fatal(err)
				}
				if whole := i < left; whole != (r.Schema != anyObject) {
					t.Errorf("work for %d schemas: schema %d is %s", left, i, r.Schema)
				}
				answers[again] = append(answers[again], r)
			}
		}
		if !reflect.DeepEqual(answers[0], answers[1]) {
			t.Errorf("%v, and the second time %v", answers[0], answers[1])
		}
	}
	work = grammar.MostWork
	long := schema("long", mostRelaxed/20)
	if _, err := relaxed(context.Background(), long, &work); err != nil {
		t.Fatal(err)
	}
	if _, kept := relaxations.known[long]; kept {
		t.Error("a long schema is remembered")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := relaxed(ctx, schema("gone", 0), &work); err == nil {
		t.Error("the end of the request does not end it")
	}
}

// The arguments of an earlier call take memory in proportion to their text, however deep it is nested.
func TestArgumentsAreReadOnce(t *testing.T) {
	for _, begin := range []string{"[", `{"a":`, `{"a":[`, `{"a":[0],`, `{"a":"b",`, `"`} {
		text := strings.Repeat(begin, 1<<16/len(begin))
		if got := allocated(func() { argumentsOf(text) }); got > 2<<20 {
			t.Errorf("%d bytes of %s: %d bytes allocated", len(text), begin, got)
		}
	}
	deep := strings.Repeat(`{"a":`, maxDepth)
	if got, want := closed(deep+"{"), deep+"{"; got != want {
		t.Errorf("what is nested too deep becomes %s", got)
	}
	if got, want := closed(deep+"1,"), deep+"1"+strings.Repeat("}", maxDepth); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Requests with large bodies, or that continue large responses, are prepared in turns, which end with the preparation.
// Others do not wait.
func TestLargeBodiesTakeTurns(t *testing.T) {
	m, err := grove.OpenGGUF("embedded", embedded.Target(), grove.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := New(Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.SetModel(&Model{Model: m, Name: "m"})
	send := func(path, body string, header ...string) int {
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", path, strings.NewReader(body))
		for _, value := range header {
			r.Header.Set("X-Request-Timeout", value)
		}
		s.ServeHTTP(w, r)
		return w.Code
	}
	s.stored.add(&storedResponse{id: "resp_large", input: []storedItem{{raw: json.RawMessage(`{"role":"user","content":"` +
		strings.Repeat(" ", largeBody) + `"}`)}}})
	padding := `,"padding":"` + strings.Repeat("x", largeBody) + `"}`
	long := strings.Repeat(" ", largeBody)
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/v1/completions", `{"prompt":"x","max_tokens":1` + padding, 200},
		{"/v1/completions", `{"prompt":"x","max_tokens":2,"stream":true` + padding, 200},
		{"/v1/completions", `{"prompt":"` + long + `"}`, 400},
		{"/v1/embeddings", `{"input":"x"` + padding, 200},
		{"/tokenize", `{"content":"` + long + `"}`, 200},
		{"/v1/responses", `{"input":"x","previous_response_id":"resp_large"}`, 400},
	} {
		if got := send(c.path, c.body); got != c.status || len(s.turns) > 0 {
			t.Errorf("%s: status %d, %d turns have not ended", c.path, got, len(s.turns))
		}
		for range cap(s.turns) {
			s.turns <- struct{}{}
		}
		if got := send(c.path, c.body, "0.05"); got != 504 {
			t.Errorf("%s: status %d while others have all turns", c.path, got)
		}
		if got := send("/v1/completions", `{"prompt":"x","max_tokens":1}`); got != 200 {
			t.Errorf("status %d of a small request", got)
		}
		ended := make(chan int)
		go func() { ended <- send(c.path, c.body) }()
		for range cap(s.turns) {
			<-s.turns
		}
		if got := <-ended; got != c.status {
			t.Errorf("%s: status %d after the others' turns", c.path, got)
		}
	}
}

// Requests of a key for embeddings wait for each other, up to a limit, and not for those of other keys.
func TestLanes(t *testing.T) {
	var l lanes
	const most = 3
	enter := func(ctx context.Context, key string, most int) (func(), error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute) // it does not pass
		defer cancel()
		return l.enter(ctx, key, most)
	}
	users := func(key string) int {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.all[key] == nil {
			return 0
		}
		return l.all[key].users
	}
	leave, err := enter(t.Context(), "a", most)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var failed atomic.Int32
	for i := range most {
		ctx := t.Context()
		if i == 0 {
			ctx = gone
		}
		all.Go(func() {
			leave, err := enter(ctx, "a", most)
			if err != nil {
				failed.Add(1)
				return
			}
			leave()
		})
	}
	for users("a") < 1+most {
		runtime.Gosched()
	}
	if _, err := enter(t.Context(), "a", most); err != errFull {
		t.Errorf("one more: %v", err)
	}
	other, err := enter(t.Context(), "b", most)
	if err != nil {
		t.Fatalf("another key: %v", err)
	}
	other()
	cancel()
	for users("a") > most {
		runtime.Gosched()
	}
	leave()
	all.Wait()
	if n := len(l.all); n > 0 || failed.Load() != 1 {
		t.Errorf("%d lanes are left, %d requests failed", n, failed.Load())
	}
}
