package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/serve"
	"github.com/grovellm/grove/tensor"
)

var ctx = context.Background()

// embedded is the model in the command, with its heads; it is opened once.
var embedded = sync.OnceValues(func() (*grove.Model, error) {
	return grove.OpenGGUF("embedded", models.Target(),
		grove.Options{Threads: 2, DraftGGUF: models.Draft(), HeadGGUF: models.Heads()})
})

// tiny opens a random model of a shape.
func tiny(t testing.TB, shape string, size int) *grove.Model {
	t.Helper()
	return tinyWith(t, shape, size, grove.Options{Threads: 1})
}

// written are the files of tinyWith by shape and size. Each is made once.
var written sync.Map

func tinyWith(t testing.TB, shape string, size int, o grove.Options) *grove.Model {
	t.Helper()
	file, _ := written.LoadOrStore(fmt.Sprint(shape, " ", size), sync.OnceValues(func() ([]byte, error) {
		s, err := synth.Lookup(shape)
		if err != nil {
			return nil, err
		}
		s.Context = size
		path := filepath.Join(t.TempDir(), shape+".gguf")
		err = synth.Write(ctx, path, s, synth.Options{Type: tensor.Q8_0, Seed: 3})
		if err != nil {
			return nil, err
		}
		return os.ReadFile(path)
	}))
	data, err := file.(func() ([]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	m, err := grove.OpenGGUF(shape, data, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// server is a server under test.
type server struct {
	testing.TB
	*serve.Server
	url string
	log *buffer
}

// buffer may be written to from several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// start serves a model, the embedded one if m is nil.
func start(t testing.TB, m *grove.Model, o serve.Options) *server {
	t.Helper()
	if m == nil {
		var err error
		if m, err = embedded(); err != nil {
			t.Fatal(err)
		}
	}
	log := &buffer{}
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.SetModel(&serve.Model{Model: m, Name: "test/model", Drafter: "lookup"})
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return &server{t, s, h.URL, log}
}

// send sends a request, and returns the status, the headers and the body.
func (s *server) send(method, path, body string, headers ...string) (int, http.Header, string) {
	s.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		s.Fatal(err)
	}
	return a.StatusCode, a.Header, string(text)
}

// post sends JSON, and expects JSON with status 200.
func (s *server) post(path string, fields map[string]any) map[string]any {
	s.Helper()
	body, err := json.Marshal(fields)
	if err != nil {
		s.Fatal(err)
	}
	status, _, text := s.send("POST", path, string(body))
	if status != 200 {
		s.Fatalf("%s %s: status %d: %s", path, body, status, text)
	}
	return object(s, text)
}

func object(t testing.TB, text string) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

// events sends JSON, and returns the events of the stream, which must end as OpenAI's do.
func (s *server) events(path string, fields map[string]any) (list []map[string]any) {
	s.Helper()
	body, err := json.Marshal(with(fields, "stream", true))
	if err != nil {
		s.Fatal(err)
	}
	status, header, text := s.send("POST", path, string(body))
	if status != 200 || header.Get("Content-Type") != "text/event-stream" ||
		!strings.HasSuffix(text, "\n\ndata: [DONE]\n\n") {
		s.Fatalf("%s %s: status %d, %s: %s", path, body, status, header.Get("Content-Type"), text)
	}
	for event := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok && !strings.HasPrefix(event, ":") {
			s.Fatalf("event %q", event)
		}
		if ok && data != "[DONE]" {
			list = append(list, object(s, data))
		}
	}
	return list
}

// with returns fields with more fields.
func with(fields map[string]any, more ...any) map[string]any {
	all := map[string]any{}
	for name, value := range fields {
		all[name] = value
	}
	for i := 0; i < len(more); i += 2 {
		all[more[i].(string)] = more[i+1]
	}
	return all
}

// at returns the value at a path such as "choices.0.text", or nil if there is none.
func at(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			i := int(name[0] - '0')
			if i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// choice is a choice as a stream's events describe it.
type choice struct {
	text, finish, role string
	logprobs           []any // of chats, one for each token; of texts, the tokens
	chunks             int
}

// assemble joins the events of a stream to its choices.
func assemble(t testing.TB, events []map[string]any, n int) []choice {
	t.Helper()
	all := make([]choice, n)
	for _, e := range events {
		for _, v := range e["choices"].([]any) {
			c := &all[int(at(v, "index").(float64))]
			c.chunks++
			for _, path := range []string{"text", "delta.content"} {
				if text, ok := at(v, path).(string); ok {
					c.text += text
				}
			}
			if role, ok := at(v, "delta.role").(string); ok {
				c.role += role
			}
			for _, path := range []string{"logprobs.content", "logprobs.tokens"} {
				if list, ok := at(v, path).([]any); ok {
					c.logprobs = append(c.logprobs, list...)
				}
			}
			if finish, ok := at(v, "finish_reason").(string); ok {
				if c.finish != "" {
					t.Errorf("choice %v ended twice", at(v, "index"))
				}
				c.finish = finish
			} else if c.finish != "" {
				t.Errorf("choice %v goes on after its end", at(v, "index"))
			}
		}
	}
	return all
}
