package serve_test

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/serve"
)

// Requests that cannot be honoured are refused in OpenAI's form, with the wrong field.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := start(t, nil, serve.Options{Limits: serve.Limits{Body: 1000}})
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	const hello = `"messages":[{"role":"user","content":"x"}]`
	for _, c := range []struct {
		path, body, param, message string
	}{
		{"completions", ``, "", "JSON"},
		{"completions", `{"prompt":"x"`, "", "byte"},
		{"completions", `[]`, "", "object"},
		{"completions", `null`, "", "object"},
		{"completions", `{"prompt":"x"} {}`, "", "JSON"},
		{"completions", "{\"prompt\":\"\xff\"}", "", "UTF-8"},
		{"completions", `{"prompt":` + deep + `}`, "", "nested"},
		{"completions", `{}`, "prompt", "required"},
		{"completions", `{"prompt":null}`, "prompt", "required"},
		{"completions", `{"prompt":7}`, "prompt", "list of tokens"},
		{"completions", `{"prompt":[]}`, "prompt", "0 prompts|no tokens"},
		{"completions", `{"prompt":["x",7]}`, "prompt[1]", "want a string"},
		{"completions", `{"prompt":[[7,"x"]]}`, "prompt[0][1]", "want a whole number"},
		{"completions", `{"prompt":[99999999]}`, "prompt", "token 0 is 99999999"},
		{"completions", `{"prompt":[-1]}`, "prompt", "-1"},
		{"completions", `{"prompt":[null]}`, "prompt[0]", "want a string, a token"},
		{"completions", `{"prompt":[[7],[null]]}`, "prompt[1][0]", "not null"},
		{"completions", `{"prompt":["x",null]}`, "prompt[1]", "not null"},
		{"completions", `{"prompt":"x","stop":["a",null]}`, "stop[1]", "string"},
		{"completions", `{"prompt":[1e99]}`, "prompt[0]", "to 2147483647, not 1e99"},
		{"completions", `{"prompt":[` + strings.Repeat(`"x",`, 64) + `"x"]}`, "prompt", "65 prompts"},
		{"completions", `{"prompt":"x","max_tokens":"7"}`, "max_tokens", "whole number"},
		{"completions", `{"prompt":"x","max_tokens":-2}`, "max_tokens", "1 or more, or -1"},
		{"completions", `{"prompt":"x","max_tokens":0}`, "max_tokens", "1 or more"},
		{"completions", `{"prompt":"x","temperature":"hot"}`, "temperature", "number"},
		{"completions", `{"prompt":"x","temperature":-1}`, "temperature", "0 to 100"},
		{"completions", `{"prompt":"x","temperature":1e99}`, "temperature", "number"},
		{"completions", `{"prompt":"x","top_p":2}`, "top_p", "0 to 1"},
		{"completions", `{"prompt":"x","top_k":-7}`, "top_k", "0"},
		{"completions", `{"prompt":"x","min_p":7}`, "min_p", "0 to 1"},
		{"completions", `{"prompt":"x","presence_penalty":5000}`, "presence_penalty", "1000"},
		{"completions", `{"prompt":"x","frequency_penalty":5000}`, "frequency_penalty", "1000"},
		{"completions", `{"prompt":"x","repetition_penalty":-1}`, "repetition_penalty", "100"},
		{"completions", `{"prompt":"x","repeat_last_n":-7}`, "repeat_last_n", "0"},
		{"completions", `{"prompt":"x","seed":"x"}`, "seed", "whole number"},
		{"completions", `{"prompt":"x","stop":7}`, "stop", "string"},
		{"completions", `{"prompt":"x","stop":[""]}`, "stop", "empty"},
		{"completions",
			`{"prompt":"x","stop":["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q"]}`, "stop", "17"},
		{"completions", `{"prompt":"x","n":0}`, "n", "1 to 16"},
		{"completions", `{"prompt":"x","n":17}`, "n", "1 to 16"},
		{"completions", `{"prompt":"x","best_of":3}`, "best_of", "n"},
		{"completions", `{"prompt":[1],"suffix":"y"}`, "suffix", "as text"},
		{"chat/completions", `{` + hello + `,"suffix":"y"}`, "suffix", "leave it out"},
		{"completions", `{"prompt":"x","stream":1}`, "stream", "true or false"},
		{"completions", `{"prompt":"x","stream_options":7}`, "stream_options", "object"},
		{"completions", `{"prompt":"x","stream_options":{"include_usage":7}}`, "stream_options.include_usage",
			"true or false"},
		{"completions", `{"prompt":"x","logit_bias":{"":1}}`, "logit_bias", "token"},
		{"completions", `{"prompt":"x","logit_bias":{"-1":1}}`, "logit_bias", "token"},
		{"completions", `{"prompt":"x","logit_bias":{"7":true}}`, "logit_bias.7", "number"},
		{"completions", `{"prompt":"x","logit_bias":{"7":101}}`, "logit_bias", "100"},
		{"completions", `{"prompt":"x","logit_bias":{"99999999":1}}`, "logit_bias", "99999999"},
		{"completions", `{"prompt":"x","logit_bias":[1]}`, "logit_bias[0]", "list"},
		{"completions", `{"prompt":"x","logit_bias":[["word","x"]]}`, "logit_bias[0][1]", "number"},
		{"completions", `{"prompt":"x","logit_bias":[[7.9,1]]}`, "logit_bias[0][0]", "whole number"},
		{"completions", `{"prompt":"x","logit_bias":[[7,1],[7]]}`, "logit_bias[1]", "token"},
		{"completions", `{"prompt":"x","logprobs":21}`, "logprobs", "20"},
		{"completions", `{"prompt":"x","logprobs":true}`, "logprobs", "whole number"},
		{"completions", `{"prompt":"x","drafter":"magic"}`, "drafter", "magic"},
		{"completions", `{"prompt":"x","drafter":"best-first:model=/etc/passwd"}`, "drafter", "files"},
		{"completions", `{"prompt":"x","drafter":"merge:lookup+(jetspec: model = x)"}`, "drafter", "files"},
		{"completions", `{"prompt":"x","budget":1}`, "budget", "2 to 4096"},
		{"completions", `{"prompt":"x","drafter":"lookup:min=1` + strings.Repeat(" ", 600) + `"}`, "drafter", "at most 512"},
		{"completions", `{"prompt":"x","speculate":"no"}`, "speculate", "true or false"},
		{"completions", `{"prompt":"x","priority":"high"}`, "priority", "whole number"},
		{"completions", `{"prompt":"x","prediction":"y"}`, "prediction", "object"},
		{"completions", `{"prompt":"x","prediction":{"type":"style","content":"y"}}`, "prediction.type", "content"},
		{"completions", `{"prompt":"x","prediction":{"type":"content","content":7}}`, "prediction.content", "string"},
		{"completions", `{"prompt":"x","response_format":{"type":"xml"}}`, "response_format.type", "json_schema"},
		{"completions", `{"prompt":"x","response_format":{"type":"json_schema"}}`,
			"response_format.json_schema.schema", "required"},
		{"completions", `{"prompt":"x","response_format":{"type":"json_schema","json_schema":{"schema":{"type":"string","pattern":"\\ba"}}}}`,
			"response_format.json_schema.schema", "keyword pattern"},
		{"completions", `{"prompt":"x","grammar":"root ::= x"}`, "grammar", "not defined"},
		{"completions", `{"prompt":"x","guided_regex":"("}`, "guided_regex", "missing"},
		{"completions", `{"prompt":"x","structured_outputs":{"structural_tag":"{}"}}`,
			"structured_outputs.structural_tag", "leave it out"},
		{"completions", `{"prompt":"x","include_stop_str_in_output":true}`, "include_stop_str_in_output", "leave it out"},
		{"completions", `{"prompt":"x","truncate_prompt_tokens":7}`, "truncate_prompt_tokens", "leave it out"},
		{"chat/completions", `{` + hello + `,"chat_template":"x"}`, "chat_template", "leave it out"},
		{"chat/completions", `{` + hello + `,"documents":[{"text":"x"}]}`, "documents", "leave it out"},
		{"completions", `{"prompt":"x","structured_outputs":{"choice":[1]}}`, "structured_outputs.choice[0]", "want a string"},
		{"completions", `{"prompt":"x","guided_regex":"a","response_format":{"type":"json_object"}}`, "guided_regex", "one of them"},
		{"completions", `{"prompt":"x","user":"` + strings.Repeat("u", 1000) + `"}`, "", "1000 bytes"},
		{"chat/completions", `{}`, "messages", "required"},
		{"chat/completions", `{"messages":[]}`, "messages", "the list is empty"},
		{"chat/completions", `{"messages":"hello"}`, "messages", "list"},
		{"chat/completions", `{"messages":[null]}`, "messages[0]", "object"},
		{"chat/completions", `{"messages":[{"content":"x"}]}`, "messages[0].role", "user"},
		{"chat/completions", `{"messages":[{"role":"user"}]}`, "messages[0].content", "required"},
		{"chat/completions", `{` + hello + `,"best_of":3,"n":2}`, "best_of", "want 2"},
		{"chat/completions", `{` + hello + `,"reasoning_budget":-7}`, "reasoning_budget", "-1"},
		{"chat/completions", `{` + hello + `,"reasoning_format":"banana"}`, "reasoning_format", "deepseek"},
		{"completions", `{"prompt":"x","repeat_last_n":-5}`, "repeat_last_n", "-1 (the whole text)"},
		{"chat/completions", `{` + hello + `,"echo":true}`, "echo", "does not support"},
		{"responses", `{"input":[{"role":"bogus","content":"x"}]}`, "input[0].role", "developer"},
		{"chat/completions", `{"messages":[{"role":"user","content":7}]}`, "messages[0].content", "string"},
		{"chat/completions", `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`,
			"messages[0].content[0].type", "text"},
		{"chat/completions", `{` + hello + `,"tools":[{}]}`, "tools[0].function", "required"},
		{"chat/completions", `{` + hello + `,"tools":[{"function":{"name":"a b"}}]}`, "tools[0].function.name", "letters"},
		{"chat/completions", `{` + hello + `,"tool_choice":"required"}`, "tool_choice", "no tools"},
		{"chat/completions", `{` + hello + `,"tool_choice":"sometimes"}`, "tool_choice", "auto"},
		{"chat/completions", `{` + hello + `,"top_logprobs":3}`, "top_logprobs", "logprobs"},
		{"chat/completions", `{` + hello + `,"logprobs":true,"top_logprobs":21}`, "top_logprobs", "20"},
		{"chat/completions", `{` + hello + `,"logprobs":7}`, "logprobs", "true or false"},
		{"chat/completions", `{` + hello + `,"max_completion_tokens":0}`, "max_completion_tokens", "1 or more"},
		{"chat/completions", `{` + hello + `,"max_tokens":0}`, "max_tokens", "1 or more"},
		{"chat/completions", `{"messages":[{"role":"user","content":"` + strings.Repeat("word ",
			150) + `"}],"stream":true,"temperature":-1}`, "temperature", "0"},
	} {
		status, header, text := s.send("POST", "/v1/"+c.path, c.body)
		want := 400
		if strings.Contains(c.message, "bytes") {
			want = 413
		}
		if status != want || header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: status %d: %s", c.path, c.body, status, text)
			continue
		}
		e := at(object(t, text), "error")
		message, _ := at(e, "message").(string)
		param, _ := at(e, "param").(string)
		if !containsAny(message, c.message) || param != c.param || at(e, "type") != "invalid_request_error" {
			t.Errorf("%s %s: %s", c.path, c.body, text)
		}
	}
	if strings.Contains(s.log.String(), "panic") {
		t.Error(s.log.String())
	}
}

func containsAny(text, words string) bool {
	for word := range strings.SplitSeq(words, "|") {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// A prompt that does not fit into the context is refused in each protocol's words, with the number
// of its tokens and the limit: clients find both in the message, and shorten the prompt.
func TestContextFull(t *testing.T) {
	s := start(t, tiny(t, "tiny-qwen3", 32), serve.Options{})
	long := strings.Repeat("abc def ", 40)
	endless := strings.Repeat(" ", 1<<16) // its tokens are not counted
	messages := `"messages":[{"role":"user","content":"` + long + `"}]`
	for _, c := range []struct{ path, body, want, param string }{
		{"/v1/completions", `"prompt":"` + long + `"`, `^This model's maximum context length is 32 tokens, however you requested (\d+) tokens`, "prompt"},
		{"/v1/chat/completions", messages, `^This model's maximum context length is 32 tokens\. However, your messages resulted in (\d+) tokens\.`, "messages"},
		{"/v1/responses", `"input":"` + long + `"`, `^Your input exceeds the context window of this model\..* (\d+) tokens,.* 32\.`, "input"},
		{"/v1/embeddings", `"input":"` + long + `"`, `^This model's maximum context length is 32 tokens, however you requested (\d+) tokens`, "input"},
		{"/v1/messages", messages, `^prompt is too long: (\d+) tokens > 32 maximum$`, ""},
		{"/api/chat", messages, `^the input length exceeds the context length: the input has (\d+) tokens, the context holds 32`, ""},
		{"/api/generate", `"prompt":"` + long + `"`, `^the input length exceeds the context length: the input has (\d+) tokens, the context holds 32`, ""},
		{"/api/generate", `"raw":true,"prompt":"` + long + `"`, `^the input length exceeds the context length: the input has (\d+) tokens, the context holds 32`,
			""},
	} {
		for _, stream := range []string{"false", "true"} {
			status, _, text := s.send("POST", c.path, `{`+c.body+`,"stream":`+stream+`}`)
			a := object(t, text)
			message, _ := a["error"].(string)
			if in, _ := at(a, "error.message").(string); in != "" {
				message = in
			}
			found := regexp.MustCompile(c.want).FindStringSubmatch(message)
			if status != 400 || found == nil {
				t.Errorf("%s: status %d, %s; want %s", c.path, status, text, c.want)
				continue
			}
			if n, _ := strconv.Atoi(found[1]); n <= 32 || n > 2*len(long) {
				t.Errorf("%s: %d tokens in %d bytes", c.path, n, len(long))
			}
			if c.param != "" && (at(a, "error.code") != "context_length_exceeded" || at(a, "error.param") != c.param) {
				t.Errorf("%s: %s", c.path, text)
			}
		}
		status, _, text := s.send("POST", c.path, `{`+strings.ReplaceAll(c.body, long, endless)+`}`)
		a := object(t, text)
		message, _ := a["error"].(string)
		if in, _ := at(a, "error.message").(string); in != "" {
			message = in
		}
		if want := strings.Replace(c.want, `(\d+) tokens`, `at least (\d+) tokens`, 1); status != 400 ||
			!regexp.MustCompile(want).MatchString(message) {
			t.Errorf("%s: status %d, %s; want %s", c.path, status, text, want)
		}
	}
}

// A prompt of many bytes is no longer than its tokens: those that a chat template leaves out do not count, nor those
// that are cut off.
func TestLongButFits(t *testing.T) {
	s := start(t, tinyWith(t, "tiny-qwen3", 64, grove.Options{ChatTemplate: "{{ messages[-1].content }}"}), serve.Options{})
	endless := strings.Repeat(" ", 1<<16)
	for path, body := range map[string]string{
		"/v1/chat/completions": `"messages":[{"role":"user","content":"` + endless + `"},{"role":"user","content":"x"}]`,
		"/api/embed":           `"input":"` + endless + `"`,
	} {
		if status, _, text := s.send("POST", path, `{"max_tokens":1,`+body+`}`); status != 200 {
			t.Errorf("%s: status %d, %s", path, status, text)
		}
	}
	s = start(t, tinyWith(t, "tiny-qwen3", 64, grove.Options{ChatTemplate: turns}), serve.Options{})
	status, _, text := s.send("POST", "/api/chat", `{"stream":false,"options":{"num_predict":1},"messages":[{"role":"user","content":"`+
		endless+`"},{"role":"assistant","content":"a"},{"role":"user","content":"x"}]}`)
	if status != 200 {
		t.Errorf("with turns that are dropped: status %d, %s", status, text)
	}
}

// Unknown paths and methods have answers in the same form.
func TestNotFound(t *testing.T) {
	s := start(t, nil, serve.Options{})
	for _, c := range []struct {
		method, path string
		status       int
		code         string
	}{
		{"GET", "/nothing", 404, "not_found"},
		{"POST", "/v1/images", 404, "not_found"},
		{"GET", "/v1/completions", 405, "method_not_allowed"},
		{"DELETE", "/v1/models", 405, "method_not_allowed"},
		{"OPTIONS", "/v1/completions", 405, "method_not_allowed"},
		{"POST", "/v1/responses/compact", 501, "not_supported"},
	} {
		status, header, text := s.send(c.method, c.path, "")
		if status != c.status || at(object(t, text), "error.code") != c.code ||
			(status == 405) != (header.Get("Allow") != "") {
			t.Errorf("%s %s: status %d, %v: %s", c.method, c.path, status, header, text)
		}
	}
}

// Whatever the body is, the answer is one or an error in the protocol's form, and nothing panics.
func FuzzBody(f *testing.F) {
	m := tiny(f, "tiny-qwen3", 64)
	log := &buffer{}
	s, err := serve.New(serve.Options{Log: slog.New(slog.NewTextHandler(log, nil)),
		Limits: serve.Limits{N: 2, MaxTokens: 2, Prompts: 2}})
	if err != nil {
		f.Fatal(err)
	}
	s.SetModel(&serve.Model{Model: m, Name: "m", Drafter: "lookup"})
	for _, body := range []string{
		`{"prompt":"x","n":2,"echo":true,"logprobs":3,"stop":["a"],"stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":[[1,2],[3]],"logit_bias":{"1":-100},"seed":-5,"top_p":0,"top_k":-1,"repeat_last_n":0}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}],"name":"y"}],"logprobs":true,"chat_template_kwargs":{"x":[1]}}`,
		`{"prompt":"x","prediction":{"type":"content","content":"y z"},"drafter":"lookup:min=1","budget":5}`,
		`{"prompt":"x","response_format":{"type":"json_schema","json_schema":{"schema":{"type":["object","null"],"properties":{"a":{"enum":[1]}}}}}}`,
		`{"prompt":"x","grammar":"root ::= [a-z]+","logprobs":1}`,
		`{"prompt":"x","structured_outputs":{"regex":"a|b"}}`,
		`{"content":"x","tokens":[1,2],"with_pieces":true}`,
		`{"input":[{"type":"reasoning","summary":[]},{"type":"function_call","name":"f","call_id":"c","arguments":"{"},{"role":"user","content":"x"}],"stream":true}`,
		`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"x","is_error":true}]}],"thinking":{"type":"disabled"}}`,
		`{"messages":[{"role":"user","content":"x"}],"prompt":"x","options":{"num_predict":1,"top_k":3},"think":"low","format":{"type":"object"}}`,
		`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"namespace","name":"n","tools":[{"name":"f"}]},{"custom":{"name":"c"}}],"tool_choice":{"type":"custom"}}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{"/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat",
			"/api/generate", "/tokenize", "/detokenize"} {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)))
			if w.Code >= 500 || bytes.Contains(w.Body.Bytes(), []byte("internal_error")) {
				t.Fatalf("%s: status %d: %s\n%s", path, w.Code, w.Body, log)
			}
			if w.Code != 200 && at(object(t, w.Body.String()), "error") == nil {
				t.Fatalf("%s: status %d: %s", path, w.Code, w.Body)
			}
		}
	})
}
