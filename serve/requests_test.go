package serve_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/serve"
	"github.com/grovellm/grove/tokenizer"
)

// Each token of an echoed prompt is at its offset in the text, including names of special tokens.
func TestOffsets(t *testing.T) {
	t.Parallel()
	m, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*grove.Model{"embedded": m, "llama2": tiny(t, "tiny-llama2", 256),
		"llama3": tiny(t, "tiny-llama3", 256)} {
		t.Run(name, func(t *testing.T) { testOffsets(t, m) })
	}
}

func testOffsets(t *testing.T, m *grove.Model) {
	parts := []string{"a", " word", "é", " 日本", "\n", "<", "|>"}
	for id := range int32(m.Tokenizer().VocabSize()) {
		if m.Tokenizer().IsSpecial(id) && len(parts) < 12 {
			parts = append(parts, m.Tokenizer().Text(id))
		}
	}
	if len(parts) == 7 {
		t.Fatal("the vocabulary has no special tokens")
	}
	s := start(t, m, serve.Options{})
	rapid.Check(t, func(rt *rapid.T) {
		prompt := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 12).Draw(rt, "prompt"), "")
		a := s.post("/v1/completions", map[string]any{"prompt": prompt, "echo": true, "logprobs": 1,
			"max_tokens": rapid.IntRange(0, 3).Draw(rt, "max"), "seed": 1})
		text := []rune(at(a, "choices.0.text").(string))
		if !strings.HasPrefix(string(text), prompt) {
			rt.Fatalf("%q does not begin with %q", string(text), prompt)
		}
		offsets := at(a, "choices.0.logprobs.text_offset").([]any)
		for i, token := range at(a, "choices.0.logprobs.tokens").([]any)[:int(at(a, "usage.prompt_tokens").(float64))] {
			if i == 0 && m.Tokenizer().AddBOS() && !strings.HasPrefix(prompt, token.(string)) { // it is not part of the text
				continue
			}
			if offset := int(offsets[i].(float64)); !strings.HasPrefix(token.(string), "bytes:") && (offset > len(text) ||
				!strings.HasPrefix(string(text[offset:]), token.(string)) && !strings.HasPrefix(string(text[offset:]),
					strings.TrimPrefix(token.(string), " "))) {
				rt.Fatalf("%q: token %d, %q, is at %d", string(text), i, token, offset)
			}
		}
	})
}

// Prompts up to the context's length have log-probabilities if at most one more token is requested,
// since the last token takes no place. Longer ones are refused.
func TestEchoFull(t *testing.T) {
	const size = 48
	s := start(t, tiny(t, "tiny-qwen3", size), serve.Options{})
	for n := size - 3; n <= size+1; n++ {
		prompt := make([]int, n)
		for i := range prompt {
			prompt[i] = 7 + i%50
		}
		for most, full := range map[int]int{0: size, 1: size, 2: size - 1} {
			body := fmt.Sprintf(`{"prompt":%s,"echo":true,"logprobs":0,"max_tokens":%d,"temperature":0}`,
				strings.ReplaceAll(fmt.Sprint(prompt), " ", ","), most)
			status, _, text := s.send("POST", "/v1/completions", body)
			if want := map[bool]int{true: 200, false: 400}[n <= full]; status != want {
				t.Errorf("%d tokens in a context of %d, max_tokens %d: status %d, want %d: %s", n, size, most, status, want, text)
			} else if status == 200 && len(at(object(t, text), "choices.0.logprobs.tokens").([]any)) < n {
				t.Errorf("%d tokens: %s", n, text)
			}
		}
	}
}

// An error in one of several prompts is found before text for another is sent, and nothing is generated.
func TestOneOfSeveralPrompts(t *testing.T) {
	s := start(t, nil, serve.Options{})
	for i := range 20 {
		bad := []string{`""`, `"` + strings.Repeat("x y ", 20000) + `"`}[i%2]
		status, _, text := s.send("POST", "/v1/completions", `{"stream":true,"prompt":["a","b","c",`+bad+`],"max_tokens":2}`)
		if status != 400 {
			t.Fatalf("%.20s: status %d: %.300s", bad, status, text)
		}
	}
	_, _, text := s.send("GET", "/metrics", "")
	if !strings.Contains(text, `grove_generations_cancelled_total{model="test/model"} 0`) {
		t.Error("generations of requests that were refused began")
	}
}

// The tokens shown on request are those that were generated, in streams too, including the one that
// ends the text: as many as the usage has, and with the same text.
func TestTokenIDs(t *testing.T) {
	m := tinyWith(t, "tiny-qwen3", 512, grove.Options{Threads: 1, ChatTemplate: toolTemplates["hermes"]})
	s := start(t, m, serve.Options{})
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(rt, "choices")
		fields := map[string]any{"n": n, "max_tokens": rapid.IntRange(1, 20).Draw(rt, "max"), "return_token_ids": true,
			"temperature": rapid.SampledFrom([]float64{0, 1.5}).Draw(rt, "temperature"), "seed": 1}
		path := "/v1/chat/completions"
		place := "message.content"
		promptPlace := "prompt_token_ids"
		prompt := rapid.SampledFrom([]string{"func main", "x é", "a"}).Draw(rt, "prompt")
		fields["messages"] = []any{map[string]any{"role": "user", "content": prompt}}
		if rapid.Bool().Draw(rt, "completion") {
			path = "/v1/completions"
			place = "text"
			promptPlace = "choices.0.prompt_token_ids"
			fields["prompt"] = prompt
		}
		call := path == "/v1/chat/completions" && rapid.Bool().Draw(rt, "call")
		if call { // its text comes once it is complete
			fields["tools"] = []any{map[string]any{"type": "function", "function": map[string]any{"name": "f",
				"parameters": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{
					"enum": []int{1, 2}}}, "required": []string{"a"}}}}}
			fields["tool_choice"] = "required"
			fields["max_tokens"] = 60
		}
		stop := rapid.Bool().Draw(rt, "stop")
		if stop {
			fields["stop"] = []string{"e", "\n"}
		}
		whole := s.post(path, fields)
		sum := 0
		want := make([][]any, n)
		for i, c := range whole["choices"].([]any) {
			want[i] = at(c, "token_ids").([]any)
			sum += len(want[i])
			var ids []int32
			for _, id := range want[i] {
				ids = append(ids, int32(id.(float64)))
			}
			text := m.Tokenizer().Decode(ids, tokenizer.DecodeOptions{Continue: true})
			content, _ := at(c, place).(string)
			if !call && utf8.ValidString(text) && (!strings.HasPrefix(text, content) || !stop && text != content) {
				rt.Fatalf("tokens of %q, text %q", text, content)
			}
		}
		if float64(sum) != at(whole, "usage.completion_tokens") ||
			float64(len(at(whole, promptPlace).([]any))) != at(whole, "usage.prompt_tokens") {
			rt.Fatalf("%d tokens of choices: %v", sum, whole)
		}
		fields["stream"] = true
		got := make([][]any, n)
		var prompts []any
		for _, e := range s.events(path, fields) {
			for _, c := range e["choices"].([]any) {
				ids, _ := at(c, "token_ids").([]any)
				i := int(at(c, "index").(float64))
				got[i] = append(got[i], ids...)
			}
			if ids := at(e, promptPlace); ids != nil {
				prompts = append(prompts, ids)
			}
		}
		if !reflect.DeepEqual(got, want) || len(prompts) != n || !reflect.DeepEqual(prompts[n-1], at(whole, promptPlace)) {
			rt.Fatalf("streamed %v, whole %v; prompts %v", got, want, prompts)
		}
	})
}

// Ollama's request for embeddings without a text gets none.
func TestEmbedNothing(t *testing.T) {
	s := start(t, tiny(t, "tiny-qwen3", 64), serve.Options{})
	for _, body := range []string{`{}`, `{"input":[]}`, `{"input":""}`, `{"input":null}`} {
		if status, _, text := s.send("POST", "/api/embed", body); status != 200 || !strings.Contains(text, `"embeddings":[]`) {
			t.Errorf("%s: status %d: %s", body, status, text)
		}
	}
	for _, body := range []string{`{}`, `{"prompt":""}`} {
		if status, _, text := s.send("POST", "/api/embeddings", body); status != 200 ||
			!strings.Contains(text, `"embedding":[]`) {
			t.Errorf("%s: status %d: %s", body, status, text)
		}
	}
	if status, _, text := s.send("POST", "/api/embed", `{"input":["a",""]}`); status != 400 ||
		!strings.Contains(text, "input[1]") {
		t.Errorf("status %d: %s", status, text)
	}
}

// Responses have log-probabilities if the request asks for them.
func TestResponseLogprobs(t *testing.T) {
	s := start(t, nil, serve.Options{})
	for fields, want := range map[string]bool{``: false, `,"top_logprobs":0`: false, `,"top_logprobs":2`: true,
		`,"top_logprobs":null`:                                         false,
		`,"include":["message.output_text.logprobs"]`:                  true,
		`,"include":["message.output_text.logprobs"],"top_logprobs":0`: true} {
		status, _, text := s.send("POST", "/v1/responses", `{"input":"Say hello.","max_output_tokens":5,"temperature":0`+
			fields+`}`)
		if list, _ := at(object(t, text), "output.0.content.0.logprobs").([]any); status != 200 || len(list) > 0 != want {
			t.Errorf("%s: status %d: %s", fields, status, text)
		}
	}
}

// A model is found by its name wherever one is given, with or without the tag of Ollama's clients.
func TestModelNames(t *testing.T) {
	s := start(t, tiny(t, "tiny-qwen3", 64), serve.Options{})
	for name, want := range map[string]int{"test/model": 200, "test/model:latest": 200, "test/model:q4": 404, "model": 404} {
		if status, _, text := s.send("GET", "/v1/models/"+name, ""); status != want || want == 200 &&
			at(object(t, text), "id") != "test/model" {
			t.Errorf("%s: status %d: %s", name, status, text)
		}
	}
}

// Bodies may be compressed with gzip. Other encodings are refused, and so is a body that becomes
// longer than the limit.
func TestContentEncoding(t *testing.T) {
	t.Parallel()
	s := start(t, tiny(t, "tiny-qwen3", 64), serve.Options{Limits: serve.Limits{Body: 1 << 20}})
	pack := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(text))
		_ = w.Close()
		return b.String()
	}
	var deflated bytes.Buffer
	w := zlib.NewWriter(&deflated)
	const body = `{"prompt":"x","max_tokens":1,"content":"y"}`
	_, _ = w.Write([]byte(body))
	_ = w.Close()
	bomb := pack(`{"prompt":"` + strings.Repeat("x", 1<<20) + `"}`)
	full := `{"prompt":"x","max_tokens":1,"user":"` + strings.Repeat("u", 1<<20-39) + `"}`
	for _, c := range []struct {
		encoding, body string
		status         int
	}{
		{"", body, 200}, {"identity", body, 200}, {"gzip", pack(body), 200}, {"x-gzip", pack(body),
			200}, {"GZIP", pack(body), 200},
		{"identity, gzip", pack(body), 200}, {"", "\ufeff" + body, 200},
		{"gzip", pack("\ufeff" + body), 200}, {"gzip", pack(full), 200}, {"", full, 200},
		{"zstd", body, 415}, {"deflate", deflated.String(), 415}, {"br", body, 415}, {"gzip, gzip", pack(pack(body)),
			415}, {"gzip, br", pack(body), 415},
		{"gzip", body, 400}, {"gzip", pack(body)[:20], 400}, {"gzip", "", 400}, {"gzip", pack(body) + "rest", 400},
		{"gzip", bomb, 413}, {"gzip", strings.Repeat(pack(""), 100000), 413},
	} {
		for _, path := range []string{"/v1/completions", "/tokenize"} {
			if len(c.body) > 1000 && path == "/tokenize" && c.status == 200 {
				continue
			}
			status, header, text := s.send("POST", path, c.body, "Content-Encoding", c.encoding)
			if status != c.status || status == 415 && header.Get("Accept-Encoding") != "gzip" {
				t.Errorf("%s %q, %d bytes: status %d, want %d: %.200s", path, c.encoding, len(c.body), status, c.status, text)
			}
		}
	}
}

// Ollama's chats that are longer than the context lose their oldest turns, as few as need be,
// and keep system messages and the last turn. If the request disables truncation, they are
// refused, as in other protocols.
func TestTruncate(t *testing.T) {
	t.Parallel()
	const size = 96
	m := tinyWith(t, "tiny-qwen3", size, grove.Options{Threads: 1, ChatTemplate: turnsTemplate})
	s := start(t, m, serve.Options{})
	words := func(rt *rapid.T) string {
		return strings.Repeat("ab ", rapid.IntRange(1, 12).Draw(rt, "words")) + "."
	}
	rapid.Check(t, func(rt *rapid.T) {
		messages := []any{map[string]any{"role": "system", "content": "Be brief."}}
		for range rapid.IntRange(1, 8).Draw(rt, "turns") {
			messages = append(messages, map[string]any{"role": "user", "content": words(rt)}, map[string]any{"role": "assistant",
				"content": words(rt)})
		}
		messages = append(messages, map[string]any{"role": "user", "content": words(rt)})
		count := func(from int) int {
			kept := append([]any{messages[0]}, messages[from:]...)
			return len(s.post("/tokenize", map[string]any{"messages": kept})["tokens"].([]any))
		}
		want := 1
		for count(want) >= size && want < len(messages)-1 {
			want += 2
		}
		body := map[string]any{"messages": messages, "stream": false, "options": map[string]any{"num_predict": 1}}
		if got := s.post("/api/chat", body)["prompt_eval_count"]; got != float64(count(want)) {
			rt.Fatalf("the prompt has %v tokens, want %d, from message %d on", got, count(want), want)
		}
		if count(1) >= size {
			text, err := json.Marshal(with(body, "truncate", false))
			if err != nil {
				rt.Fatal(err)
			}
			if status, _, answer := s.send("POST", "/api/chat", string(text)); status != 400 ||
				!strings.Contains(answer, "context") {
				rt.Fatalf("without truncation: status %d: %s", status, answer)
			}
		}
	})
}

// Presence and frequency penalties look only at the answer, as OpenAI's and vLLM's do, so that a long
// prompt bans no word. With repeat_last_n they look at the prompt too, as llama.cpp's and Ollama's do.
func TestPenaltiesOfPrompt(t *testing.T) {
	s := start(t, nil, serve.Options{})
	prompt := strings.Repeat("\tx = append(x, y)\n", 20) + "\tx ="
	body := map[string]any{"prompt": prompt, "temperature": 0, "max_tokens": 1}
	tokens := func(fields map[string]any) string {
		return at(s.post("/v1/completions", fields), "choices.0.text").(string)
	}
	free, long := tokens(body), tokens(with(body, "max_tokens", 30))
	for _, field := range []string{"frequency_penalty", "presence_penalty"} {
		penalised := with(body, field, 100)
		if first := tokens(penalised); first != free {
			t.Errorf("%s: the answer begins with %q, without it %q", field, first, free)
		}
		if tokens(with(penalised, "max_tokens", 30)) == long {
			t.Errorf("%s: it has no effect on what the answer repeats", field)
		}
		for _, last := range []int{-1, 10} {
			if first := tokens(with(penalised, "repeat_last_n", last)); first == free {
				t.Errorf("%s, repeat_last_n %d: the answer begins with %q as without", field, last, first)
			}
		}
	}
	if first := tokens(with(body, "repetition_penalty", 50)); first == free {
		t.Errorf("repetition_penalty: the answer begins with %q as without", first)
	}
}

// A prompt that begins with the name of the token that begins a text has this token
// only as often as it names it.
func TestOneBOS(t *testing.T) {
	for _, shape := range []string{"tiny-llama2", "tiny-llama3"} {
		m := tiny(t, shape, 64)
		s := start(t, m, serve.Options{})
		bos := m.Tokenizer().Text(m.Tokenizer().BOS())
		if !m.Tokenizer().AddBOS() {
			t.Fatalf("%s adds no token", shape)
		}
		for prompt, want := range map[string]int{"ab": 1, bos + "ab": 1, bos + bos + "ab": 2, "ab" + bos: 2, bos: 1} {
			var counts []int
			for _, tokens := range []any{s.post("/tokenize", map[string]any{"prompt": prompt})["tokens"],
				s.post("/tokenize", map[string]any{"content": prompt, "add_special": true})["tokens"]} {
				n := 0
				for _, token := range tokens.([]any) {
					if token == float64(m.Tokenizer().BOS()) {
						n++
					}
				}
				counts = append(counts, n)
			}
			a := s.post("/v1/completions", map[string]any{"prompt": prompt, "echo": true, "logprobs": 0, "max_tokens": 0})
			read := strings.Count(fmt.Sprint(at(a, "choices.0.logprobs.tokens")), bos)
			b := s.post("/v1/completions", map[string]any{"prompt": prompt, "echo": true, "logprobs": 0, "max_tokens": 0,
				"add_special_tokens": false})
			named := strings.Count(prompt, bos)
			if got := strings.Count(fmt.Sprint(at(b, "choices.0.logprobs.tokens")), bos); got != named {
				t.Errorf("%s, %q without tokens added: %d that begin a text, want %d", shape, prompt, got, named)
			}
			if counts[0] != want || counts[1] != want || read != want {
				t.Errorf("%s, %q: %v tokens that begin a text, completions read %d, want %d", shape, prompt, counts, read, want)
			}
		}
	}
}

// A stream in the queue sends its headers, and a ping if its protocol has one, before its first
// token. An invalid request still gets its error status.
func TestQueuedStream(t *testing.T) {
	t.Parallel()
	m := tinyWith(t, "tiny-qwen3", 1<<17, grove.Options{Threads: 1, Parallel: 1, ChatTemplate: turnsTemplate})
	s := start(t, m, serve.Options{Limits: serve.Limits{Ping: time.Hour}})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ask := func(path, body string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, "POST", s.url+path, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		a, err := http.DefaultClient.Do(r)
		if err == nil {
			t.Cleanup(func() { a.Body.Close() })
		}
		return a, err
	}
	first, err := ask("/v1/completions", endless)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = first.Body.Read(make([]byte, 1))
	const chat = `{"messages":[{"role":"user","content":"x"}],"stream":true}`
	var all sync.WaitGroup
	for path, want := range map[string]string{"/v1/completions": ": ", "/v1/chat/completions": ": ",
		"/v1/messages": "event: ping", "/api/chat": ""} {
		body := chat
		if path == "/v1/completions" {
			body = endless
		}
		all.Go(func() { // while the first one has the engine
			a, err := ask(path, body)
			if err != nil {
				t.Error(err)
				return
			}
			text := make([]byte, len(want))
			if _, err := io.ReadFull(a.Body, text); a.StatusCode != 200 || err != nil || string(text) != want {
				t.Errorf("%s: status %d, %q, %v", path, a.StatusCode, text, err)
			}
		})
	}
	all.Wait()
	if e := inside.EngineStats(m); e.Running != 1 || e.Waiting != 4 {
		t.Errorf("%d run, %d wait", e.Running, e.Waiting)
	}
	if status, _, text := s.send("POST", "/v1/completions", strings.Replace(endless, `"x"`, `[1e99]`, 1)); status != 400 {
		t.Errorf("status %d: %s", status, text)
	}
}

// -1 is no limit: the text continues until the context is full.
func TestNoLimit(t *testing.T) {
	s := start(t, tinyWith(t, "tiny-qwen3", 64, grove.Options{Threads: 1, ChatTemplate: turnsTemplate}), serve.Options{})
	const rest = `"temperature":0,"ignore_eos":true,"stream":false`
	for path, body := range map[string]string{"/v1/completions": `"prompt":"x","max_tokens":-1`,
		"/v1/chat/completions": `"messages":[{"role":"user","content":"x"}],"max_tokens":-1`,
		"/v1/messages":         `"messages":[{"role":"user","content":"x"}],"max_tokens":-1`,
		"/api/chat":            `"messages":[{"role":"user","content":"x"}],"options":{"num_predict":-1}`,
		"/v1/responses":        `"input":"x","max_output_tokens":-1`} {
		status, _, text := s.send("POST", path, `{`+body+`,`+rest+`}`)
		if status != 200 || !containsAny(text, `"finish_reason":"length"|model_context_window_exceeded|"done_reason":"length"|max_output_tokens`) {
			t.Errorf("%s: status %d: %s", path, status, text)
		}
	}
}
