package serve_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/serve"
)

// endlessOf has bodies in all protocols, of requests that do not end within a test.
var endlessOf = map[string]map[string]any{
	"/v1/completions":      {"prompt": "x", "n": 3},
	"/v1/chat/completions": {"messages": []any{map[string]any{"role": "user", "content": "x"}}, "n": 2},
	"/v1/messages":         {"messages": []any{map[string]any{"role": "user", "content": "x"}}},
	"/v1/responses":        {"input": "x"},
	"/api/chat":            {"messages": []any{map[string]any{"role": "user", "content": "x"}}},
	"/api/generate":        {"prompt": "x"},
	"/completion":          {"prompt": "x"},
}

// figureIn returns a figure of a log line, or -1 if it has none.
func figureIn(line, name string) int {
	found := regexp.MustCompile(` ` + name + `=([0-9]+)`).FindStringSubmatch(line)
	if found == nil {
		return -1
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

// If an answer ends early, streamed or whole, the log and the metrics have its status, and the log
// has the text generated until then.
func TestLogOfEnds(t *testing.T) {
	t.Parallel()
	m := tiny(t, "tiny-qwen3", 1<<17)
	ends := map[int]func(*server, context.CancelFunc){
		499: func(_ *server, leave context.CancelFunc) { leave() },
		503: func(s *server, _ context.CancelFunc) { s.Close() },
		504: func(*server, context.CancelFunc) {},
	}
	for i, path := range slices.Sorted(maps.Keys(endlessOf)) {
		for status, end := range ends {
			streamed := (i+status)%2 == 0 // in turn, each path and each end
			fields := endlessOf[path]
			name := fmt.Sprintf("%s, streamed %v, status %d", path, streamed, status)
			s := start(t, m, serve.Options{})
			before := inside.EngineStats(m).Tokens
			ctx, leave := context.WithCancel(ctx)
			body := jsonOf(with(fields, "ignore_eos", true, "stream", streamed, "drafter", "plain", "max_tokens", 100000,
				"options", map[string]any{"num_predict": 100000}))
			r, err := http.NewRequestWithContext(ctx, "POST", s.url+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if status == 504 {
				r.Header.Set("X-Request-Timeout", "0.1")
			}
			ended, seen := make(chan error, 1), atomic.Bool{}
			go func() {
				a, err := http.DefaultClient.Do(r)
				if err == nil {
					for lines := bufio.NewScanner(a.Body); lines.Scan(); {
						if strings.Contains(lines.Text(), "{") {
							seen.Store(true)
						}
					}
					err = a.Body.Close()
				}
				ended <- err
			}()
			until(t, name+": tokens", func() bool {
				return inside.EngineStats(m).Tokens > before+9 && (seen.Load() || !streamed) ||
					strings.Contains(s.log.String(), "endpoint=")
			})
			end(s, leave)
			until(t, name+": a line", func() bool { return strings.Contains(s.log.String(), "endpoint="+path) })
			<-ended
			leave()
			until(t, name+": rest", func() bool { return inside.EngineStats(m).Running == 0 })
			line := s.log.String()
			generated := int(inside.EngineStats(m).Tokens - before)
			n, _ := fields["n"].(int)
			logged := figureIn(line, "tokens")
			least := 1
			if status == 504 { // which may come before the first token
				least = 0
			}
			if logged < least || logged > generated || logged < generated-max(n, 1) { // a last step may be under way
				t.Errorf("%s: %d tokens in the log, of %d", name, logged, generated)
			}
			if figureIn(line, "status") != status || figureIn(line, "prompt") < 1 ||
				streamed && status != 504 && figureIn(line, "ttft_ms") < 0 ||
				!strings.Contains(line, "error=") {
				t.Errorf("%s:\n%s", name, line)
			}
			counted := fmt.Sprintf(`grove_http_requests_total{endpoint="%s",status="%d"} 1`, path, status)
			if _, _, metrics := s.send("GET", "/metrics", ""); !strings.Contains(metrics, counted) {
				t.Errorf("%s: the metrics do not count it", name)
			}
		}
	}
}

// failing is a drafter that fails after some rounds.
type failing struct{ draft.Base }

type failingState struct{ rounds int }

func (*failingState) Close() {}

func (failing) Begin(draft.Options) (draft.State, error) { return &failingState{}, nil }
func (failing) Commit([]draft.Rows) error                { return nil }
func (failing) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	for _, r := range requests {
		s := r.State.(*failingState)
		s.rounds++
		if s.rounds > 30 {
			return nil, errors.New("it fails")
		}
	}
	return make([]draft.Proposal, len(requests)), nil
}

func init() {
	draft.Register(draft.Family{Name: "zz-failing", Help: "fails",
		New: func(string, draft.Target) (draft.Drafter, error) { return failing{}, nil }})
}

// If a fault of the server ends a stream, the log has the fault and its status.
func TestLogOfFailedStream(t *testing.T) {
	s := start(t, tiny(t, "tiny-qwen3", 1<<12), serve.Options{})
	for path, fields := range endlessOf {
		body := with(fields, "ignore_eos", true, "stream", true, "drafter", "zz-failing", "temperature", 0,
			"max_tokens", 1000, "n", 1)
		before := s.log.String()
		status, _, text := s.send("POST", path, jsonOf(body))
		var line string
		until(t, "a line", func() bool {
			line = strings.TrimPrefix(s.log.String(), before)
			return strings.Contains(line, "endpoint="+path)
		})
		if status != 200 || !strings.Contains(text, "internal error") {
			t.Errorf("%s: status %d: %s", path, status, text)
		}
		if figureIn(line, "status") != 500 || figureIn(line, "tokens") < 1 || !strings.Contains(line, "it fails") {
			t.Errorf("%s:\n%s", path, line)
		}
	}
}

// So does it if fetching a model fails once its answer has begun.
func TestLogOfFailedPull(t *testing.T) {
	s := start(t, nil, serve.Options{
		Pull: func(_ context.Context, _ string, progress func(string, int64, int64)) (serve.Source, error) {
			progress("pulling", 1, 2)
			return serve.Source{}, errors.New("it is not there")
		}})
	status, _, text := s.send("POST", "/api/pull", `{"model":"a/b"}`)
	until(t, "a line", func() bool { return strings.Contains(s.log.String(), "endpoint=") })
	line := s.log.String()
	if status != 200 || !strings.Contains(text, `"error":"it is not there"`) || figureIn(line, "status") != 502 ||
		!strings.Contains(line, "it is not there") {
		t.Errorf("status %d: %s\n%s", status, text, line)
	}
}

// However long the path or the model's name that a client sends, its line of the log is short.
func TestLogOfLongNames(t *testing.T) {
	s := start(t, nil, serve.Options{})
	if err := s.SetSources([]serve.Source{{Name: "a"}, {Name: "b"}}); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 20_000)
	for path, body := range map[string]string{"/v1/completions": `{"model":"` + long + `","prompt":"x"}`, "/" + long: "{}"} {
		before := s.log.String()
		status, _, _ := s.send("POST", path, body)
		line := ""
		until(t, "a line", func() bool {
			line = strings.TrimPrefix(s.log.String(), before)
			return strings.HasSuffix(line, "\n")
		})
		if status != 404 || len(line) > 2000 || !strings.Contains(line, "xxx") {
			t.Errorf("status %d, a line of %d bytes: %.300s", status, len(line), line)
		}
	}
}

// exhausted is a listener that fails a few times, as if there were no more files, and then accepts connections.
type exhausted struct {
	net.Listener
	left int
}

func (e *exhausted) Accept() (net.Conn, error) {
	e.left--
	if e.left >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	return e.Listener.Accept()
}

// If connections cannot be accepted, there is one warning, not one each time. Clients' behaviour causes none.
func TestLogOfListener(t *testing.T) {
	s := start(t, tiny(t, "tiny-qwen3", 256), serve.Options{})
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, &exhausted{l, 3}, time.Minute) }()
	if a, err := http.Get("http://" + l.Addr().String() + "/livez"); err != nil || a.StatusCode != 200 {
		t.Error(a, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	log := s.log.String()
	if strings.Count(log, "Accept error") != 1 || !strings.Contains(log, `level=WARN msg="http: Accept error`) {
		t.Error(log)
	}
}

// The log of a completed answer has the figures of its usage, for choices and prompts together.
func TestLogOfUsage(t *testing.T) {
	for _, fields := range []map[string]any{
		{"prompt": []any{"x", "y z"}, "n": 3, "max_tokens": 7, "ignore_eos": true},
		{"prompt": "x", "max_tokens": 20, "stop": []any{"e", " "}},
		{"prompt": "x", "max_tokens": 0, "echo": true},
	} {
		s := start(t, nil, serve.Options{})
		a := s.post("/v1/completions", with(fields, "drafter", "lookup"))
		until(t, "a line", func() bool { return strings.Contains(s.log.String(), "endpoint=") })
		line := s.log.String()
		for name, path := range map[string]string{"prompt": "usage.prompt_tokens", "tokens": "usage.completion_tokens"} {
			if figureIn(line, name) != int(at(a, path).(float64)) {
				t.Errorf("%v: %s is %v:\n%s", fields, path, at(a, path), line)
			}
		}
	}
}
