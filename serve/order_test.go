package serve_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/serve"
)

// If keys are needed, a gateway's header divides a key's tenant: prompts are not shared between
// values of the header. Without keys it does not.
func TestFairnessHeader(t *testing.T) {
	const body = `{"prompt":"one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen one two three four five six","max_tokens":2}`
	for _, header := range []string{"X-Gateway-Inference-Fairness-Id", "X-Llm-D-Inference-Fairness-Id"} {
		for _, keys := range [][]string{nil, {"key"}} {
			s := start(t, tiny(t, "tiny-qwen3", 1024), serve.Options{Keys: keys})
			cached := func(user string) float64 {
				status, _, text := s.send("POST", "/v1/completions", body, "X-Api-Key", "key", header, user)
				if status != 200 {
					t.Fatal(text)
				}
				n, _ := at(object(t, text), "usage.prompt_tokens_details.cached_tokens").(float64)
				return n
			}
			first := cached("a")
			again := cached("a")
			other := cached("b")
			if first != 0 || again == 0 || (other == 0) != (keys != nil) {
				t.Errorf("%s with keys %q: %v, %v and %v tokens are from the cache", header, keys, first, again, other)
			}
		}
	}
}

// occupied returns a server with one place, which a request of the key "first" holds until release is called.
func occupied(t *testing.T, queue int) (s *server, m *grove.Model, release func()) {
	m = tinyWith(t, "tiny-qwen3", 1<<17, grove.Options{Threads: 1, Parallel: 1, Queue: queue})
	s = start(t, m, serve.Options{Keys: []string{"first", "many", "one"}})
	ctx, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/completions", strings.NewReader(endless))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", "first")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return s, m, func() { cancel(); a.Body.Close() }
}

// A key does not get more of the machine by naming a different user in each request, nor does one behind a gateway.
func TestUsersShareTheirKeysPart(t *testing.T) {
	for _, header := range []string{"", "X-Gateway-Inference-Fairness-Id"} {
		const each = 12
		s, m, release := occupied(t, 0)
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		for i := range 2 * each {
			key, user := "one", "user"
			if i%2 == 0 {
				key, user = "many", fmt.Sprint("user", i)
			}
			headers := []string{"X-Api-Key", key}
			body := `{"prompt":"x","max_tokens":8,"ignore_eos":true,"user":"` + user + `"}`
			if header != "" {
				headers = append(headers, header, user)
				body = `{"prompt":"x","max_tokens":8,"ignore_eos":true}`
			}
			all.Go(func() {
				if status, _, text := s.send("POST", "/v1/completions", body, headers...); status != 200 {
					t.Error(text)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, key)
			})
			until(t, "the request waits", func() bool { return inside.EngineStats(m).Waiting == i+1 })
		}
		release()
		all.Wait()
		many := strings.Count(strings.Join(order[:each], " "), "many")
		if many < each/3 || many > each*2/3 {
			t.Errorf("%q: of the first %d answers the key with many users has %d: %v", header, each, many, order)
		}
	}
}

// If one key fills the queue, another is still let in, and may wait its turn.
func TestQueueOfAnotherKey(t *testing.T) {
	s, m, release := occupied(t, 2)
	var all sync.WaitGroup
	send := func(key string) (int, string) {
		status, _, text := s.send("POST", "/v1/completions", `{"prompt":"x","max_tokens":5}`, "X-Api-Key", key)
		return status, text
	}
	for i, key := range []string{"many", "many", "one"} {
		all.Go(func() {
			if status, text := send(key); status != 200 {
				t.Errorf("%s: status %d: %s", key, status, text)
			}
		})
		until(t, "the request waits", func() bool { return inside.EngineStats(m).Waiting == i+1 || t.Failed() })
		if i == 0 {
			continue
		}
		if status, text := send("many"); status != 429 {
			t.Errorf("status %d: %s", status, text)
		}
	}
	release()
	all.Wait()
}
