package serve_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/grovellm/grove/serve"
)

// endless asks for a stream that does not end within a test.
const endless = `{"prompt":"x","max_tokens":100000,"ignore_eos":true,"stream":true,"drafter":"plain"}`

// until waits for a condition that should become true soon.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// An empty list of keys, as a program may have read it from a file, lets nobody in.
func TestEmptyKeys(t *testing.T) {
	s := start(t, nil, serve.Options{Keys: []string{}})
	for path, want := range map[string]int{"/v1/models": 401, "/health": 200} {
		if status, _, _ := s.send("GET", path, "", "Authorization", "Bearer "); status != want {
			t.Errorf("%s: status %d", path, status)
		}
	}
}

// Requests need one of the keys, except probes and metrics; a key's tenant is in the log, the key
// is not.
func TestKeys(t *testing.T) {
	s := start(t, nil, serve.Options{Keys: []string{"first-key", "second-key"}})
	for _, c := range []struct {
		path   string
		header []string
		status int
	}{
		{"/v1/models", nil, 401},
		{"/v1/models", []string{"Authorization", "Bearer"}, 401},
		{"/v1/models", []string{"Authorization", "Bearer first"}, 401},
		{"/v1/models", []string{"Authorization", "Basic first-key"}, 401},
		{"/v1/models", []string{"Authorization", "Bearer first-key"}, 200},
		{"/v1/models", []string{"Authorization", "bearer second-key"}, 200},
		{"/v1/models", []string{"X-Api-Key", "second-key"}, 200},
		{"/health", nil, 200},
		{"/v1/health", nil, 200},
		{"/ping", nil, 200},
		{"/livez", nil, 200},
		{"/readyz", nil, 200},
		{"/metrics", nil, 200},
	} {
		status, header, text := s.send("GET", c.path, "", c.header...)
		if status != c.status {
			t.Errorf("%s with %q: status %d", c.path, c.header, status)
		}
		if status == 401 && (at(object(t, text), "error.code") != "invalid_api_key" ||
			header.Get("WWW-Authenticate") == "") {
			t.Errorf("%s with %q: %s", c.path, c.header, text)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "tenant=key-f397f260") || strings.Contains(log, "second-key") {
		t.Error(log)
	}
	s = start(t, nil, serve.Options{Keys: []string{""}}) // an empty key is not a key
	if status, _, text := s.send("GET", "/v1/models", ""); status != 401 {
		t.Errorf("status %d: %s", status, text)
	}
}

// Web pages of other origins are refused unless theirs is the origin given.
func TestOrigins(t *testing.T) {
	const page = "https://page.example"
	for _, c := range []struct {
		cors   []string
		origin string
		status int
		allow  string
	}{
		{nil, "", 200, ""}, {nil, page, 403, ""},
		{[]string{page}, page, 200, page}, {[]string{page}, "https://other.example", 403, ""}, {[]string{page}, "", 200, ""},
		{[]string{page, "https://other.example"}, page, 200, page}, {[]string{page, "https://other.example"},
			"https://other.example", 200, "https://other.example"},
		{[]string{"*"}, "https://other.example", 200, "*"}, {[]string{page, "*"}, "https://other.example", 200, "*"},
	} {
		for _, keys := range [][]string{nil, {"k"}} {
			s := start(t, nil, serve.Options{CORS: c.cors, Keys: keys})
			status, header, text := s.send("POST", "/tokenize", `{"content":"x"}`, "Origin", c.origin, "X-Api-Key", "k")
			if status != c.status || header.Get("Access-Control-Allow-Origin") != c.allow ||
				status == 403 && !(strings.Contains(text, "--cors") && strings.Contains(text, c.origin)) {
				t.Errorf("CORS %q, origin %q: status %d, %v: %s", c.cors, c.origin, status, header, text)
			}
			if c.origin == "" { // browsers always send one with a preflight
				continue
			}
			// pages of this machine's other servers are of another origin too
			for _, origin := range []string{c.origin, "http://localhost:1", "null"} {
				status, header, text = s.send("OPTIONS", "/v1/chat/completions", "", "Origin", origin,
					"Access-Control-Request-Method", "POST")
				allow := c.allow
				if origin != c.origin && allow != "*" {
					allow = ""
				}
				if header.Get("Access-Control-Allow-Origin") != allow || (status == 204) != (allow != "") ||
					status != 204 && !(status == 403 && strings.Contains(text, "--cors")) {
					t.Errorf("preflight with CORS %q, origin %q: status %d, %v: %s", c.cors, origin, status, header, text)
				}
			}
		}
	}
	if _, err := serve.New(serve.Options{CORS: []string{page, "no origin"}}); err == nil {
		t.Error("an origin that is none is taken")
	}
}

// The log has the ids of a trace that the request names, and nothing of a header that names none.
func TestTrace(t *testing.T) {
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for header, known := range map[string]bool{
		"00-" + trace + "-" + span + "-01":                      true,
		"01-" + trace + "-" + span + "-01-more":                 true,
		"ff-" + trace + "-" + span + "-01":                      false,
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01":    false,
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01":   false,
		"00-" + strings.ToUpper(trace) + "-" + span + "-01":     false,
		"00-" + trace + "-" + span + "-01 trace_id=" + "forged": false,
		"": false,
	} {
		s := start(t, nil, serve.Options{})
		s.send("POST", "/tokenize", `{"content":"x"}`, "Traceparent", header)
		until(t, "a line", func() bool { return strings.Contains(s.log.String(), "\n") })
		log := s.log.String()
		if known != strings.Contains(log, "trace_id="+trace+" parent_id="+span) || !known && strings.Contains(log, "trace_id") {
			t.Errorf("traceparent %q:\n%s", header, log)
		}
	}
}

// Every answer has the client's id or a new one. The log has the id and the figures, and prompts
// only if asked.
func TestLog(t *testing.T) {
	const body = `{"prompt":"very secret","max_tokens":3,"temperature":0}`
	for _, prompts := range []bool{false, true} {
		s := start(t, nil, serve.Options{LogPrompts: prompts})
		_, header, _ := s.send("POST", "/v1/completions", body, "X-Request-Id", "its-id")
		if header.Get("X-Request-Id") != "its-id" {
			t.Errorf("headers %v", header)
		}
		_, header, _ = s.send("POST", "/v1/completions", body, "X-Request-Id", "two words")
		if id := header.Get("X-Request-Id"); len(id) < 20 || strings.Contains(id, " ") {
			t.Errorf("id %q", id)
		}
		s.send("POST", "/v1/completions", `{"prompt":"very secret","max_tokens":-2}`)
		s.send("POST", "/v1/chat/completions", `{"messages":"my secret"}`)
		s.send("GET", "/readyz", "")
		until(t, "four lines", func() bool { return strings.Count(s.log.String(), "\n") >= 4 })
		log := s.log.String()
		for _, want := range []string{"id=its-id", "endpoint=/v1/completions", "status=200", "tokens=3", "ttft_ms=",
			"took_ms=", "status=400", "max_tokens: -2", map[bool]string{false: "messages: want a list, not a string",
				true: "messages: want a list, not the string"}[prompts]} {
			if !strings.Contains(log, want) {
				t.Errorf("no %q in\n%s", want, log)
			}
		}
		if strings.Contains(log, "secret") != prompts || strings.Contains(log, "readyz") {
			t.Errorf("with LogPrompts %v:\n%s", prompts, log)
		}
	}
}

// A request that a program hands to the server, with no body at all, is answered like one with an empty body.
func TestNoBody(t *testing.T) {
	s := start(t, tiny(t, "tiny-qwen3", 512), serve.Options{})
	for _, encoding := range []string{"", "gzip"} {
		r, err := http.NewRequest("POST", "/v1/completions", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Encoding", encoding)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != 400 {
			t.Errorf("encoding %q: status %d: %s", encoding, w.Code, w.Body)
		}
	}
}

// A server without a model is not ready, and says so.
func TestLoading(t *testing.T) {
	s, err := serve.New(serve.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	get := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader("{}")))
		return w
	}
	for _, path := range []string{"GET /health", "GET /readyz", "GET /v1/models", "POST /v1/completions"} {
		method, path, _ := strings.Cut(path, " ")
		if w := get(method, path); w.Code != 503 || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: status %d, %v", path, w.Code, w.Header())
		}
	}
	for _, path := range []string{"/livez", "/metrics"} {
		if w := get("GET", path); w.Code != 200 {
			t.Errorf("%s: status %d", path, w.Code)
		}
	}
}

// Metrics have names and types in Prometheus's form, and count correctly.
func TestMetrics(t *testing.T) {
	s := start(t, nil, serve.Options{})
	s.post("/v1/completions", map[string]any{"prompt": "x", "max_tokens": 5})
	s.events("/v1/completions", map[string]any{"prompt": "x", "max_tokens": 5, "ignore_eos": true})
	s.post("/v1/completions", map[string]any{"prompt": "func main() {", "max_tokens": 9, "drafter": "eagle3"})
	s.send("POST", "/v1/completions", "{")
	_, _, text := s.send("GET", "/metrics", "")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, want := range []string{
		`grove_http_requests_total{endpoint="/v1/completions",status="200"} 3`,
		`grove_http_requests_total{endpoint="/v1/completions",status="400"} 1`,
		`grove_time_to_first_token_seconds_count{model="test/model"} 3`,
		`grove_finished_choices_total{model="test/model",reason="length"}`, "grove_requests_running", "grove_cache_usage_ratio",
		`grove_drafter_rounds_total{drafter="lookup",model="test/model"}`,
		`grove_drafter_tokens_per_round{drafter="eagle3",model="test/model"}`,
		`grove_drafter_accepted_tokens_by_depth_total{depth="1",drafter="eagle3",model="test/model"}`,
		`grove_http_request_duration_seconds_count{endpoint="/v1/completions"} 4`, "go_goroutines", "process_resident_memory_bytes",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}
