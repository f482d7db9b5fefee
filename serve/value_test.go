package serve_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/serve"
)

// jsonValues has values of each kind: b true, i a whole number, n another one, s a string, l a
// list, o an object.
var jsonValues = map[string]string{"b": "true", "i": "7", "n": "1.5", "s": `"seven"`, "l": "[true]", "o": `{"a":true}`}

// said is how an error describes each of them.
var said = map[string]string{"b": "not true", "i": "not 7", "n": "not 1.5", "s": `not the string "seven"`,
	"l": "not a list", "o": "not an object"}

// wrongFields are the fields of endpoints, with the kinds of values that they take. A * stands for
// the value. Fields that take lists do not take lists of true.
var wrongFields = []struct{ path, body, fields string }{
	{"/v1/completions", `{"prompt":"x",*}`, `model s, stream b, n i, max_tokens i, temperature in, top_p in, top_k i, min_p in, presence_penalty in,
		frequency_penalty in, repetition_penalty in, repeat_last_n i, seed i, logit_bias ol, logprobs i, echo b, best_of i, stop sl, ignore_eos b,
		drafter s, budget i, speculate b, prediction o, priority i, rounds b, race b, suffix s, stream_options o, response_format o,
		structured_outputs o, grammar s, guided_regex s, guided_choice l`},
	{"/v1/completions", `{*}`, `prompt sl`},
	{"/v1/completions", `{"prompt":"x","stream_options":{*}}`, `stream_options.include_usage b, stream_options.continuous_usage_stats b`},
	{"/v1/completions", `{"prompt":"x","prediction":{"content":"x",*}}`, `prediction.type s`},
	{"/v1/completions", `{"prompt":"x","prediction":{*}}`, `prediction.content sl`},
	{"/v1/completions", `{"prompt":"x","structured_outputs":{*}}`,
		`structured_outputs.regex s, structured_outputs.grammar s,
		structured_outputs.choice l, structured_outputs.json_object b`},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],*}`,
		`max_completion_tokens i, logprobs b, top_logprobs i, chat_template_kwargs o,
		reasoning_effort s, reasoning_format s, reasoning_budget i, parallel_tool_calls b, tools l, continue_final_message b,
		add_generation_prompt b, truncate b`},
	{"/v1/chat/completions", `{*}`, `messages l`},
	{"/v1/chat/completions", `{"messages":[{"content":"x",*}]}`, `messages[0].role s`},
	{"/v1/chat/completions", `{"messages":[{"role":"user",*}]}`, `messages[0].content sl`},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"text",*}]}]}`, `messages[0].content[0].text s`},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":[{*}]}]}`, `messages[0].content[0].type s`},
	{"/v1/embeddings", `{"input":"x",*}`, `encoding_format s, pooling s, dimensions i`},
	{"/v1/embeddings", `{*}`, `input sl`},
	{"/api/embed", `{"input":"x",*}`, `truncate b, dimensions i`},
	{"/api/chat", `{"messages":[{"role":"user","content":"x"}],*}`, `options o, stream b`},
	{"/api/chat", `{"messages":[{"role":"user","content":"x"}],"options":{*}}`,
		`options.num_predict i, options.top_k i, options.temperature in,
		options.seed i, options.stop sl`},
	{"/api/generate", `{"prompt":"x",*}`, `raw b, suffix s`},
	{"/api/generate", `{*}`, `prompt s`},
	{"/v1/messages", `{"messages":[{"role":"user","content":"x"}],*}`,
		`system sl, stop_sequences sl, thinking o, output_config o, metadata o, tool_choice o,
		tools l, max_tokens i, top_k i, stream b`},
	{"/v1/messages", `{"messages":[{"role":"user","content":"x"}],"thinking":{*}}`, `thinking.type s`},
	{"/v1/messages", `{*}`, `messages l`},
	{"/v1/messages", `{"messages":[{"role":"user",*}]}`, `messages[0].content sl`},
	{"/v1/responses", `{"input":"x",*}`, `instructions sl, max_output_tokens i, top_logprobs i, text o, reasoning o, tools l, include sl`},
	{"/v1/responses", `{*}`, `input sl`},
	{"/tokenize", `{"content":"x",*}`, `parse_special b, with_pieces b, add_special b`},
	{"/tokenize", `{*}`, `content s`},
	{"/detokenize", `{*}`, `tokens l`},
}

// The error for a value of the wrong type names the field, or the place within it, the
// value there, and what is wanted.
func TestWrongTypes(t *testing.T) {
	s := start(t, tiny(t, "tiny-qwen3", 256), serve.Options{})
	tried := 0
	for _, c := range wrongFields {
		for entry := range strings.SplitSeq(c.fields, ",") {
			field, takes, _ := strings.Cut(strings.TrimSpace(entry), " ")
			name := field[strings.LastIndexByte(field, '.')+1:]
			for kind, value := range jsonValues {
				where, want := field, said[kind]
				switch {
				case kind == "l" && strings.Contains(takes, kind):
					where, want = field+"[0]", "not true"
				case strings.Contains(takes, kind):
					continue
				}
				body := strings.Replace(c.body, "*", fmt.Sprintf("%q:%s", name, value), 1)
				status, _, text := s.send("POST", c.path, body)
				message, _ := at(object(t, text), "error.message").(string)
				if strings.HasPrefix(c.path, "/api/") {
					message, _ = at(object(t, text), "error").(string)
				}
				if status != 400 || !strings.HasPrefix(message, where+": want ") || !strings.HasSuffix(message, want) {
					t.Errorf("%s %s: status %d: %q, want it to begin with %q and to end with %q", c.path, body, status, text,
						where+": want ", want)
				}
				tried++
			}
		}
	}
	t.Logf("%d bodies", tried)
}

// The error for a number beyond a field's range names the range.
func TestWrongRanges(t *testing.T) {
	s := start(t, tiny(t, "tiny-qwen3", 256), serve.Options{})
	for field, values := range map[string][]string{
		"max_tokens": {"9223372036854775808", "-9223372036854775809", "1e99", "1e400"}, "top_k": {"1e19"},
		"seed": {"18446744073709551616", "-9223372036854775809", "1e99"}, "temperature": {"1e39", "-1e400"},
	} {
		for _, value := range values {
			status, _, text := s.send("POST", "/v1/completions", fmt.Sprintf(`{"prompt":"x",%q:%s}`, field, value))
			if message, _ := at(object(t, text), "error.message").(string); status != 400 ||
				!strings.Contains(message, "number from -") ||
				!strings.HasSuffix(message, "not "+value) || field == "seed" && !strings.Contains(message, " 18446744073709551615,") {
				t.Errorf("%s %s: status %d: %s", field, value, status, text)
			}
		}
	}
	for _, seed := range []string{"9223372036854775808", "18446744073709551615", "-9223372036854775808", "7.0"} {
		if status, _, text := s.send("POST", "/v1/completions", `{"prompt":"x","max_tokens":1,"seed":`+
			seed+`}`); status != 200 {
			t.Errorf("seed %s: status %d: %s", seed, status, text)
		}
	}
}

// A whole number has the same answer however it is written: 40, 40.0, 4e1, 400E-1.
func TestWholeNumbers(t *testing.T) {
	s := start(t, tiny(t, "tiny-qwen3", 256), serve.Options{})
	written := func(rt *rapid.T, n int) json.RawMessage {
		text := fmt.Sprint(n)
		switch zeros := rapid.IntRange(0, 30).Draw(rt, "zeros"); rapid.IntRange(0, 3).Draw(rt, "form") {
		case 0:
			text += "." + strings.Repeat("0", zeros+1)
		case 1:
			text += strings.Repeat("0", zeros) + fmt.Sprintf("e-%d", zeros)
		case 2:
			text = fmt.Sprintf("%d.%dE%+d", n/10, n%10, 1)
		}
		return json.RawMessage(text)
	}
	cases.Check(t, 25, func(rt *rapid.T) {
		ask := func(write func(n int) json.RawMessage, n [6]int) []any {
			sampling := map[string]any{"top_k": write(n[0]), "seed": write(n[1]), "repeat_last_n": write(n[2])}
			openAI := with(sampling, "max_tokens", write(n[3]), "prompt", []any{write(n[4]), write(n[5])}, "n", write(2),
				"ignore_eos", true, "logprobs", write(2))
			ollama := map[string]any{"model": "m", "prompt": "x", "raw": true, "stream": false,
				"options": with(sampling, "num_predict", write(n[3]))}
			answer := at(s.post("/v1/completions", openAI), "choices")
			return []any{answer, s.post("/api/generate", ollama)["response"],
				s.post("/detokenize", map[string]any{"tokens": []any{write(n[4])}})["content"],
				len(s.post("/api/embed", map[string]any{"input": "abc", "dimensions": write(n[3])})["embeddings"].([]any)[0].([]any))}
		}
		var n [6]int
		for i := range n {
			n[i] = rapid.IntRange(1, 60).Draw(rt, "n")
		}
		plain := fmt.Sprint(ask(func(n int) json.RawMessage { return json.RawMessage(fmt.Sprint(n)) }, n))
		if got := fmt.Sprint(ask(func(n int) json.RawMessage { return written(rt, n) }, n)); got != plain {
			rt.Fatalf("%s, want %s", got, plain)
		}
	})
}

// The bytes of a token are those of its text, whatever characters or parts of characters it has.
func TestLogprobBytes(t *testing.T) {
	m, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, nil, serve.Options{})
	tok, wide := m.Tokenizer(), 0
	for id := range int32(tok.VocabSize()) { // 20 at a time: those that a bias makes the likeliest
		piece := []byte(tok.Piece(id))
		if tok.IsSpecial(id) || len(piece) == len([]rune(string(piece))) {
			continue
		}
		wide++
		if wide > 60 {
			break
		}
		a := s.post("/v1/chat/completions", map[string]any{"messages": []any{map[string]any{"role": "user", "content": "x"}},
			"max_tokens": 1,
			"logprobs":   true, "temperature": 0, "logit_bias": map[string]any{fmt.Sprint(id): 100}})
		want := make([]any, len(piece))
		for i, b := range piece {
			want[i] = float64(b)
		}
		if got := at(a, "choices.0.logprobs.content.0.bytes"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("token %d: bytes %v, want %v", id, got, want)
		}
	}
	if wide == 0 {
		t.Fatal("no token of the vocabulary has a character beyond ASCII")
	}
	for _, text := range []string{"é", "\U0001F600 日本", "a\u0301ß"} {
		var got []byte
		for _, p := range s.post("/tokenize", map[string]any{"content": text, "with_pieces": true})["tokens"].([]any) {
			switch piece := at(p, "piece").(type) {
			case string:
				got = append(got, piece...)
			case []any:
				for _, b := range piece {
					got = append(got, byte(b.(float64)))
				}
			}
		}
		if string(got) != text {
			t.Errorf("pieces of %q are %q", text, got)
		}
	}
}
