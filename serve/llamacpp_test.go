package serve_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/serve"
)

// changing matches the parts that differ between two answers to one request.
var changing = regexp.MustCompile(`"(id|request_id|created|created_at|completed_at|timings)": ?(\{[^}]*\}|"[^"]*"|[0-9]+)`)

// A path without /v1, with KServe's prefix or with a slash at the end is the endpoint itself, for answers and errors.
func TestPathsWithoutVersion(t *testing.T) {
	s := start(t, tinyWith(t, "tiny-qwen3", 256, grove.Options{Threads: 1, ChatTemplate: turnsTemplate}), serve.Options{})
	for path, body := range textBodies {
		bare, versioned := strings.CutPrefix(path, "/v1")
		if !versioned {
			continue
		}
		for _, body := range []string{strings.Replace(body, "*", `"temperature":0,`, 1), "{"} {
			status, header, text := s.send("POST", path, body)
			want := changing.ReplaceAllString(text, "")
			for _, loose := range []string{bare, path + "/", "/openai" + path, "/openai" + bare + "/"} {
				gotStatus, gotHeader, got := s.send("POST", loose, body)
				got = changing.ReplaceAllString(got, "")
				if gotStatus != status || normalUsage(got) != normalUsage(want) ||
					gotHeader.Get("Request-Id") == "" != (header.Get("Request-Id") == "") {
					t.Errorf("%s: status %d: %s\n%s: status %d: %s", loose, gotStatus, got, path, status, want)
				}
			}
		}
	}
	for path, want := range map[string]int{"/models": 200, "/models/test%2Fmodel": 200, "/v1/models/": 200, "/chat": 404,
		"/openai/v1/models/test%2Fmodel/": 200, "/openai/models/x": 404, "/openai": 404, "/openai/v1/health": 404,
		"/chat/completion": 404,
		"/modelsx":         404, "/chat/completions": 405, "/responses/resp_1": 404} {
		if status, _, text := s.send("GET", path, ""); status != want {
			t.Errorf("%s: status %d, want %d: %s", path, status, want, text)
		}
	}
}

// normalUsage removes the field that an earlier request changes: tokens found in the cache.
func normalUsage(text string) string {
	return regexp.MustCompile(`"(cached_tokens|cache_read_input_tokens|input_tokens)": ?[0-9]+|"id":|msg_\w+|(cache|prompt)_\w+":[0-9.]+`).ReplaceAllString(text, "")
}

// llama.cpp's /completion has the text and the tokens of /v1/completions, whole and streamed. Defaults are llama.cpp's.
func TestLlamaCompletion(t *testing.T) {
	s := start(t, tinyWith(t, "tiny-qwen3", 256, grove.Options{Threads: 1}), serve.Options{})
	for _, prompt := range []any{"some text", []any{1, 2, 3}} {
		want := s.post("/v1/completions", map[string]any{"prompt": prompt, "max_tokens": 20, "seed": 3, "temperature": 0.8,
			"top_k": 40, "top_p": 0.95, "min_p": 0.05, "repeat_penalty": 1.5, "repeat_last_n": 64, "return_token_ids": true})
		fields := map[string]any{"prompt": prompt, "n_predict": 20, "seed": 3, "repeat_penalty": 1.5,
			"return_tokens": true}
		whole := s.post("/completion", fields)
		if whole["content"] != at(want, "choices.0.text") || whole["stop"] != true || whole["tokens_predicted"] != at(want,
			"usage.completion_tokens") ||
			whole["tokens_evaluated"] != at(want, "usage.prompt_tokens") || whole["stop_type"] == "" ||
			!reflect.DeepEqual(whole["tokens"], at(want, "choices.0.token_ids")) {
			t.Errorf("%v: %v, want %v", prompt, whole, want)
		}
		_, _, text := s.send("POST", "/completion", jsonOf(with(fields, "stream", true)))
		streamed, ended := "", false
		var tokens []any
		for line := range strings.Lines(text) {
			data, isEvent := strings.CutPrefix(line, "data: ")
			if !isEvent {
				continue
			}
			e := object(t, data)
			streamed += e["content"].(string)
			ended = e["stop"] == true
			ids, _ := e["tokens"].([]any)
			tokens = append(tokens, ids...)
		}
		if streamed != whole["content"] || !ended || !reflect.DeepEqual(tokens, whole["tokens"]) {
			t.Errorf("%v: streamed %q, %v, whole %v", prompt, streamed, tokens, whole)
		}
	}
	read := s.post("/completion", map[string]any{"prompt": "some text", "n_predict": 0,
		"logit_bias": []any{[]any{7, false}, []any{9, -0.5}}})
	if read["content"] != "" || read["stop"] != true || read["tokens_predicted"] != 0.0 ||
		at(read, "timings.predicted_n") != 0.0 {
		t.Errorf("without a token: %v", read)
	}
	for body, param := range map[string]string{`{}`: "prompt", `{"prompt":["a","b"]}`: "prompt",
		`{"prompt":"x","n_probs":21}`:                           "n_probs",
		`{"prompt":"x","logprobs":-1}`:                          "logprobs",
		`{"prompt":"x","n_probs":1,"post_sampling_probs":true}`: "post_sampling_probs",
		`{"prompt":"x","return_token_ids":true}`:                "return_token_ids",
		`{"prompt":"x","n_cmpl":2}`:                             "n_cmpl", `{"prompt":"x","n":2}`: "n",
		`{"prompt":"` + strings.Repeat("many words ", 100) + `","n_predict":1}`: "prompt"} {
		status, _, text := s.send("POST", "/completion", body)
		if got := at(object(t, text), "error.param"); status != 400 || got != param {
			t.Errorf("%.60s: status %d, param %v, want %s", body, status, got, param)
		}
	}
}

// n_probs gives the log-probabilities that /v1/completions gives, whole and streamed.
func TestLlamaProbabilities(t *testing.T) {
	s := start(t, shallow(t, grove.Options{}), serve.Options{})
	fields := map[string]any{"prompt": "One, two, three", "temperature": 1, "seed": 3, "max_tokens": 9, "ignore_eos": true}
	want := at(s.post("/v1/completions", with(fields, "logprobs", 3, "return_token_ids", true)), "choices.0")
	for _, field := range []string{"n_probs", "logprobs"} {
		fields := with(fields, field, 3, "top_k", 0, "top_p", 1, "min_p", 0)
		whole, _ := s.post("/completion", fields)["completion_probabilities"].([]any)
		var streamed []any
		_, _, text := s.send("POST", "/completion", jsonOf(with(fields, "stream", true)))
		for line := range strings.Lines(text) {
			if data, isEvent := strings.CutPrefix(line, "data: "); isEvent {
				probs, _ := object(t, data)["completion_probabilities"].([]any)
				streamed = append(streamed, probs...)
			}
		}
		if len(whole) != 9 || !reflect.DeepEqual(whole, streamed) {
			t.Fatalf("%s: %v, streamed %v", field, whole, streamed)
		}
		for i, p := range whole {
			top := at(p, "top_logprobs").([]any)
			id, name := at(p, "id"), at(p, "token").(string)
			if id != at(want, "token_ids").([]any)[i] || at(p, "logprob") != at(want, "logprobs.token_logprobs").([]any)[i] ||
				name != at(want, "logprobs.tokens").([]any)[i] || len(at(p, "bytes").([]any)) != len(name) || len(top) != 3 {
				t.Errorf("%s, token %d: %v", field, i, p)
			}
			all := at(want, "logprobs.top_logprobs").([]any)[i].(map[string]any)
			for _, q := range top {
				if at(q, "logprob") != all[at(q, "token").(string)] || at(q, "id") == nil {
					t.Errorf("%s, token %d: %v of %v", field, i, q, all)
				}
			}
		}
	}
}

// A bias of a text counts for each of its tokens, those of several texts together.
func TestBiasByText(t *testing.T) {
	s := start(t, withHeads(t, grove.Options{}), serve.Options{})
	ids := s.post("/tokenize", map[string]any{"content": " seven"})["tokens"].([]any)
	pairs, object := []any{}, map[string]any{}
	for _, id := range ids {
		pairs = append(pairs, []any{id, 12.5})
		object[jsonOf(id)] = 12.5
	}
	for path, body := range map[string]map[string]any{"/v1/completions": {"max_tokens": 12},
		"/completion": {"n_predict": 12}} {
		var first any
		for _, bias := range []any{pairs, object, map[string]any{" seven": 12.5}, []any{[]any{" seven", 12.5}},
			[]any{[]any{" seven", 10}, []any{" seven", 2.5}}} {
			got := s.post(path, with(body, "prompt", "One, two, three", "temperature", 1, "seed", 4, "logit_bias", bias))
			text := at(got, "choices.0.text")
			if text == nil {
				text = got["content"]
			}
			if first == nil {
				first = text
			}
			if text != first || !strings.Contains(text.(string), "seven") {
				t.Errorf("%s, %v: %q, want %q", path, bias, text, first)
			}
		}
	}
	fields := map[string]any{"prompt": "One, two, three", "n_predict": 1, "temperature": 0}
	first := s.post("/completion", fields)["content"].(string)
	for _, bias := range []any{map[string]any{first: false}, []any{[]any{first, false}}} {
		if got := s.post("/completion", with(fields, "logit_bias", bias))["content"]; first == "" || got == first {
			t.Errorf("%v: %q", bias, got)
		}
	}
}

// llama.cpp's name for the limit of tokens has precedence over OpenAI's in the endpoints of both.
func TestNPredict(t *testing.T) {
	s := start(t, tinyWith(t, "tiny-qwen3", 256, grove.Options{Threads: 1, ChatTemplate: turnsTemplate}), serve.Options{})
	for path, field := range map[string]string{"/v1/completions": `"prompt":"x"`,
		"/v1/chat/completions": `"messages":[{"role":"user","content":"x"}]`} {
		for fields, want := range map[string]any{`"n_predict":5`: 5.0, `"n_predict":5,"max_tokens":7`: 5.0,
			`"n_predict":null,"max_tokens":7`: 7.0} {
			status, _, text := s.send("POST", path, `{"ignore_eos":true,`+fields+`,`+field+`}`)
			if got := at(object(t, text), "usage.completion_tokens"); status != 200 || got != want {
				t.Errorf("%s, %s: status %d, %v tokens, want %v", path, fields, status, got, want)
			}
		}
	}
}

// Questions of llama.cpp's and vLLM's clients about a model are answered with its data.
func TestPropsAndTokenizerInfo(t *testing.T) {
	template := toolTemplates["hermes"] // in place of the file's
	s := start(t, shallow(t, grove.Options{ChatTemplate: template}), serve.Options{})
	_, _, text := s.send("GET", "/props", "")
	props := object(t, text)
	_, _, models := s.send("GET", "/v1/models", "")
	card := at(object(t, models), "data.0")
	if at(props, "default_generation_settings.n_ctx") != at(card, "max_model_len") ||
		props["model_alias"] != at(card, "id") || at(props, "modalities.vision") != false {
		t.Errorf("%s of %v", text, card)
	}
	_, _, text = s.send("GET", "/tokenizer_info?model="+props["model_alias"].(string), "")
	info := object(t, text)
	eos, _ := info["eos_token"].(string)
	tokens := s.post("/tokenize", map[string]any{"prompt": eos, "add_special_tokens": false})
	if eos == "" || eos != props["eos_token"] || tokens["count"] != 1.0 {
		t.Errorf("%s: %q has the tokens %v", text, eos, tokens)
	}
	shown := s.post("/api/show", map[string]any{})
	if props["chat_template"] != template || info["chat_template"] != template || shown["template"] != template {
		t.Errorf("want the template %s: %v, %v, %v", template, props, info, shown)
	}
}

// The count of a response's input equals the count in the response.
func TestInputTokens(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	first := s.post("/v1/responses", map[string]any{"input": "x", "max_output_tokens": 3})
	for _, fields := range []map[string]any{{"input": "some text"}, {"input": "and", "previous_response_id": first["id"]},
		{"input": "x", "instructions": "Be brief.", "tools": []any{map[string]any{"type": "function", "name": "f"}}}} {
		fields["max_output_tokens"] = 1
		count := s.post("/v1/responses/input_tokens", fields)
		want := at(s.post("/v1/responses", fields), "usage.input_tokens")
		if count["object"] != "response.input_tokens" || count["input_tokens"] != want {
			t.Errorf("%v: %v, want %v", fields, count, want)
		}
	}
}
