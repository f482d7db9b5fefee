package serve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/serve"
)

// A token of stop_token_ids ends the text like the model's own: the text ends before it, whether it is drafted or not.
func TestStopTokens(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: turnsTemplate}), serve.Options{})
	body := map[string]any{"prompt": "One, two, three", "max_tokens": 24, "temperature": 1, "seed": 5,
		"return_token_ids": true, "ignore_eos": true}
	choice := at(s.post("/v1/completions", body), "choices.0")
	tokens := at(choice, "token_ids").([]any)
	last := slices.Index(tokens, tokens[12])
	body["stop_token_ids"] = []any{tokens[12], 1 << 30}
	for _, drafter := range []string{"plain", "auto", "lookup"} {
		got := at(s.post("/v1/completions", with(body, "drafter", drafter)), "choices.0")
		kept := s.post("/detokenize", map[string]any{"tokens": tokens[:last]})["content"]
		if fmt.Sprint(at(got, "token_ids")) != fmt.Sprint(tokens[:last+1]) || at(got, "finish_reason") != "stop" ||
			at(got, "text") != kept {
			t.Errorf("%s: %v, want %q of %v", drafter, got, kept, choice)
		}
	}
	for ids, say := range map[string]string{`"a"`: "stop_token_ids[0]",
		strings.Repeat("1,", 1024) + "1": "stop_token_ids: 1025 tokens"} {
		if status, _, text := s.send("POST", "/v1/completions", `{"prompt":"x","stop_token_ids":[`+ids+`]}`); status != 400 ||
			!strings.Contains(text, say) {
			t.Errorf("status %d: %s, want %q", status, text, say)
		}
	}
}

// stop_reason is the stop string or the token of stop_token_ids that ended a text, and null otherwise, streamed or not.
func TestStopReason(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: turnsTemplate}), serve.Options{})
	for path, body := range map[string]map[string]any{"/v1/completions": {"prompt": "One, two, three"},
		"/v1/chat/completions": {"messages": []any{map[string]any{"role": "user", "content": "One, two, three"}}}} {
		body = with(body, "max_tokens", 12, "seed", 5, "ignore_eos", true, "return_token_ids", true)
		tokens := at(s.post(path, body), "choices.0.token_ids").([]any)
		word := s.post("/detokenize", map[string]any{"tokens": tokens[6:8]})["content"]
		for _, c := range []struct{ field, value, want any }{{"stop", []any{word, "\x00"}, word},
			{"stop_token_ids", []any{1 << 30, tokens[5]}, tokens[5]}, {"seed", 5, nil}} {
			body := with(body, c.field.(string), c.value)
			whole, there := at(s.post(path, body), "choices.0").(map[string]any)["stop_reason"]
			var last any
			for _, e := range s.events(path, body) {
				if choice, _ := at(e, "choices.0").(map[string]any); choice["finish_reason"] != nil {
					last = choice["stop_reason"]
				}
			}
			if whole != c.want || last != c.want || !there {
				t.Errorf("%s, %v %v: stop_reason is %v (there: %v), in a stream %v: want %v", path, c.field, c.value, whole,
					there, last, c.want)
			}
		}
	}
}

// Before min_tokens neither a token of stop_token_ids nor a stop string ends the text, with any drafter.
func TestMinTokens(t *testing.T) {
	s := start(t, shallow(t, grove.Options{}), serve.Options{})
	body := map[string]any{"prompt": "One, two, three", "max_tokens": 30, "temperature": 1, "seed": 5,
		"return_token_ids": true, "ignore_eos": true}
	endless := at(s.post("/v1/completions", body), "choices.0")
	tokens, text := at(endless, "token_ids").([]any), at(endless, "text").(string)
	kept := s.post("/detokenize", map[string]any{"tokens": tokens[:20]})["content"].(string)
	for field, value := range map[string]any{"stop": text[4:7], "stop_token_ids": tokens[3:5]} {
		var plain any
		for _, drafter := range []string{"plain", "auto", "lookup"} {
			body := with(body, "drafter", drafter, field, value)
			short := at(s.post("/v1/completions", body), "choices.0")
			if n := len(at(short, "token_ids").([]any)); n > 9 || at(short, "stop_reason") == nil {
				t.Fatalf("%s: %d tokens without min_tokens", field, n)
			}
			got := at(s.post("/v1/completions", with(body, "min_tokens", 20)), "choices.0")
			list := at(got, "token_ids").([]any)
			switch {
			case field == "stop" && !strings.HasPrefix(at(got, "text").(string), kept):
				t.Errorf("%s: %q, want it to begin with %q", drafter, at(got, "text"), kept)
			case field == "stop_token_ids" && (len(list) < 20 || fmt.Sprint(list[:3]) != fmt.Sprint(tokens[:3]) ||
				slices.Contains(list[:20], tokens[3]) || slices.Contains(list[:20], tokens[4])):
				t.Errorf("%s: %v, want the beginning of %v, then others than %v", drafter, list, tokens, value)
			case plain != nil && fmt.Sprint(list) != fmt.Sprint(plain):
				t.Errorf("%s: %v, plainly %v", drafter, list, plain)
			}
			plain = list
		}
	}
	for value, say := range map[string]string{"-1": "min_tokens: -1",
		"31": "min_tokens: 31: the answer may have only 30 tokens"} {
		if status, _, text := s.send("POST", "/v1/completions",
			`{"prompt":"x","max_tokens":30,"min_tokens":`+value+`}`); status != 400 || !strings.Contains(text, say) {
			t.Errorf("status %d: %s, want %q", status, text, say)
		}
	}
}

// With min_tokens, the model's own end comes no earlier, however probable.
func TestMinTokensAndTheEnd(t *testing.T) {
	m := shallow(t, grove.Options{})
	s := start(t, m, serve.Options{})
	end := fmt.Sprint(m.Tokenizer().EOS())
	body := map[string]any{"prompt": "One, two, three.", "temperature": 1, "return_token_ids": true,
		"max_tokens": 40, "stop_token_ids": []any{m.Tokenizer().EOS()}, "logit_bias": map[string]any{end: 100}}
	for _, drafter := range []string{"plain", "auto"} {
		for _, least := range []int{0, 1, 20} {
			got := at(s.post("/v1/completions", with(body, "min_tokens", least, "drafter", drafter)), "choices.0")
			if n := len(at(got, "token_ids").([]any)); n != least+1 || at(got, "finish_reason") != "stop" ||
				at(got, "stop_reason") != nil {
				t.Errorf("%s, min_tokens %d: %d tokens: %v", drafter, least, n, got)
			}
		}
	}
	got := at(s.post("/v1/completions", with(body, "min_tokens", 9, "guided_regex", "[0-9]{3,}")), "choices.0")
	if n := len(at(got, "text").(string)); n < 9 {
		t.Errorf("with a grammar: %v", got)
	}
}
