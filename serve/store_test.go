package serve_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/serve"
)

// withTurns serves a template that prints all of a conversation.
func withTurns(t *testing.T, o serve.Options) *server {
	return start(t, shallow(t, grove.Options{ChatTemplate: "{% if tools %}<tool_call>{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}:{{ m.reasoning_content }}:{{ m.content }}" +
		"{% for c in m.tool_calls %}|{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}]{% endfor %}[assistant:"}), o)
}

// The three ways to continue from a response are equivalent: its id, references to its items, and the items themselves.
func TestGoOn(t *testing.T) {
	t.Parallel()
	s := withTurns(t, serve.Options{})
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`)
	tools := []any{map[string]any{"type": "function", "name": "f", "parameters": schema},
		map[string]any{"type": "custom", "name": "g"}}
	for i, more := range []map[string]any{{}, {"tool_choice": "required"},
		{"tool_choice": map[string]any{"type": "custom", "name": "g"}}, {"instructions": "Be brief."}} {
		first := with(with(more, "tools", tools, "max_output_tokens", 40, "temperature", 0, "seed", i), "input",
			fmt.Sprint("question ", i))
		for _, streamed := range []bool{false, true} {
			var a map[string]any
			if streamed {
				list := s.responseEvents(first)
				a = list[len(list)-1]["response"].(map[string]any)
			} else {
				a = s.post("/v1/responses", first)
			}
			user, next := map[string]any{"role": "user", "content": first["input"]}, map[string]any{"role": "user",
				"content": "and then?"}
			byItems, byReference := []any{user}, []any{user}
			for _, item := range a["output"].([]any) {
				byItems = append(byItems, item)
				byReference = append(byReference, map[string]any{"type": "item_reference", "id": at(item, "id")})
				if text, _ := at(item, "type").(string); strings.HasSuffix(text, "_call") {
					result := map[string]any{"type": text + "_output", "call_id": at(item, "call_id"), "output": "done"}
					byItems, byReference = append(byItems, result), append(byReference, result)
				}
			}
			onlyNew := byItems[1+len(a["output"].([]any)):]
			if a["store"] != true || a["id"] == "" {
				t.Fatal(a)
			}
			var texts []string
			for _, body := range []map[string]any{
				{"input": append(byItems, next)}, {"input": append(byReference, next)},
				{"previous_response_id": a["id"], "input": append(append([]any{}, onlyNew...), next)},
			} {
				b := s.post("/v1/responses", with(body, "tools", tools, "tool_choice", "none", "temperature", 0,
					"max_output_tokens", 12, "store", false))
				texts = append(texts, fmt.Sprint(at(b, "output.0.content"), at(b, "usage.input_tokens")))
				if b["store"] != false {
					t.Error(b)
				}
			}
			// with calls, results follow all of them or each
			if len(onlyNew) == 0 && (texts[0] != texts[1] || texts[0] != texts[2]) {
				t.Errorf("%v, streamed %v: %q", more, streamed, texts)
			}
		}
	}
}

// Only its tenant can get or delete a response; one that should not be stored does not exist.
func TestStoredResponses(t *testing.T) {
	s := start(t, nil, serve.Options{Keys: []string{"k", "other"}})
	ask := func(body string) string {
		_, _, text := s.send("POST", "/v1/responses", body, "X-Api-Key", "k")
		id, _ := object(t, text)["id"].(string)
		return id
	}
	kept, lost := ask(`{"input":"x","max_output_tokens":2}`), ask(`{"input":"x","max_output_tokens":2,"store":false}`)
	for _, c := range []struct {
		method, id, key string
		status          int
	}{
		{"GET", kept, "k", 200}, {"GET", kept, "other", 404}, {"GET", lost, "k", 404}, {"GET", "resp_x", "k", 404},
		{"DELETE", kept, "other", 404}, {"DELETE", kept, "k", 200}, {"GET", kept, "k", 404}, {"DELETE", kept, "k", 404},
	} {
		status, _, text := s.send(c.method, "/v1/responses/"+c.id, "", "X-Api-Key", c.key)
		if status != c.status || status == 200 && object(t, text)["id"] != kept {
			t.Errorf("%s %s: status %d, %s; want %d", c.method, c.id, status, text, c.status)
		}
	}
	next := func(id, key string) string {
		_, _, text := s.send("POST", "/v1/responses", `{"input":"y","previous_response_id":"`+id+`"}`, "X-Api-Key", key)
		param, _ := at(object(t, text), "error.param").(string)
		return param
	}
	again := ask(`{"input":"x","max_output_tokens":2}`)
	if next(again, "other") == "" || next(lost, "k") == "" || next(again, "k") != "" {
		t.Error("a response is another tenant's, or not kept")
	}
	none := start(t, nil, serve.Options{NoStore: true})
	a := none.post("/v1/responses", map[string]any{"input": "x", "max_output_tokens": 2})
	for _, body := range []string{`{"input":"y","previous_response_id":"` + a["id"].(string) + `"}`,
		`{"input":[{"type":"item_reference","id":"` + at(a, "output.0.id").(string) + `"}]}`} {
		if status, _, text := none.send("POST", "/v1/responses", body); a["store"] != false || status != 400 ||
			!strings.Contains(text, "stores no responses") {
			t.Errorf("without a store: status %d, %s", status, text)
		}
	}
}

// Keys whose hashes begin alike are separate tenants; the log has only the beginning.
func TestKeysThatBeginAlike(t *testing.T) {
	s := start(t, nil, serve.Options{Keys: []string{"sk-user-92733", "sk-user-121644"}})
	_, _, text := s.send("POST", "/v1/responses", `{"input":"x","max_output_tokens":2}`, "X-Api-Key", "sk-user-92733")
	id, _ := object(t, text)["id"].(string)
	for key, want := range map[string]int{"sk-user-92733": 200, "sk-user-121644": 404} {
		if status, _, text := s.send("GET", "/v1/responses/"+id, "", "X-Api-Key", key); status != want {
			t.Errorf("%s: status %d, want %d: %s", key, status, want, text)
		}
	}
	if log := s.log.String(); strings.Count(log, "tenant=key-b0ee66cd ") != 3 {
		t.Error(log)
	}
}

// The store stays within its bounds, and the most recently used stay longest.
func TestStoreIsBounded(t *testing.T) {
	s := start(t, nil, serve.Options{Limits: serve.Limits{Stored: 3}})
	ids := []string{}
	for i := range 8 {
		a := s.post("/v1/responses", map[string]any{"input": "x", "max_output_tokens": 2})
		ids = append(ids, a["id"].(string))
		if status, _, _ := s.send("GET", "/v1/responses/"+ids[0], ""); status != 200 {
			t.Fatalf("the response that is asked for all the time is gone after %d", i)
		}
	}
	kept := 0
	for _, id := range ids {
		if status, _, _ := s.send("GET", "/v1/responses/"+id, ""); status == 200 {
			kept++
		}
	}
	if kept != 3 {
		t.Errorf("%d of %d are kept, want 3", kept, len(ids))
	}
}

// An earlier call is read whatever its arguments are.
func TestArgumentsOfCalls(t *testing.T) {
	s := withTurns(t, serve.Options{})
	for _, text := range []string{"", " ", "null", "7", "no JSON", `"text"`, "[1]", `{"a":1}}`, `{"a": "cut sh`} {
		s.post("/v1/responses", map[string]any{"max_output_tokens": 1, "input": []any{
			map[string]any{"type": "function_call", "call_id": "c", "name": "f", "arguments": text},
			map[string]any{"type": "function_call_output", "call_id": "c", "output": "r"}}})
	}
}

// What OpenAI's clients send with a conversation is accepted: refusals, truncation, reasoning with a summary.
func TestResponseItems(t *testing.T) {
	s := withTurns(t, serve.Options{})
	a := s.post("/v1/responses", map[string]any{"truncation": "auto", "max_output_tokens": 2, "input": []any{
		map[string]any{"role": "user", "content": "x"},
		map[string]any{"type": "reasoning", "id": "rs_1",
			"summary": []any{map[string]any{"type": "summary_text", "text": "s"}}, "encrypted_content": nil},
		map[string]any{"type": "message", "role": "assistant",
			"content": []any{map[string]any{"type": "refusal", "refusal": "I will not."}}},
		map[string]any{"role": "user", "content": "y"}}})
	if a["truncation"] != "auto" {
		t.Error(a)
	}
	b := s.post("/tokenize", map[string]any{"messages": []any{map[string]any{"role": "assistant",
		"content": []any{map[string]any{"type": "refusal", "refusal": "I will not."}}}}})
	if text := s.post("/detokenize", map[string]any{"tokens": b["tokens"]})["content"].(string); !strings.Contains(
		text, "I will not.") {
		t.Errorf("the prompt is %q", text)
	}
}

// With truncation auto the oldest turns go until the conversation fits: the system's text and the last turn stay.
func TestTruncation(t *testing.T) {
	s := start(t, tinyWith(t, "tiny-qwen3", 200, grove.Options{Threads: 1, ChatTemplate: turns}), serve.Options{})
	for n := 1; n < 12; n++ {
		input := []any{map[string]any{"role": "system", "content": "S"}}
		for i := range n {
			input = append(input, map[string]any{"role": "user", "content": fmt.Sprint("q", i, strings.Repeat(" abc", 9))},
				map[string]any{"role": "assistant", "content": "a"})
		}
		input = append(input, map[string]any{"role": "user", "content": "the last one"})
		body := map[string]any{"input": input, "truncation": "auto", "max_output_tokens": 1}
		if used := at(s.post("/v1/responses", body), "usage.input_tokens").(float64); used >= 200 || n > 8 && used < 120 {
			t.Errorf("%d turns: %v tokens", n, used)
		}
	}
	long := map[string]any{"role": "user", "content": strings.Repeat("abc ", 300)}
	text, _ := json.Marshal(map[string]any{"input": []any{long}, "truncation": "auto"})
	if status, _, answer := s.send("POST", "/v1/responses", string(text)); status != 400 ||
		!strings.Contains(answer, "context_length_exceeded") {
		t.Errorf("status %d, %s", status, answer)
	}
}

// Reasoning that is asked for as a summary is one, in items and in events, and goes back once.
func TestReasoningSummary(t *testing.T) {
	t.Parallel()
	s := start(t, shallow(t, grove.Options{ChatTemplate: dialectReasoning}), serve.Options{})
	for _, summary := range []any{nil, "auto", "detailed"} {
		body := map[string]any{"input": "x", "max_output_tokens": 60, "reasoning_budget": 8, "temperature": 0,
			"reasoning": map[string]any{"effort": "low", "summary": summary}}
		want, other := "reasoning_text", "reasoning_summary_text"
		if summary != nil {
			want, other = other, want
		}
		text, parts := "", 0
		for _, e := range s.responseEvents(body) {
			switch e["type"] {
			case "response." + want + ".delta":
				text += e["delta"].(string)
			case "response." + want + ".done":
				if e["text"] != text {
					t.Errorf("done with %q, streamed %q", e["text"], text)
				}
			case "response.reasoning_summary_part.added", "response.reasoning_summary_part.done":
				parts++
			case "response." + other + ".delta":
				t.Errorf("summary %v: %v", summary, e)
			}
		}
		item := at(s.post("/v1/responses", body), "output.0")
		field := map[bool]string{true: "content", false: "summary"}[summary == nil]
		if at(item, "type") != "reasoning" || text == "" || at(item, field+".0.text") != text ||
			(parts == 2) != (summary != nil) {
			t.Errorf("summary %v: streamed %q with %d events of parts, whole %v", summary, text, parts, item)
		}
	}
}

// A response's input can be listed, in pages and in both orders, with all that it continues from. The items, and
// references to them, make the same prompt.
func TestInputItems(t *testing.T) {
	s := withTurns(t, serve.Options{Keys: []string{"k", "other"}})
	ask := func(fields map[string]any) (answer map[string]any) {
		body := jsonOf(with(with(fields, "max_output_tokens", 4, "temperature", 0), "tools", []any{map[string]any{
			"type": "function", "name": "f"}}, "tool_choice", "none"))
		status, _, text := s.send("POST", "/v1/responses", body, "X-Api-Key", "k")
		if status != 200 {
			t.Fatalf("%s: status %d, %s", body, status, text)
		}
		return object(t, text)
	}
	list := func(id any, query string) map[string]any {
		status, _, text := s.send("GET", fmt.Sprintf("/v1/responses/%s/input_items?%s", id, query), "", "X-Api-Key", "k")
		if status != 200 {
			t.Fatalf("%s: status %d, %s", query, status, text)
		}
		return object(t, text)
	}
	first := ask(map[string]any{"input": "first"})
	second := ask(map[string]any{"previous_response_id": first["id"], "input": []any{
		map[string]any{"role": "user", "content": "second <a>"},
		map[string]any{"role": "assistant", "content": "yes"},
		map[string]any{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
		map[string]any{"type": "function_call_output", "call_id": "c", "output": "done"},
		map[string]any{"role": "developer", "content": []any{map[string]any{"type": "input_text", "text": "d"}}}}})
	repeated := ask(map[string]any{"input": []any{map[string]any{"type": "item_reference", "id": at(first, "output.0.id")},
		map[string]any{"type": "item_reference", "id": at(first, "output.0.id")}}})
	if page := list(repeated["id"], ""); len(page["data"].([]any)) != 1 || page["first_id"] != at(first, "output.0.id") {
		t.Error(page)
	}
	third := ask(map[string]any{"previous_response_id": second["id"], "input": []any{map[string]any{"id": "mine",
		"type": "message", "role": "user", "content": "third"}}})
	all := list(third["id"], "order=asc&limit=100")["data"].([]any)
	kinds := ""
	references := []any{}
	for _, item := range all {
		kinds += fmt.Sprint(at(item, "type"), " ", at(item, "role"), " ", at(item, "status"), ", ")
		id := at(item, "id")
		if id == "mine" { // this server does not know items by ids that clients gave them
			references = append(references, item)
		} else {
			references = append(references, map[string]any{"type": "item_reference", "id": id})
		}
	}
	const message = "message user completed, "
	end := fmt.Sprint(at(first, "output.0.status"))
	want := message + "message assistant " + end + ", " + message + "message assistant completed, " +
		"function_call <nil> completed, function_call_output <nil> completed, message developer completed, message assistant " + end + ", " + message
	if kinds != want || at(all[0], "content.0.text") != "first" || at(all[2], "content.0.text") != "second <a>" {
		t.Errorf("got %s, want %s: %v", kinds, want, all)
	}
	for _, input := range []any{all, references} {
		a := ask(map[string]any{"input": input})
		if jsonOf(at(a, "output.0.content")) != jsonOf(at(third, "output.0.content")) ||
			at(a, "usage.input_tokens") != at(third, "usage.input_tokens") {
			t.Errorf("%v: %v, want %v", input, a, third)
		}
	}
	for n := 1; n <= len(all)+1; n++ {
		for _, order := range []string{"asc", "desc", ""} {
			var pages []any
			after := ""
			for more := true; more; {
				page := list(third["id"], fmt.Sprintf("limit=%d&order=%s&after=%s", n, order, after))
				data := page["data"].([]any)
				pages = append(pages, data...)
				more = page["has_more"] == true
				if page["object"] != "list" || page["first_id"] != at(data[0], "id") ||
					page["last_id"] != at(data[len(data)-1], "id") || more && len(data) != n {
					t.Fatal(page)
				}
				after = page["last_id"].(string)
			}
			if order != "asc" {
				slices.Reverse(pages)
			}
			if jsonOf(pages) != jsonOf(all) {
				t.Errorf("order %q, by %d: %v", order, n, pages)
			}
		}
	}
	last := list(third["id"], "after="+at(all[0], "id").(string))
	if jsonOf(last["data"]) != "[]" || last["has_more"] != false {
		t.Error(last)
	}
	for query, param := range map[string]string{"limit=0": "limit", "limit=101": "limit", "limit=x": "limit",
		"order=up": "order", "after=nothing": "after"} {
		path := fmt.Sprintf("/v1/responses/%s/input_items?%s", third["id"], query)
		status, _, text := s.send("GET", path, "", "X-Api-Key", "k")
		if status != 400 || at(object(t, text), "error.param") != param {
			t.Errorf("%s: status %d, %s", query, status, text)
		}
	}
	get := func(id any, key string) int {
		status, _, _ := s.send("GET", fmt.Sprintf("/v1/responses/%s/input_items", id), "", "X-Api-Key", key)
		return status
	}
	if get(third["id"], "other") != 404 || get("resp_x", "k") != 404 {
		t.Error("another key, or another response, is found")
	}
	if status, _, _ := s.send("DELETE", "/v1/responses/"+first["id"].(string), "", "X-Api-Key", "k"); status != 200 ||
		get(third["id"], "k") != 404 {
		t.Error("items are listed without those of a response that was deleted")
	}
	status, _, text := s.send("POST", "/v1/responses", `{"input":[{"type":"item_reference","id":""}]}`, "X-Api-Key", "k")
	if status != 400 {
		t.Errorf("a reference to nothing: status %d, %s", status, text)
	}
}
