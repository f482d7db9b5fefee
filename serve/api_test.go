package serve_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove"
	layouts "github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/serve"
)

// Streamed and whole answers have the text of the library, choice by choice, whatever is asked for.
func TestSameText(t *testing.T) {
	m := tiny(t, "tiny-qwen3", 256)
	s := start(t, m, serve.Options{})
	cases.Check(t, 25, func(rt *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(rt, "n")
		prompts := rapid.SliceOfN(rapid.StringMatching(`[a-d ]{1,12}`), 1, 3).Draw(rt, "prompts")
		seed := rapid.IntRange(0, 1<<30).Draw(rt, "seed")
		r := grove.Request{
			MaxTokens: rapid.IntRange(1, 20).Draw(rt, "max"), IgnoreEnd: rapid.Bool().Draw(rt, "ignore"),
			Sampling: grove.Sampling{
				Temperature:     rapid.SampledFrom([]float32{0, 0.5, 1}).Draw(rt, "temperature"),
				TopP:            rapid.SampledFrom([]float32{0.5, 1}).Draw(rt, "top_p"),
				TopK:            rapid.SampledFrom([]int{0, 5}).Draw(rt, "top_k"),
				MinP:            rapid.SampledFrom([]float32{0, 0.1}).Draw(rt, "min_p"),
				PresencePenalty: rapid.SampledFrom([]float32{0, 1}).Draw(rt, "presence"),
				LogitBias:       map[int32]float32{7: 5},
			},
		}
		body := map[string]any{"model": "any", "prompt": prompts, "n": n, "seed": seed, "max_tokens": r.MaxTokens,
			"ignore_eos":  r.IgnoreEnd,
			"temperature": r.Sampling.Temperature, "top_p": r.Sampling.TopP, "top_k": r.Sampling.TopK, "min_p": r.Sampling.MinP,
			"presence_penalty": r.Sampling.PresencePenalty, "logit_bias": map[string]any{"7": 5},
			"drafter": rapid.SampledFrom([]string{"plain", "lookup", "auto"}).Draw(rt,
				"drafter"), "budget": rapid.IntRange(2, 30).Draw(rt, "budget")}
		window := rapid.Bool().Draw(rt, "window") // otherwise the presence penalty looks only at the answer
		if window {
			body["repeat_last_n"] = -1
		}
		if rapid.Bool().Draw(rt, "stops") {
			r.Stop = []string{"e", "zz"}
			body["stop"] = r.Stop
		}
		echo := rapid.Bool().Draw(rt, "echo")
		body["echo"] = echo
		whole := s.post("/v1/completions", body)
		pieces := assemble(t, s.events("/v1/completions", body), n*len(prompts))
		tokens := 0
		for i, prompt := range prompts {
			for j := range n {
				r.Sampling.Seed = uint64(seed + j)
				if window {
					r.Sampling.PenaltyLast = math.MaxInt
				}
				want, err := grove.Collect(m.Generate(ctx, prompt, r))
				if err != nil {
					rt.Fatal(err)
				}
				tokens += len(want.Tokens)
				text, k := want.Text, i*n+j
				if echo {
					text = prompt + text
				}
				finish := map[grove.Finish]string{grove.FinishEnd: "stop", grove.FinishStop: "stop"}[want.Finish]
				if finish == "" {
					finish = "length"
				}
				one := at(whole, fmt.Sprintf("choices.%d", k))
				if at(one, "text") != text || at(one, "index") != float64(k) || at(one, "finish_reason") != finish {
					rt.Fatalf("choice %d is %v, want %q, %s", k, one, text, finish)
				}
				if pieces[k].text != text || pieces[k].finish != finish {
					rt.Fatalf("streamed choice %d is %+v, want %q, %s", k, pieces[k], text, finish)
				}
			}
		}
		if at(whole, "usage.completion_tokens") != float64(tokens) {
			rt.Fatalf("usage %v, want %d tokens", whole["usage"], tokens)
		}
	})
}

// A chat is answered as the library answers it.
func TestChat(t *testing.T) {
	s := start(t, nil, serve.Options{})
	m, _ := embedded()
	question := "James has 50 pencils. James gives half of them to a friend. How many pencils does James have now?"
	want, err := grove.Collect(m.Chat(ctx, []grove.Message{{Role: "system", Content: "Count."},
		{Role: "user", Content: question}}, grove.Request{MaxTokens: 60}))
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []any{question, []any{
		map[string]any{"type": "text", "text": question[:20]}, map[string]any{"type": "text", "text": question[20:]},
	}} {
		body := map[string]any{"temperature": 0, "max_completion_tokens": 60,
			"stream_options": map[string]any{"include_usage": true}, "messages": []any{
				map[string]any{"role": "developer", "content": "Count."}, map[string]any{"role": "user",
					"content": content},
			}}
		whole := s.post("/v1/chat/completions", body)
		if at(whole, "choices.0.message.content") != want.Text ||
			at(whole, "choices.0.message.role") != "assistant" || whole["object"] != "chat.completion" {
			t.Errorf("answer %v, want %q", whole, want.Text)
		}
		events := s.events("/v1/chat/completions", body)
		c := assemble(t, events, 1)[0]
		if c.text != want.Text || c.role != "assistant" || c.finish != "stop" {
			t.Errorf("streamed %+v, want %q", c, want.Text)
		}
		for i, e := range events {
			usage, there := e["usage"]
			last := i == len(events)-1
			if e["object"] != "chat.completion.chunk" || e["id"] != events[0]["id"] || !there ||
				(usage != nil) != last || last != (len(e["choices"].([]any)) == 0) {
				t.Errorf("event %d of %d: %v", i, len(events), e)
			}
		}
		last := events[len(events)-1]
		if !reflect.DeepEqual(at(last, "usage.prompt_tokens"), at(whole, "usage.prompt_tokens")) ||
			!reflect.DeepEqual(at(last, "usage.completion_tokens"), at(whole, "usage.completion_tokens")) {
			t.Errorf("usage %v when streamed, %v whole", last["usage"], whole["usage"])
		}
		body["stream_options"] = map[string]any{"include_usage": true, "continuous_usage_stats": true}
		before := 0.0
		events = s.events("/v1/chat/completions", body)
		for i, e := range events {
			tokens, _ := at(e, "usage.completion_tokens").(float64)
			if tokens < before || i > 2 && tokens < 1 || at(e, "usage.prompt_tokens") != at(whole, "usage.prompt_tokens") ||
				at(e, "usage.total_tokens") != tokens+at(whole, "usage.prompt_tokens").(float64) {
				t.Errorf("usage so far is %v, after %v tokens before it", e["usage"], before)
			}
			before = tokens
		}
		if before != at(whole, "usage.completion_tokens") {
			t.Errorf("usage ends at %v tokens: %v", before, whole["usage"])
		}
		if at(last, "timings.predicted_n") != float64(len(want.Tokens)) ||
			at(last, "metrics.speculative_decoding.acceptance_histogram") == nil {
			t.Errorf("the last event has timings %v, metrics %v", last["timings"], last["metrics"])
		}
	}
}

// The figures of speculation agree with each other, and plain decoding has none.
func TestSpeculationFigures(t *testing.T) {
	s := start(t, nil, serve.Options{})
	body := map[string]any{"prompt": "// NewReader returns a new Reader.\nfunc NewReader(r io.Reader) *Reader {\n\treturn NewReader(", "max_tokens": 60,
		"temperature": 0, "drafter": "eagle3"}
	a := s.post("/v1/completions", body)
	m := at(a, "metrics.speculative_decoding")
	sum, rounds := 0.0, 0.0
	for i, n := range at(m, "acceptance_histogram").([]any) {
		sum += float64(i) * n.(float64)
		rounds += n.(float64)
		if n.(float64) < 0 {
			t.Errorf("histogram %v", m)
		}
	}
	mean := 1 + sum/max(rounds, 1) // the controller may find that no draft pays
	if sum != at(m, "num_accepted_tokens") || rounds != at(m, "num_spec_steps") ||
		at(m, "mean_acceptance_length") != mean || at(a, "timings.draft_n_accepted") != sum {
		t.Errorf("metrics %v, timings %v", m, a["timings"])
	}
	plain := s.post("/v1/completions", with(body, "speculate", false))
	if plain["metrics"] != nil || at(plain, "timings.draft_n") != 0.0 ||
		!reflect.DeepEqual(plain["choices"], a["choices"]) {
		t.Errorf("without speculation: %v, with it: %v", plain, a)
	}
}

// A prediction changes no text; its tokens are counted as accepted if they are in the answer.
func TestPrediction(t *testing.T) {
	s := start(t, nil, serve.Options{})
	body := map[string]any{"prompt": "func main() {", "max_tokens": 40, "temperature": 0}
	want := s.post("/v1/completions", body)
	text := at(want, "choices.0.text").(string)
	for _, c := range []struct {
		content any
		some    bool
	}{{text, true}, {[]any{map[string]any{"type": "text", "text": text}}, true}, {"ÄÖÜ", false},
		{strings.Repeat("ÄÖÜ ", 20000), false}} {
		a := s.post("/v1/completions", with(body, "prediction",
			map[string]any{"type": "content", "content": c.content}))
		if at(a, "choices.0.text") != text {
			t.Errorf("with the prediction %.99q the text is %q, want %q", c.content, at(a, "choices.0.text"), text)
		}
		details := at(a, "usage.completion_tokens_details")
		accepted, rejected := at(details, "accepted_prediction_tokens").(float64), at(details,
			"rejected_prediction_tokens").(float64)
		// the text's tokens are not all its completion's
		if accepted+rejected == 0 || c.some != (accepted > rejected) || !c.some && accepted > 0 {
			t.Errorf("the prediction %.99q: %v", c.content, details)
		}
	}
}

// Tokens of a text become the text again, under the names of both servers.
func TestTokenize(t *testing.T) {
	s := start(t, nil, serve.Options{})
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.String().Draw(rt, "text")
		a := s.post("/tokenize", map[string]any{"content": text, "parse_special": false, "with_pieces": true})
		var tokens []any
		for _, p := range a["tokens"].([]any) {
			tokens = append(tokens, at(p, "id"))
		}
		if tokens == nil {
			tokens = []any{}
		}
		back := s.post("/detokenize", map[string]any{"tokens": tokens})
		if back["content"] != text || back["prompt"] != text || a["count"] != float64(len(tokens)) {
			rt.Fatalf("%q became %v, and %v again", text, a, back)
		}
	})
	m, _ := embedded()
	want, err := m.Tokenize("one two")
	if err != nil {
		t.Fatal(err)
	}
	if a := s.post("/tokenize", map[string]any{"prompt": "one two",
		"return_token_strs": true}); fmt.Sprint(a["tokens"]) != fmt.Sprint(want) ||
		len(a["token_strs"].([]any)) != len(want) {
		t.Errorf("tokens %v, want %v", a, want)
	}
	chat := []any{map[string]any{"role": "user", "content": "one"}}
	layout, err := m.Layout()
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := layout.Encode([]grove.Message{{Role: "user", Content: "one"}}, layouts.Options{Prompt: true})
	if err != nil {
		t.Fatal(err)
	}
	a := s.post("/tokenize", map[string]any{"messages": chat})
	if fmt.Sprint(a["tokens"]) != fmt.Sprint(tokens) {
		t.Errorf("a chat's tokens are %v, want %v", a["tokens"], tokens)
	}
	// A prompt of tokens equals that of their text.
	x := s.post("/v1/completions", map[string]any{"prompt": want, "temperature": 0, "echo": true})
	y := s.post("/v1/completions", map[string]any{"prompt": "one two", "temperature": 0, "echo": true})
	z := s.post("/v1/completions", map[string]any{"prompt": [][]int32{want, want}, "temperature": 0, "echo": true})
	if !reflect.DeepEqual(x["choices"], y["choices"]) || at(z, "choices.1.text") != at(x, "choices.0.text") {
		t.Errorf("tokens gave %v, text %v, two lists %v", x["choices"], y["choices"], z["choices"])
	}
}

func TestModels(t *testing.T) {
	s := start(t, nil, serve.Options{})
	status, _, text := s.send("GET", "/v1/models", "")
	card := at(object(t, text), "data.0")
	if status != 200 || at(card, "id") != "test/model" || at(card, "object") != "model" ||
		at(card, "max_model_len") != 2048.0 {
		t.Errorf("status %d: %s", status, text)
	}
	status, _, text = s.send("GET", "/v1/models/test/model", "")
	if one := any(object(t, text)); status != 200 || !reflect.DeepEqual(one, card) {
		t.Errorf("status %d: %s", status, text)
	}
	status, _, text = s.send("GET", "/v1/models/other", "")
	if status != 404 ||
		at(object(t, text), "error.code") != "model_not_found" {
		t.Errorf("status %d: %s", status, text)
	}
}

// Log-probabilities have the shapes that OpenAI's have, and one entry for each token.
func TestLogprobs(t *testing.T) {
	m := tiny(t, "tiny-qwen3", 256)
	s := start(t, m, serve.Options{})
	prompt := "abc äö"
	tokens, err := m.Tokenize(prompt)
	if err != nil {
		t.Fatal(err)
	}
	body := map[string]any{"prompt": prompt, "max_tokens": 8, "seed": 3, "ignore_eos": true, "logprobs": 2}
	for _, c := range []struct {
		echo         bool
		max, entries int
	}{{false, 8, 8}, {true, 8, len(tokens) + 8}, {true, 0, len(tokens)}} {
		b := with(body, "echo", c.echo, "max_tokens", c.max)
		a := s.post("/v1/completions", b)
		l := at(a, "choices.0.logprobs").(map[string]any)
		for _, name := range []string{"tokens", "token_logprobs", "top_logprobs", "text_offset"} {
			if n := len(l[name].([]any)); n != c.entries {
				t.Errorf("echo %v, max_tokens %d: %d %s, want %d", c.echo, c.max, n, name, c.entries)
			}
		}
		last := -1.0
		for i := range c.entries {
			if first := c.echo && i == 0; first != (at(l["token_logprobs"].([]any)[i], "") == nil &&
				l["token_logprobs"].([]any)[i] == nil) {
				t.Errorf("log-probability %d is %v", i, l["token_logprobs"].([]any)[i])
			} else if !first {
				p := l["token_logprobs"].([]any)[i].(float64)
				top := l["top_logprobs"].([]any)[i].(map[string]any)
				if p > 0 || len(top) < 2 || len(top) > 3 || top[l["tokens"].([]any)[i].(string)] != p {
					t.Errorf("token %d: %v of %v", i, p, top)
				}
			}
			if offset := l["text_offset"].([]any)[i].(float64); offset < last ||
				offset > float64(len([]rune(at(a, "choices.0.text").(string)))) {
				t.Errorf("offsets %v", l["text_offset"])
			} else {
				last = offset
			}
		}
		if got := assemble(t, s.events("/v1/completions", b), 1)[0]; !reflect.DeepEqual(got.logprobs, l["tokens"]) {
			t.Errorf("streamed tokens %v, want %v", got.logprobs, l["tokens"])
		}
	}
	chat := map[string]any{"messages": []any{map[string]any{"role": "user", "content": "abc"}}, "max_tokens": 8,
		"seed": 3, "ignore_eos": true, "logprobs": true, "top_logprobs": 3}
	content := at(s.post("/v1/chat/completions", chat), "choices.0.logprobs.content").([]any)
	if len(content) != 8 {
		t.Fatalf("%d entries", len(content))
	}
	for _, e := range content {
		top := at(e, "top_logprobs").([]any)
		if len(top) != 3 || at(e, "bytes") == nil || at(e, "logprob").(float64) > 0 ||
			at(top[0], "logprob").(float64) < at(e, "logprob").(float64) {
			t.Errorf("entry %v", e)
		}
	}
	if got := assemble(t, s.events("/v1/chat/completions", chat), 1)[0]; !reflect.DeepEqual(got.logprobs, content) {
		t.Errorf("streamed %v, whole %v", got.logprobs, content)
	}
}
