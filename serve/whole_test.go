package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/serve"
)

// An answer that says its calls are complete has complete ones, in every protocol, whichever string
// or length ends it; and if a call is required, no part of one that was cut short is shown as text.
func TestCutCalls(t *testing.T) {
	t.Parallel()
	s := start(t, withHeads(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],` +
		`"additionalProperties":false}`)
	user := []any{map[string]any{"role": "user", "content": "Add."}}
	function := map[string]any{"name": "f", "parameters": schema}
	tool := []any{map[string]any{"type": "function", "function": function}}
	type answer struct {
		whole     bool
		text      string
		arguments []string
	}
	reads := map[string]func(stop any, n int) answer{
		"chat": func(stop any, n int) (a answer) {
			v := s.post("/v1/chat/completions", map[string]any{"messages": user, "tools": tool, "tool_choice": "required",
				"parallel_tool_calls": false, "stop": stop, "max_tokens": n, "temperature": 0})
			a.text, _ = at(v, "choices.0.message.content").(string)
			a.whole = at(v, "choices.0.finish_reason") == "tool_calls"
			if call, ok := at(v, "choices.0.message.tool_calls.0.function.arguments").(string); ok {
				a.arguments = []string{call}
			}
			return a
		},
		"messages": func(stop any, n int) (a answer) {
			v := s.post("/v1/messages", map[string]any{"messages": user, "max_tokens": n, "temperature": 0,
				"stop_sequences": stop, "tools": []any{map[string]any{"name": "f", "input_schema": schema}},
				"tool_choice": map[string]any{"type": "any", "disable_parallel_tool_use": true}})
			a.whole = at(v, "stop_reason") == "tool_use"
			for _, b := range at(v, "content").([]any) {
				if at(b, "type") == "tool_use" {
					a.arguments = append(a.arguments, jsonOf(at(b, "input")))
				} else {
					a.text += fmt.Sprint(at(b, "text"))
				}
			}
			return a
		},
		"responses": func(stop any, n int) (a answer) {
			v := s.post("/v1/responses", map[string]any{"input": "Add.", "max_output_tokens": n, "temperature": 0, "stop": stop,
				"tools":       []any{with(function, "type", "function")},
				"tool_choice": "required", "parallel_tool_calls": false})
			a.whole = at(v, "status") == "completed"
			for _, item := range at(v, "output").([]any) {
				if at(item, "type") != "function_call" {
					a.text += jsonOf(item)
				} else if at(item, "status") == "completed" || a.whole {
					a.arguments = append(a.arguments, at(item, "arguments").(string))
				}
			}
			return a
		},
	}
	for i, path := range slices.Sorted(maps.Keys(reads)) {
		calls := 0
		for _, stop := range []any{nil, []any{`"a"`}, []any{"a"}, []any{"{"}, []any{"}"}, []any{"_call>"}} {
			for n := 1 + 3*i; n < 60; n += 3 * len(reads) { // other lengths than the other paths
				a := reads[path](stop, n)
				if a.text != "" {
					t.Errorf("%s, stop %v, %d tokens: text %q", path, stop, n, a.text)
				}
				if !a.whole {
					continue
				}
				for _, arguments := range a.arguments {
					calls++
					if v := object(t, arguments); v["a"] == nil {
						t.Errorf("%s, stop %v, %d tokens: a whole call with %s", path, stop, n, arguments)
					}
				}
			}
		}
		if calls == 0 {
			t.Errorf("%s: no call was whole", path)
		}
	}
}

// The log-probabilities of a text are those of its tokens, not of the reasoning before it.
func TestLogprobsOfText(t *testing.T) {
	template := "{% for m in messages %}{{ m.content }}{% endfor %}<think>{# </think> #}"
	s := start(t, withHeads(t, grove.Options{ChatTemplate: template}), serve.Options{})
	joined := func(list any) (text string) {
		for _, l := range list.([]any) {
			text += at(l, "token").(string)
		}
		return text
	}
	for budget := 1; budget < 8; budget += 3 {
		fields := map[string]any{"input": "func main() {", "max_output_tokens": 40, "temperature": 0,
			"reasoning_budget": budget, "include": []any{"message.output_text.logprobs"}}
		output := at(s.post("/v1/responses", fields), "output").([]any)
		part := at(output[len(output)-1], "content.0")
		if text := at(part, "text"); text == "" || strings.TrimLeft(joined(at(part, "logprobs")), " \n") != text {
			t.Errorf("budget %d: log-probabilities of %q beside %q", budget, joined(at(part, "logprobs")), text)
		}
		streamed := ""
		_, _, text := s.send("POST", "/v1/responses", jsonOf(with(fields, "stream", true)))
		for line := range strings.Lines(text) {
			if data, ok := strings.CutPrefix(line, "data: "); ok && strings.Contains(data, `"response.output_text.delta"`) {
				streamed += joined(object(t, data)["logprobs"])
			}
		}
		if streamed != joined(at(part, "logprobs")) {
			t.Errorf("budget %d: streamed %q, whole %q", budget, streamed, joined(at(part, "logprobs")))
		}
		_, _, lines := s.send("POST", "/api/chat", jsonOf(map[string]any{"think": true, "logprobs": true,
			"messages": []any{map[string]any{"role": "user", "content": "func main() {"}},
			"options":  map[string]any{"num_predict": 40, "temperature": 0, "reasoning_budget": budget}}))
		content, said := "", ""
		for line := range strings.Lines(lines) {
			l := object(t, line)
			if piece := at(l, "message.content").(string); piece != "" && at(l, "logprobs") != nil {
				content, said = content+piece, said+joined(at(l, "logprobs"))
			}
		}
		if content == "" || strings.TrimLeft(said, " \n") != content {
			t.Errorf("budget %d: Ollama's lines have log-probabilities of %q beside %q", budget, said, content)
		}
	}
}

// A client that closes its direction of a connection, and so ends the generation, never gets an
// answer that looks complete.
func TestHalfClosed(t *testing.T) {
	s := start(t, tiny(t, "tiny-qwen3", 1<<17), serve.Options{})
	for path, body := range map[string]string{"/v1/completions": strings.Replace(endless, `"stream":true`, `"n":1`, 1),
		"/api/generate": `{"prompt":"x","stream":false,"options":{"num_predict":-1,"ignore_eos":true}}`, "/completion": endless} {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
		time.Sleep(20 * time.Millisecond) // the request may have begun its answer or not
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(c)
		whole := strings.HasSuffix(string(got), "\r\n0\r\n\r\n")
		if whole || strings.Contains(string(got), "Content-Length: 0") {
			t.Errorf("%s: %.200q", path, got)
		}
	}
}

// A request with more choices than the queue has places is answered if the queue accepts its first one.
func TestMoreChoicesThanPlaces(t *testing.T) {
	m := tinyWith(t, "tiny-qwen3", 256, grove.Options{Threads: 1, Parallel: 1, Queue: 1})
	s := start(t, m, serve.Options{})
	for range 3 {
		a := s.post("/v1/completions", map[string]any{"prompt": []any{"x", "y", "z"}, "n": 3, "max_tokens": 2})
		if list := at(a, "choices").([]any); len(list) != 9 {
			t.Errorf("%d choices of 9", len(list))
		}
	}
}

// A request whose client has gone does not panic if the handler runs without a server that would recover the panic.
func TestGoneOutsideServer(t *testing.T) {
	s := start(t, tiny(t, "tiny-qwen3", 1<<17), serve.Options{})
	gone, cancel := context.WithCancel(ctx)
	cancel()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("POST", "/v1/completions", strings.NewReader(endless)).WithContext(gone))
	if w.Body.Len() > 0 && !strings.Contains(w.Body.String(), "error") {
		t.Errorf("it is answered: %s", w.Body)
	}
}

// A client that reads a long answer slowly gets all of it, in more than the time for a piece.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	const piece, tokens = 2 * time.Second, 1_000_000
	s := start(t, tiny(t, "tiny-qwen3", 256), serve.Options{Limits: serve.Limits{Write: piece}})
	ctx, cancel := context.WithCancel(ctx)
	p, ended := s.serving(ctx, time.Minute)
	client := p.dial(t, "/detokenize", `{"tokens":[65`+strings.Repeat(",65", tokens-1)+`]}`)
	answer, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	read := 0
	for part := make([]byte, 64<<10); err == nil; {
		n := 0
		n, err = io.ReadFull(answer.Body, part)
		read += n
		if time.Since(began) < piece+piece/4 {
			time.Sleep(piece / 20)
		}
	}
	if read < 2*tokens { // the text is there twice
		t.Errorf("%d bytes: %v", read, err)
	}
	client.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
