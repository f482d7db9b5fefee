package serve_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/serve"
)

var stressRequests = flag.Int("requests", 400, "requests of TestStress")

// Under overload, with clients that leave, requests that take too long and little memory, every
// request is answered or was abandoned by its client; every answer equals the one that its request
// gets alone; and afterwards nothing is leaked.
//
//	go test ./serve -run TestStress -requests 20000
func TestStress(t *testing.T) {
	const memory = 512 << 10
	m := tinyWith(t, "tiny-qwen2", 512, grove.Options{Threads: 2, Parallel: 12, Queue: 8, CacheMemory: memory})
	s := start(t, m, serve.Options{})
	type question struct{ body, want string }
	var questions []question
	for i := range 24 {
		stream := i%2 == 0
		body, _ := json.Marshal(map[string]any{
			"prompt": strings.Repeat("one two three ", 1+i%7) + string(rune('a'+i%5)), "max_tokens": 1 + 5*i%60, "seed": i,
			"temperature": float64(i%3) / 2,
			"drafter":     []string{"plain", "lookup", "lookup:min=2"}[i%3], "stream": stream, "frequency_penalty": float64(i%2) /
				4, "ignore_eos": true,
		})
		status, _, text := s.send("POST", "/v1/completions", string(body))
		if status != 200 {
			t.Fatalf("%s: status %d: %s", body, status, text)
		}
		want, whole := textOf(text, stream)
		if !whole {
			t.Fatalf("%s: %s", body, text)
		}
		questions = append(questions, question{string(body), want})
	}
	before := runtime.NumGoroutine()
	first := inside.EngineStats(m)
	counts := map[string]int{}
	var mu sync.Mutex
	count := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		counts[what]++
	}
	// ask sends a question and leaves, sometimes.
	ask := func(client *http.Client, rng *rand.Rand) {
		q := questions[rng.IntN(len(questions))]
		own, cancel := context.WithCancel(ctx)
		defer cancel()
		leaves := rng.IntN(3) == 0
		if leaves {
			time.AfterFunc(time.Duration(rng.IntN(20_000))*time.Microsecond, cancel)
		}
		r, _ := http.NewRequestWithContext(own, "POST", s.url+"/v1/completions", strings.NewReader(q.body))
		a, err := client.Do(r)
		if err != nil {
			if !leaves {
				t.Errorf("%s: %v", q.body, err)
			}
			count("left")
			return
		}
		defer a.Body.Close()
		text, err := io.ReadAll(a.Body)
		got, whole := textOf(string(text), strings.Contains(q.body, `"stream":true`))
		switch {
		case err != nil || !whole && a.StatusCode == 200:
			if !leaves {
				t.Errorf("%s: cut short: %v, %s", q.body, err, text)
			}
			count("left")
		case a.StatusCode == http.StatusTooManyRequests && a.Header.Get("Retry-After") != "":
			count("refused")
			time.Sleep(time.Millisecond)
		case a.StatusCode != 200:
			t.Errorf("%s: status %d: %s", q.body, a.StatusCode, text)
		case got != q.want:
			t.Errorf("%s: %q, want %q", q.body, got, q.want)
		default:
			count("answered")
		}
	}
	var all sync.WaitGroup
	const clients = 40
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	for c := range clients {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(c)))
			for i := c; i < *stressRequests; i += clients {
				ask(&http.Client{Transport: transport}, rng)
			}
		})
	}
	all.Wait()
	transport.CloseIdleConnections()
	until(t, "the engine has nothing to do", func() bool { n := inside.EngineStats(m); return n.Running+n.Waiting == 0 })
	until(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before+2 })
	last := inside.EngineStats(m)
	t.Logf("%v; %d preempted, %d of %d bytes", counts, last.Preempted, last.CacheBytes, last.CacheLimit)
	if counts["answered"] == 0 || counts["left"] == 0 || counts["refused"] == 0 {
		t.Errorf("%v: want some of each", counts)
	}
	ended := last.Finished + last.Cancelled + last.Failed - first.Finished - first.Cancelled - first.Failed
	if last.Failed > 0 || ended != last.Submitted-first.Submitted || last.CacheBytes > memory {
		t.Errorf("%+v", last)
	}
}

// textOf returns the text of a completion, and whether it is whole.
func textOf(body string, stream bool) (text string, whole bool) {
	var c struct {
		Choices []struct {
			Text   string
			Finish string `json:"finish_reason"`
		}
	}
	if !stream {
		err := json.Unmarshal([]byte(body), &c)
		if err != nil || len(c.Choices) != 1 {
			return "", false
		}
		return c.Choices[0].Text, c.Choices[0].Finish != ""
	}
	for line := range strings.SplitSeq(body, "\n") {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			return text, whole
		}
		c.Choices = nil
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			return "", false
		}
		for _, choice := range c.Choices {
			text += choice.Text
			whole = whole || choice.Finish != ""
		}
	}
	return fmt.Sprint(text, " without an end"), false
}
