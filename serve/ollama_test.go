package serve_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/serve"
)

// lines sends JSON, and returns the lines of the stream, of which only the last is done.
func (s *server) lines(path string, fields map[string]any) (list []map[string]any) {
	s.Helper()
	body, err := json.Marshal(fields)
	if err != nil {
		s.Fatal(err)
	}
	status, header, text := s.send("POST", path, string(body))
	if status != 200 || header.Get("Content-Type") != "application/x-ndjson" || !strings.HasSuffix(text, "\n") {
		s.Fatalf("%s %s: status %d, %v: %s", path, body, status, header, text)
	}
	for line := range strings.Lines(text) {
		list = append(list, object(s, line))
	}
	for i, l := range list {
		if last := i == len(list)-1; l["done"] != last || (l["total_duration"] != nil) != last {
			s.Errorf("line %d of %d: %v", i, len(list), l)
		}
	}
	return list
}

// A prompt is answered as a chat, or raw as a text completion, with one log-probability for each
// token.
func TestOllamaGenerate(t *testing.T) {
	t.Parallel()
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	options := map[string]any{"temperature": 0, "num_predict": 30, "ignore_eos": true}
	of := func(lines []map[string]any) (text string, tokens int) {
		for _, l := range lines {
			text += l["response"].(string)
			if probs, ok := l["logprobs"].([]any); ok {
				tokens += len(probs)
			}
		}
		return text, tokens
	}
	const prompt = "func main() {"
	body := map[string]any{"model": "m", "prompt": prompt, "options": options, "logprobs": true, "top_logprobs": 2}
	for _, c := range []struct {
		more     map[string]any
		endpoint string
		like     map[string]any
		path     string
	}{
		{map[string]any{"raw": true}, "/v1/completions", map[string]any{"prompt": prompt}, "choices.0.text"},
		{map[string]any{"system": "Be brief."}, "/v1/chat/completions", map[string]any{"messages": []any{
			map[string]any{"role": "system", "content": "Be brief."},
			map[string]any{"role": "user", "content": prompt}}}, "choices.0.message.content"},
	} {
		want := at(s.post(c.endpoint, with(c.like, "temperature", 0, "max_tokens", 30, "ignore_eos", true)), c.path)
		fields := body
		for name, value := range c.more {
			fields = with(fields, name, value)
		}
		whole := s.post("/api/generate", with(fields, "stream", false))
		lines := s.lines("/api/generate", fields)
		text, tokens := of(lines)
		if whole["response"] != want || text != want || tokens != 30 || len(whole["logprobs"].([]any)) != 30 ||
			len(lines) < 3 ||
			at(whole, "logprobs.0.top_logprobs.1.token") == nil {
			t.Errorf("%v: streamed %q with %d log-probabilities, whole %v; want %q", c.more, text, tokens, whole, want)
		}
		for _, name := range []string{"total_duration", "eval_duration", "eval_count", "prompt_eval_count"} {
			if n, ok := whole[name].(float64); !ok || n <= 0 || n != float64(int64(n)) {
				t.Errorf("%s is %v", name, whole[name])
			}
		}
	}
	// Tools are not fields of this endpoint: they change nothing.
	tool := map[string]any{"type": "function", "function": map[string]any{"name": "f"}}
	for _, fields := range []map[string]any{with(body, "tools", []any{tool}, "tool_choice", "required"),
		with(body, "options", with(options, "tools", []any{tool}, "tool_choice", "required"))} {
		whole, want := s.post("/api/generate", with(fields, "stream", false)), s.post("/api/generate",
			with(body, "stream", false))
		if text, _ := of(s.lines("/api/generate", fields)); text != want["response"] || whole["response"] != text {
			t.Errorf("with tools: streamed %q, whole %q, without %q", text, whole["response"], want["response"])
		}
	}
	// Without a prompt the client asks for the model to be loaded.
	if a := s.post("/api/generate", map[string]any{"model": "m"}); a["done"] != true || a["done_reason"] != "load" ||
		a["response"] != "" {
		t.Error(a)
	}
	if a := s.post("/api/chat", map[string]any{"model": "m", "messages": []any{}}); a["done"] != true ||
		at(a, "message.content") != "" {
		t.Error(a)
	}
	// Any JSON object: it need not end within that many tokens.
	if text, _ := of(s.lines("/api/generate", with(body, "format", "json"))); text == "" || text[0] != '{' {
		t.Errorf("JSON: %q", text)
	}
}

// Clients get the data about the model that they ask for.
func TestOllamaModels(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"] + "{# </think> #}"}),
		serve.Options{})
	get := func(path string) map[string]any {
		status, _, text := s.send("GET", path, "")
		if status != 200 {
			t.Fatalf("%s: status %d: %s", path, status, text)
		}
		return object(t, text)
	}
	tags, ps := get("/api/tags"), get("/api/ps")
	for _, m := range []any{at(tags, "models.0"), at(ps, "models.0")} {
		if at(m, "name") != "test/model" || at(m, "model") != "test/model" || at(m, "size").(float64) <= 0 ||
			len(at(m, "digest").(string)) != 64 ||
			at(m, "details.family") != "llama" && at(m, "details.family") != "qwen3" ||
			at(m, "details.quantization_level") == "" {
			t.Errorf("%v", m)
		}
	}
	if at(tags, "models.0.modified_at") == nil || at(ps, "models.0.modified_at") != nil {
		t.Errorf("listed %v, running %v: those that run have no modified_at", tags, ps)
	}
	if at(ps, "models.0.context_length") != 2048.0 {
		t.Errorf("%v", ps)
	}
	show := s.post("/api/show", map[string]any{"model": "test/model"})
	info := show["model_info"].(map[string]any)
	if name := info["general.architecture"].(string); info[name+".context_length"] != 2048.0 ||
		jsonOf(show["capabilities"]) != `["completion","tools","thinking","insert"]` {
		t.Errorf("%v", show)
	}
	if v := get("/api/version")["version"]; v == "" {
		t.Error("no version")
	}
}

// Of several models, each is loaded once to be shown. Until then only its name is known; the
// running models are those that are loaded.
func TestOllamaShowsManyModels(t *testing.T) {
	f := newShelf(t, 3)
	s := startMany(t, serve.Options{Memory: 2}, f.sources(2, 2, 2)) // there is room for one
	list := func(path string) (names []string, families int) {
		_, _, text := s.send("GET", path, "")
		for _, m := range object(t, text)["models"].([]any) {
			names = append(names, at(m, "name").(string))
			if at(m, "details.family") == "qwen3" {
				families++
			}
		}
		return names, families
	}
	for i := range 7 {
		names, families := list("/api/tags")
		running, _ := list("/api/ps")
		if strings.Join(names, " ") != "m0 m1 m2" || families != min(i, 3) || len(running) != min(i, 1) {
			t.Errorf("round %d: %q, %d of them known, running %q", i, names, families, running)
		}
		if a := s.post("/api/show", map[string]any{"model": names[i%3]}); at(a, "details.family") != "qwen3" ||
			a["modelfile"] != "FROM "+names[i%3]+"\n" {
			t.Errorf("round %d: %v", i, a)
		}
	}
	if n := f.loads.Load(); n != 3 {
		t.Errorf("%d loads of 3 models", n)
	}
	for request, want := range map[string]string{"show": "404 there is no model",
		"pull": "501 this server does not fetch models"} {
		status, _, text := s.send("POST", "/api/"+request, `{"model":"a/b"}`)
		code, message, _ := strings.Cut(want, " ")
		if got, _ := object(t, text)["error"].(string); jsonOf(status) != code || !strings.HasPrefix(got, message) {
			t.Errorf("%s: status %d, %s", request, status, text)
		}
	}
	s.CloseModels()
}

func jsonOf(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// Errors have Ollama's form, and name the field that cannot be honoured.
func TestOllamaErrors(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	const hello = `{"messages":[{"role":"user","content":"x"}]`
	for request, want := range map[string]string{
		"chat {":                             "400 the body: ",
		"chat " + hello + `,"format":"xml"}`: "400 format: ",
		"chat " + hello + `,"format":{"pattern":"\\ba"}}`:                     "400 format: ",
		"chat " + hello + `,"think":7}`:                                       "400 think: ",
		"chat " + hello + `,"options":7}`:                                     "400 options: ",
		"chat " + hello + `,"options":{"mirostat":1}}`:                        "400 options.mirostat: ",
		"chat " + hello + `,"options":{"typical_p":0.5}}`:                     "400 options.typical_p: ",
		"chat " + hello + `,"options":{"num_predict":"x"}}`:                   "400 options.num_predict: ",
		"chat " + hello + `,"options":{"top_p":7}}`:                           "400 options.top_p: ",
		`chat {"messages":[{"role":"user","content":"x","images":["aGk="]}]}`: "400 messages[0].images: ",
		`generate {"prompt":"x","images":["aGk="]}`:                           "400 images: ",
		`generate {"prompt":"x","context":[1,2]}`:                             "400 context: ",
		`generate {"prompt":"x","template":"{{ .Prompt }}"}`:                  "400 template: ",
		`pull {"model":"a/b"}`:                                                `501 this server does not fetch models: start it with --allow-pull, or run "grove pull a/b"`,
		`create {"model":"a"}`:                                                "404 /api/create: ",
	} {
		path, body, _ := strings.Cut(request, " ")
		status, _, text := s.send("POST", "/api/"+path, body)
		code, message, _ := strings.Cut(want, " ")
		got, _ := object(t, text)["error"].(string)
		if jsonOf(status) != code || !strings.HasPrefix(got, message) {
			t.Errorf("%.80s: status %d, %s; want %s", request, status, text, want)
		}
	}
}
