package serve_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/serve"
)

// A client that goes away ends its generation.
func TestDisconnect(t *testing.T) {
	s := start(t, tiny(t, "tiny-qwen3", 1<<17), serve.Options{})
	for _, body := range []string{endless, strings.Replace(endless, `"stream":true`, `"n":3`, 1)} {
		ctx, cancel := context.WithCancel(ctx)
		r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(body, "stream") {
			a, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Body.Close()
			for lines := bufio.NewScanner(a.Body); lines.Scan() && lines.Text() == ""; {
			}
		} else {
			time.AfterFunc(20*time.Millisecond, cancel)
			if a, err := http.DefaultClient.Do(r); err == nil {
				t.Errorf("status %d", a.StatusCode)
			}
		}
		before := strings.Count(s.log.String(), "\n")
		cancel()
		until(t, "the end of the request", func() bool {
			return strings.Count(s.log.String(), "\n") > before || strings.Contains(s.log.String(), "status=499")
		})
	}
}

// A client that does not send its body is told so.
func TestSlowBody(t *testing.T) {
	s := start(t, tiny(t, "tiny-qwen3", 256), serve.Options{Limits: serve.Limits{Read: 50 * time.Millisecond}})
	ctx, cancel := context.WithCancel(ctx)
	p, ended := s.serving(ctx, time.Minute)
	client, server := net.Pipe()
	defer client.Close()
	p.next <- server
	if _, err := fmt.Fprintf(client,
		"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil || answer.StatusCode != 408 {
		t.Fatal(answer, err)
	}
	client.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A client whose request is refused before its body is read is answered too, although it does not
// send the body, and its connection ends.
func TestUnreadBody(t *testing.T) {
	s := start(t, tiny(t, "tiny-qwen3", 256), serve.Options{Keys: []string{"key"},
		Limits: serve.Limits{Read: time.Hour}})
	ctx, cancel := context.WithCancel(ctx)
	p, ended := s.serving(ctx, time.Minute)
	for request, status := range map[string]int{"POST /v1/completions": 401, "POST /nowhere": 404, "PUT /v1/models": 405,
		"GET /health": 200} {
		client, server := net.Pipe()
		p.next <- &impatient{Conn: server}
		if _, err := fmt.Fprintf(client, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", request); err != nil {
			t.Fatal(err)
		}
		_ = client.SetReadDeadline(time.Now().Add(20 * time.Second))
		answer, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil || answer.StatusCode != status || !answer.Close {
			t.Errorf("%s: %v, %v; want status %d and the connection's end", request, answer, err, status)
		}
		client.Close()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// impatient is a connection with a client that sends nothing more: once something was read, read
// deadlines expire as soon as they are set.
type impatient struct {
	net.Conn
	heard atomic.Bool
}

func (c *impatient) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard.Store(true)
	}
	return n, err
}

func (c *impatient) SetReadDeadline(t time.Time) error {
	switch {
	case t.IsZero():
		return c.Conn.SetReadDeadline(t)
	case !c.heard.Load():
		return nil
	}
	return c.Conn.SetReadDeadline(time.Unix(1, 0))
}

// A client that sends an unreadable body, and listens, gets an error in the API's form.
func TestUnreadableBody(t *testing.T) {
	s := start(t, tiny(t, "tiny-qwen3", 256), serve.Options{})
	for _, c := range []struct{ path, body string }{
		{"/v1/completions", "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"pro\r\nmany\r\n"},
		{"/v1/messages", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}}\r\n"},
		{"/api/chat", "Content-Length: 100\r\n\r\n{"},
		{"/v1/embeddings", "Transfer-Encoding: chunked\r\n\r\n5\r\n{"},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\n%s", c.path, c.body); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		conn.Close()
		message := ""
		for _, path := range []string{"error.message", "error"} {
			if text, ok := at(object(t, cmp.Or(string(text), "{}")), path).(string); ok {
				message = text
			}
		}
		if err != nil || answer.StatusCode != 400 || !strings.Contains(message, "the body cannot be read: ") {
			t.Errorf("%s with %q: status %d, %v: %s", c.path, c.body, answer.StatusCode, err, text)
		}
	}
}

// A request that takes too long ends with an error, within its stream or as its answer.
func TestMaxTime(t *testing.T) {
	t.Parallel()
	s := start(t, tiny(t, "tiny-qwen3", 1<<17), serve.Options{Limits: serve.Limits{Time: 100 * time.Millisecond,
		Ping: time.Millisecond}})
	check := func(body string, headers ...string) {
		t.Helper()
		status, _, text := s.send("POST", "/v1/completions", body, headers...)
		events := strings.Split(strings.TrimSpace(text), "\n\n")
		last, isEvent := strings.CutPrefix(events[len(events)-1], "data: ")
		want := 504 // also for a stream that has sent nothing yet
		if isEvent {
			want = 200
		}
		if status != want || at(object(t, last), "error.code") != "timeout" {
			t.Errorf("status %d, at last %s", status, last)
		}
	}
	whole := strings.Replace(endless, `"stream":true`, `"n":2`, 1)
	check(endless)
	check(whole)
	s = start(t, tiny(t, "tiny-qwen3", 1<<17), serve.Options{})
	check(whole, "X-Request-Timeout", "0.1")
	check(whole, "X-Envoy-Expected-Rq-Timeout-Ms", "100")
	check(endless, "X-Request-Timeout", "1e300", "X-Envoy-Expected-Rq-Timeout-Ms", "100")
}

// A request that would still be waiting at its deadline is refused at once, and told to retry.
func TestLateRequests(t *testing.T) {
	m := tinyWith(t, "tiny-qwen3", 1<<17, grove.Options{Threads: 1, Parallel: 1})
	s := start(t, m, serve.Options{})
	// from now on the pace is known
	s.post("/v1/completions", map[string]any{"prompt": "x", "max_tokens": 1000, "ignore_eos": true})
	ctx, cancel := context.WithCancel(ctx)
	p, ended := s.serving(ctx, time.Millisecond)
	clients := []net.Conn{p.dial(t, "/v1/completions", endless), p.dial(t, "/v1/completions", endless)}
	until(t, "a queue", func() bool { e := inside.EngineStats(m); return e.Running == 1 && e.Waiting == 1 })
	for _, path := range []string{"/v1/completions", "/completion"} {
		status, header, text := s.send("POST", path, `{"prompt":"x","stream":true}`, "X-Request-Timeout", "0.001")
		if status != 429 || header.Get("Retry-After") == "" || at(object(t, text), "error.code") != "queue_full" {
			t.Errorf("%s: status %d, %v: %s", path, status, header, text)
		}
	}
	for _, c := range clients {
		c.Close()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// pipes is a listener whose connections have no buffers: a client that does not read
// blocks the server's writes.
type pipes struct {
	next   chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.next:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }
func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

// dial sends a request and returns the connection, unread.
func (p *pipes) dial(t *testing.T, path, body string) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close() })
	p.next <- server
	if _, err := fmt.Fprintf(client, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", path, len(body),
		body); err != nil {
		t.Fatal(err)
	}
	return client
}

// serving starts Serve on pipes; the result is Serve's.
func (s *server) serving(ctx context.Context, drain time.Duration) (*pipes, <-chan error) {
	p := &pipes{make(chan net.Conn), make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, p, drain) }()
	return p, ended
}

// A client that does not read delays nobody, and is dropped.
func TestSlowClient(t *testing.T) {
	s := start(t, tiny(t, "tiny-qwen3", 1<<17), serve.Options{Limits: serve.Limits{Write: 200 * time.Millisecond}})
	ctx, cancel := context.WithCancel(ctx)
	p, ended := s.serving(ctx, time.Minute)
	p.dial(t, "/v1/completions", endless)
	for range 3 {
		answer, err := http.ReadResponse(bufio.NewReader(p.dial(t, "/v1/completions",
			`{"prompt":"x","max_tokens":5}`)), nil)
		if err != nil || answer.StatusCode != 200 {
			t.Fatal(answer, err)
		}
	}
	until(t, "the end of the slow client", func() bool { return strings.Contains(s.log.String(), "i/o timeout") })
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, "i/o timeout") && (figureIn(line, "status") != 499 || figureIn(line, "tokens") < 1) {
			t.Error(line)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A stream may be silent for longer than a write may take, over HTTP/2 too.
func TestSilentStream(t *testing.T) {
	m := tinyWith(t, "tiny-qwen3", 1<<17, grove.Options{Threads: 1, Parallel: 1})
	s := start(t, m, serve.Options{Limits: serve.Limits{Write: 100 * time.Millisecond}})
	h := httptest.NewUnstartedServer(s.Server)
	h.EnableHTTP2 = true
	h.StartTLS()
	t.Cleanup(h.Close)
	long, _ := json.Marshal(slices.Repeat([]int{1, 2, 3, 4}, 1000)) // it takes longer to read
	began := time.Now()
	answer, err := h.Client().Post(h.URL+"/v1/completions", "application/json", strings.NewReader(
		`{"prompt":[[1],`+string(long)+`],"max_tokens":2,"ignore_eos":true,"stream":true,"drafter":"plain"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.ProtoMajor != 2 || !strings.HasSuffix(string(text), "data: [DONE]\n\n") {
		t.Errorf("%s, after %v: %v, %q", answer.Proto, time.Since(began), err, text)
	}
}

// Within the time for draining, a request ends as usual, and new ones are refused; after it, it is
// cut short.
func TestDrain(t *testing.T) {
	for _, c := range []struct {
		drain       time.Duration
		close, full bool
	}{{time.Minute, false, true}, {10 * time.Millisecond, false, false}, {time.Hour, true, false}} {
		s := start(t, tiny(t, "tiny-qwen3", 1<<17), serve.Options{})
		body := endless
		if c.full {
			body = strings.Replace(endless, "100000", "300", 1)
		}
		ctx, cancel := context.WithCancel(ctx)
		p, ended := s.serving(ctx, c.drain)
		answer, err := http.ReadResponse(bufio.NewReader(p.dial(t, "/v1/completions", body)), nil)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(answer.Body)
		lines.Scan()
		cancel()
		ready := func() int {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
			return w.Code
		}
		until(t, "draining", func() bool { return ready() == 503 })
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("POST", "/v1/completions", strings.NewReader(endless)))
		if w.Code != 503 || at(object(t, w.Body.String()), "error.code") != "shutting_down" ||
			w.Header().Get("Retry-After") == "" {
			t.Errorf("a new request: status %d: %s", w.Code, w.Body)
		}
		if c.close {
			s.Close()
		}
		last := ""
		for lines.Scan() {
			if lines.Text() != "" {
				last = lines.Text()
			}
		}
		if c.full && last != "data: [DONE]" || !c.full && !strings.Contains(last, "shutting_down") {
			t.Errorf("with %v to drain the stream ends with %s", c.drain, last)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A request whose body is still coming when the server begins to drain is refused: the server does
// not wait for the rest.
func TestDrainDuringBody(t *testing.T) {
	s := start(t, tiny(t, "tiny-qwen3", 256), serve.Options{Limits: serve.Limits{Read: time.Hour}})
	ctx, cancel := context.WithCancel(ctx)
	p, ended := s.serving(ctx, time.Hour)
	client, server := net.Pipe()
	defer client.Close()
	p.next <- server
	const begun = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
	if _, err := fmt.Fprint(client, begun); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = client.SetReadDeadline(time.Now().Add(20 * time.Second))
	answer, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" {
		t.Errorf("%v; want status 503", answer)
	}
	client.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// When Serve has returned, a model that the program opened is the program's, for itself and for other servers.
func TestModelAfterServe(t *testing.T) {
	m := tiny(t, "tiny-qwen3", 256)
	for range 2 {
		s := start(t, m, serve.Options{})
		ctx, cancel := context.WithCancel(ctx)
		_, ended := s.serving(ctx, time.Minute)
		if status, _, text := s.send("POST", "/v1/completions", `{"prompt":"x","max_tokens":2}`); status != 200 {
			t.Errorf("status %d: %s", status, text)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := grove.Collect(m.Generate(t.Context(), "x", grove.Request{MaxTokens: 2})); err != nil {
			t.Error(err)
		}
	}
}

// If the queue is full, a request is refused, and told to retry.
func TestFullQueue(t *testing.T) {
	m := tinyWith(t, "tiny-qwen3", 1<<17, grove.Options{Threads: 1, Parallel: 1, Queue: 1})
	s := start(t, m, serve.Options{})
	ctx, cancel := context.WithCancel(ctx)
	p, ended := s.serving(ctx, time.Millisecond)
	clients := []net.Conn{p.dial(t, "/v1/completions", endless), p.dial(t, "/v1/completions", endless)}
	until(t, "a full queue", func() bool { e := inside.EngineStats(m); return e.Running == 1 && e.Waiting == 1 })
	for _, body := range []string{endless, `{"prompt":["x","y"],"n":2}`} {
		status, header, text := s.send("POST", "/v1/completions", body)
		if status != 429 || header.Get("Retry-After") == "" || at(object(t, text), "error.code") != "queue_full" {
			t.Errorf("status %d, %v: %s", status, header, text)
		}
	}
	if status, _, _ := s.send("GET", "/readyz", ""); status != 200 {
		t.Errorf("a full queue is not ready: status %d", status)
	}
	_, _, text := s.send("GET", "/metrics", "")
	for _, want := range []string{`grove_requests_running{model="test/model"} 1`,
		`grove_requests_waiting{model="test/model"} 1`} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	for _, c := range clients {
		c.Close()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A stream arrives whole through a middleware whose writer cannot flush, such as net/http's own timeout.
func TestStreamBehindMiddleware(t *testing.T) {
	s := start(t, nil, serve.Options{})
	for name, h := range map[string]http.Handler{
		"a timeout": http.TimeoutHandler(s.Server, time.Minute, "late"),
		"a wrapper": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
		}),
	} {
		for path, end := range map[string]string{"/v1/completions": "data: [DONE]\n\n", "/api/generate": "\"done\":true"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("POST", path,
				strings.NewReader(`{"model":"test/model","prompt":"x","max_tokens":8,"stream":true}`)))
			if text := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(text, end) {
				t.Errorf("%s, %s: %d, %q", name, path, w.Code, text)
			}
		}
	}
}

// A body that a middleware refuses is too large for the middleware's limit, and not for the server's.
func TestBodyLimitOfMiddleware(t *testing.T) {
	s := start(t, nil, serve.Options{})
	w := httptest.NewRecorder()
	body := strings.NewReader(`{"prompt":"` + strings.Repeat("x", 100) + `"}`)
	http.MaxBytesHandler(s.Server, 64).ServeHTTP(w, httptest.NewRequest("POST", "/v1/completions", body))
	if text := w.Body.String(); w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(text, " 64 bytes") {
		t.Errorf("%d, %s", w.Code, text)
	}
}

// A deadline that a handler around the server sets ends a request as the server's own limit does.
func TestDeadlineOfOuterHandler(t *testing.T) {
	s := start(t, nil, serve.Options{})
	for _, path := range []string{"/v1/completions", "/v1/embeddings"} {
		ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, "POST", path, strings.NewReader(`{"prompt":"a","input":"a"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != http.StatusGatewayTimeout || !strings.Contains(w.Body.String(), `"timeout"`) {
			t.Errorf("%s: status %d, %s", path, w.Code, w.Body)
		}
	}
}
