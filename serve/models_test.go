package serve_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/serve"
	"github.com/grovellm/grove/tensor"
)

// shelf has sources of random models, and counts its models that were loaded and that are live.
type shelf struct {
	testing.TB
	paths       []string
	fails       atomic.Int32 // every n-th load fails; 0: none
	loads, live atomic.Int32 // loads begun; models that garbage collection has not found
}

func newShelf(t testing.TB, n int) *shelf {
	f := &shelf{TB: t}
	for i := range n {
		s, err := synth.Lookup("tiny-qwen3")
		if err != nil {
			t.Fatal(err)
		}
		s.Context = 256
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := synth.Write(ctx, path, s, synth.Options{Type: tensor.Q8_0, Seed: uint64(i + 1)}); err != nil {
			t.Fatal(err)
		}
		f.paths = append(f.paths, path)
	}
	return f
}

var errBroken = errors.New("a broken file")

func (f *shelf) open(i int) (*serve.Model, error) {
	if n, every := f.loads.Add(1), f.fails.Load(); every > 0 && n%every == 0 {
		return nil, errBroken
	}
	m, err := grove.Open(f.paths[i], grove.Options{Threads: 1})
	if err != nil {
		return nil, err
	}
	f.live.Add(1)
	runtime.AddCleanup(m, func(*shelf) { f.live.Add(-1) }, f)
	return &serve.Model{Model: m, Drafter: "lookup"}, nil
}

// sources returns the models m0, m1 … of that many bytes each.
func (f *shelf) sources(bytes ...int64) (list []serve.Source) {
	for i := range f.paths {
		list = append(list, serve.Source{Name: fmt.Sprint("m", i), Bytes: bytes[i],
			Load: func() (*serve.Model, error) { return f.open(i) }})
	}
	return list
}

// startMany serves sources.
func startMany(t testing.TB, o serve.Options, list []serve.Source) *server {
	t.Helper()
	log := &buffer{}
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetSources(list); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return &server{t, s, h.URL, log}
}

func bodyOf(model string, i int) string {
	return fmt.Sprintf(`{"model":%q,"prompt":"one two three %d","max_tokens":%d,"seed":%d,"temperature":%d,"ignore_eos":true}`,
		model, i%3, 3+5*i%17, i, i%2)
}

// ask returns the text of an answer, or the code of an error.
func (s *server) ask(body string) (text, code string) {
	_, _, answer := s.send("POST", "/v1/completions", body)
	o := object(s, answer)
	if code, ok := at(o, "error.code").(string); ok {
		return "", code
	}
	text, _ = at(o, "choices.0.text").(string)
	return text, ""
}

// Requests to several models, in any order and concurrently, with loads that fail, models that are
// unloaded when idle or to make room, and clients that leave: every answer equals the model's own,
// the memory counted never exceeds the limit, and nothing is leaked.
func TestManyModels(t *testing.T) {
	const models, questions = 4, 6
	f := newShelf(t, models)
	want := map[string]string{}
	for i := range models {
		alone := startMany(t, serve.Options{KeepAlive: -1}, f.sources(1, 1, 1, 1)[i:i+1])
		for q := range questions {
			body := bodyOf(fmt.Sprint("m", i), q)
			text, code := alone.ask(body)
			if text == "" {
				t.Fatalf("%s: %q", body, code)
			}
			want[body] = text
		}
		alone.CloseModels()
	}
	transport := http.DefaultTransport.(*http.Transport)
	cases.Check(t, 20, func(rt *rapid.T) {
		sizes := rapid.SliceOfN(rapid.Int64Range(1, 4), models, models).Draw(rt, "sizes")
		memory := rapid.Int64Range(0, 9).Draw(rt, "memory")
		keep := rapid.SampledFrom([]time.Duration{1, time.Millisecond, time.Hour, -1}).Draw(rt, "keep alive")
		waiting := rapid.SampledFrom([]int{0, 0, 2}).Draw(rt, "waiting")
		f.fails.Store(int32(rapid.SampledFrom([]int{0, 0, 3}).Draw(rt, "a load in so many fails")))
		clients := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, models*questions-1), 1, 6), 1, 6).Draw(rt, "clients")
		leaves := rapid.SliceOfN(rapid.IntRange(0, 9), len(clients), len(clients)).Draw(rt, "a client leaves at its")
		before := runtime.NumGoroutine()
		s := startMany(t, serve.Options{Memory: memory, KeepAlive: keep, Waiting: waiting}, f.sources(sizes...))
		done := make(chan struct{})
		var watching, all sync.WaitGroup
		watching.Go(func() {
			for {
				if used, sum := s.Accounts(); used != sum || memory > 0 && used > memory {
					t.Errorf("%d bytes are counted, models take %d, and there are %d", used, sum, memory)
				}
				select {
				case <-done:
					return
				case <-time.After(100 * time.Microsecond):
				}
			}
		})
		for c, list := range clients {
			all.Go(func() {
				for i, number := range list {
					model := number % models
					body := bodyOf(fmt.Sprint("m", model), number/models)
					if i == leaves[c] {
						ctx, cancel := context.WithTimeout(ctx, time.Duration(number)*50*time.Microsecond)
						r, _ := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/completions", strings.NewReader(body))
						if a, err := http.DefaultClient.Do(r); err == nil {
							a.Body.Close()
						}
						cancel()
						continue
					}
					text, code := s.ask(body)
					fits := memory == 0 || sizes[model] <= memory
					switch {
					case code == "" && text == want[body] && fits:
					case code == "out_of_memory" && memory > 0 && (!fits || len(clients) > 1):
					case code == "queue_full" && waiting > 0 && 2*len(clients) > waiting: // clients that left may still wait
					case code == "load_failed" && f.fails.Load() > 0:
					default:
						t.Errorf("%s of %d bytes: %q, %q, want %q; %d bytes of memory", body, sizes[model], text, code, want[body], memory)
					}
				}
			})
		}
		all.Wait()
		transport.CloseIdleConnections()
		until(t, "no model has a user", func() bool { return s.Users() == 0 })
		if keep > 0 && keep < time.Second {
			until(t, "idle models are unloaded", func() bool { used, _ := s.Accounts(); return used == 0 })
		}
		close(done)
		watching.Wait()
		s.CloseModels()
		// one may have been loading
		until(t, "all models are unloaded", func() bool { used, _ := s.Accounts(); return used == 0 })
		// the HTTP server has some
		until(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before+3 })
	})
	until(t, "all models are garbage", func() bool { runtime.GC(); return f.live.Load() == 0 })
}

// A single model is loaded at the start, whatever name requests give it; of several models, each is
// loaded when a request names it. The list says which are loaded, and what is known about them.
func TestModelList(t *testing.T) {
	f := newShelf(t, 3)
	sources := f.sources(1, 1, 1)
	f.fails.Store(1)
	s, err := serve.New(serve.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetSources(sources[:1]); !errors.Is(err, errBroken) {
		t.Errorf("a single model that is broken: %v", err)
	}
	twice := []serve.Source{sources[0], sources[1], sources[0]}
	if err := s.SetSources(twice); err == nil || !strings.Contains(err.Error(), `"m0"`) {
		t.Errorf("two models of one name: %v, want an error with the name", err)
	}
	f.fails.Store(0)
	one := startMany(t, serve.Options{}, sources[:1])
	if text, code := one.ask(bodyOf("any-name", 0)); text == "" || f.loads.Load() != 2 {
		t.Errorf("%q after %d loads", code, f.loads.Load())
	}
	one.CloseModels()

	many := startMany(t, serve.Options{}, sources)
	states := func() (all string) {
		_, _, text := many.send("GET", "/v1/models", "")
		for _, m := range object(t, text)["data"].([]any) {
			all += fmt.Sprint(at(m, "id"), " ", at(m, "status.value"), " ", at(m, "meta.n_ctx"), ", ")
		}
		return all
	}
	check := func(want string) {
		t.Helper()
		if got := states(); got != want {
			t.Errorf("the list is %q, want %q", got, want)
		}
	}
	check("m0 unloaded <nil>, m1 unloaded <nil>, m2 unloaded <nil>, ")
	many.ask(bodyOf("m1", 0))
	check("m0 unloaded <nil>, m1 loaded 256, m2 unloaded <nil>, ")
	many.ask(strings.Replace(bodyOf("", 0), `"model":"",`, "", 1))
	check("m0 loaded 256, m1 loaded 256, m2 unloaded <nil>, ")
	if text, code := many.ask(bodyOf("m1:latest", 0)); text == "" {
		t.Errorf("a name as Ollama's clients write it: %q", code)
	}
	if _, code := many.ask(bodyOf("m3", 0)); code != "model_not_found" {
		t.Errorf("an unknown model: %q", code)
	}
	for path, want := range map[string]int{"/v1/models/m2": 200, "/v1/models/m3": 404, "/readyz": 200, "/livez": 200} {
		if status, _, text := many.send("GET", path, ""); status != want {
			t.Errorf("%s: status %d: %s", path, status, text)
		}
	}
	_, _, metrics := many.send("GET", "/metrics", "")
	for _, want := range []string{`grove_model_loaded{model="m1"} 1`, `grove_model_loaded{model="m2"} 0`,
		`grove_model_loads_total{model="m0"} 1`,
		`grove_requests_running{model="m1"} 0`, `grove_time_to_first_token_seconds_count{model="m0"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
	f.fails.Store(1)
	if _, code := many.ask(bodyOf("m2", 0)); code != "load_failed" || !strings.Contains(many.log.String(), errBroken.Error()) {
		t.Errorf("a broken model: %q\n%s", code, many.log)
	}
	many.CloseModels()
	check("m0 unloaded 256, m1 unloaded 256, m2 unloaded <nil>, ")
}

// An answer that waited for its model says how long, in Ollama's load_duration.
func TestLoadDuration(t *testing.T) {
	f := newShelf(t, 2)
	const slow = 50 * time.Millisecond
	sources := f.sources(1, 1)
	for i := range sources {
		load := sources[i].Load
		sources[i].Load = func() (*serve.Model, error) {
			time.Sleep(slow)
			return load()
		}
	}
	s := startMany(t, serve.Options{}, sources)
	for path, body := range map[string]map[string]any{"/api/generate": {"model": "m0", "prompt": "x", "raw": true,
		"stream": false, "options": map[string]any{"num_predict": 1}}, "/api/embed": {"model": "m1", "input": "x"}} {
		a := s.post(path, body)
		if load, _ := a["load_duration"].(float64); load < float64(slow) || load > a["total_duration"].(float64) {
			t.Errorf("%s: the model was loaded for %v of %v", path, load, a["total_duration"])
		}
	}
}

// A server without models says so.
func TestNoModels(t *testing.T) {
	s := startMany(t, serve.Options{}, nil)
	if status, _, text := s.send("GET", "/health", ""); status != 200 {
		t.Errorf("health: status %d: %s", status, text)
	}
	if _, _, text := s.send("GET", "/v1/models", ""); len(object(t, text)["data"].([]any)) != 0 {
		t.Error(text)
	}
	if _, code := s.ask(bodyOf("", 0)); code != "model_not_found" {
		t.Errorf("a request is answered with %q", code)
	}
}

// The least recently used idle model makes room; one that answers does not.
func TestEviction(t *testing.T) {
	f := newShelf(t, 3)
	sources := f.sources(2, 2, 3)
	var s *server
	for i := range sources {
		load := sources[i].Load
		sources[i].Load = func() (*serve.Model, error) {
			if s.Closing() {
				t.Errorf("m%d is loaded before the model that made room is closed", i)
			}
			return load()
		}
	}
	s = startMany(t, serve.Options{Memory: 5, KeepAlive: -1}, sources)
	loaded := func(want string) {
		t.Helper()
		got := ""
		_, _, text := s.send("GET", "/v1/models", "")
		for _, m := range object(t, text)["data"].([]any) {
			if at(m, "status.value") == "loaded" {
				got += at(m, "id").(string)
			}
		}
		if got != want {
			t.Errorf("%q are loaded, want %q", got, want)
		}
	}
	for _, step := range []struct{ ask, loaded string }{{"m0", "m0"}, {"m1", "m0m1"}, {"m0", "m0m1"},
		{"m2", "m0m2"}, {"m1", "m1m2"}} {
		if _, code := s.ask(bodyOf(step.ask, 0)); code != "" {
			t.Fatal(step, code)
		}
		loaded(step.loaded)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, ended := s.serving(ctx, time.Minute)
	// until the context is full, and nobody reads it
	busy := p.dial(t, "/v1/completions", strings.Replace(endless, "{", `{"model":"m2",`, 1))
	until(t, "an answer", func() bool {
		_, _, text := s.send("GET", "/metrics", "")
		return strings.Contains(text, `grove_requests_running{model="m2"} 1`) || s.Users() == 1
	})
	if _, code := s.ask(bodyOf("m0", 0)); code != "" {
		t.Error(code)
	}
	loaded("m0m2")
	busy.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	loaded("")
}

// A request that waits for a model ends with its client, its time or the server, and a load that
// nobody waits for any more is kept.
func TestWaiting(t *testing.T) {
	f := newShelf(t, 2)
	for _, c := range []struct {
		name   string
		limits serve.Limits
		status int
		code   string
	}{{"the time", serve.Limits{Time: 20 * time.Millisecond}, 504, "timeout"}, {"the server", serve.Limits{}, 503,
		"shutting_down"}, {"the queue", serve.Limits{}, 429, "queue_full"}} {
		begin, finish := make(chan struct{}), make(chan struct{})
		sources := f.sources(1, 1)
		sources[1].Load = func() (*serve.Model, error) {
			close(begin)
			<-finish
			return f.open(1)
		}
		s := startMany(t, serve.Options{Limits: c.limits, Waiting: 1}, sources)
		ctx, cancel := context.WithCancel(ctx)
		_, ended := s.serving(ctx, time.Minute)
		var first sync.WaitGroup
		first.Go(func() {
			text, code := s.ask(bodyOf("m1", 0))
			if c.code == "queue_full" && text == "" || c.code != "queue_full" && code != c.code {
				t.Errorf("%s ends a wait: %q, %q", c.name, text, code)
			}
		})
		<-begin
		switch c.code {
		case "shutting_down":
			cancel()
		case "queue_full":
			if status, _, text := s.send("POST", "/v1/completions", bodyOf("m1", 1)); status != c.status {
				t.Errorf("a full queue: status %d: %s", status, text)
			}
			close(finish)
		}
		first.Wait()
		if c.code != "queue_full" {
			close(finish)
		}
		if c.code == "timeout" {
			until(t, "the load ends", func() bool { return strings.Contains(s.log.String(), "loaded") })
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	until(t, "all models are garbage", func() bool { runtime.GC(); return f.live.Load() == 0 })
}

// A load that panics counts as one that fails, and affects only its own requests.
func TestLoadPanics(t *testing.T) {
	f := newShelf(t, 3)
	list := f.sources(1, 1, 1)
	list[1].Load = func() (*serve.Model, error) { panic("planted") }
	list[2].Load = func() (*serve.Model, error) { return nil, nil }
	s := startMany(t, serve.Options{}, list)
	defer s.CloseModels()
	for _, model := range []string{"m1", "m2", "m1"} {
		if _, code := s.ask(bodyOf(model, 0)); code != "load_failed" {
			t.Errorf("%s, which panics or is none: %q", model, code)
		}
		if text, code := s.ask(bodyOf("m0", 0)); text == "" {
			t.Errorf("the other model: %q", code)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "planted") || !strings.Contains(log, "neither a model") {
		t.Errorf("the log does not tell: %s", log)
	}
}

// A new list of sources replaces the old one even while requests run: these finish on their models,
// which are then closed, and no others continue.
func TestAnotherListOfSources(t *testing.T) {
	f := newShelf(t, 2)
	s := startMany(t, serve.Options{KeepAlive: -1}, f.sources(1, 1))
	var mu sync.Mutex
	var closed []func() bool
	source := func(name string) serve.Source {
		return serve.Source{Name: name, Load: func() (*serve.Model, error) {
			m, err := f.open(0)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				closed = append(closed, func() bool {
					_, err := m.Embed(t.Context(), []int32{1}, grove.EmbedOptions{})
					return errors.Is(err, grove.ErrClosed)
				})
			}
			return m, err
		}}
	}
	var asking sync.WaitGroup
	for i := range 8 {
		if err := s.SetSources([]serve.Source{source("a"), source("b")}); err != nil {
			t.Fatal(err)
		}
		asking.Go(func() {
			if text, code := s.ask(bodyOf("b", i)); code != "" {
				t.Errorf("list %d: %s, %s", i, text, code)
			}
		})
		if i%2 == 0 {
			asking.Wait()
		}
	}
	asking.Wait()
	s.CloseModels()
	for i, is := range closed {
		until(t, fmt.Sprint("model ", i, " is closed"), is)
	}
}

// Limits below 0 are refused at the start, not when requests come.
func TestLimitsBelowZero(t *testing.T) {
	for field, l := range map[string]serve.Limits{"Ping": {Ping: -1}, "Stored": {Stored: -1}, "Write": {Write: -time.Second}} {
		if _, err := serve.New(serve.Options{Limits: l}); err == nil || !strings.Contains(err.Error(), "Limits."+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// What is known of a model since it was loaded is listed after it is unloaded, whoever asked meanwhile.
func TestListAfterUnloading(t *testing.T) {
	f := newShelf(t, 2)
	s := startMany(t, serve.Options{KeepAlive: 1}, f.sources(1, 1))
	s.post("/v1/completions", map[string]any{"model": "m1", "prompt": []int{1}, "max_tokens": 1})
	for loaded := true; loaded; time.Sleep(time.Millisecond) {
		_, _, text := s.send("GET", "/api/ps", "")
		loaded = !strings.Contains(text, `"models":[]`)
	}
	_, _, text := s.send("GET", "/v1/models", "")
	if list := object(t, text); at(list, "data.0.max_model_len") != nil || at(list, "data.1.max_model_len") != 256.0 {
		t.Errorf("%s: want the context of m1, which was loaded", text)
	}
}

// A model whose file was replaced while it was not loaded is described as the new one.
func TestReplacedFile(t *testing.T) {
	f := newShelf(t, 2)
	s := startMany(t, serve.Options{KeepAlive: 1}, f.sources(1, 1))
	family := func() any {
		s.post("/v1/completions", map[string]any{"model": "m0", "prompt": []int{1}, "max_tokens": 1})
		return at(s.post("/api/show", map[string]any{"model": "m0"}), "details.family")
	}
	if got := family(); got != "qwen3" {
		t.Fatal(got)
	}
	other, err := synth.Lookup("tiny-llama2")
	if err != nil {
		t.Fatal(err)
	}
	if err := synth.Write(ctx, f.paths[0], other, synth.Options{Type: tensor.Q8_0, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	for state := any(nil); state != "unloaded"; time.Sleep(time.Millisecond) {
		_, _, text := s.send("GET", "/v1/models", "")
		state = at(object(t, text), "data.0.status.value")
	}
	if got := family(); got != "llama" {
		t.Errorf("the family is %v", got)
	}
}
