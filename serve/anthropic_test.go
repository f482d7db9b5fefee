package serve_test

import (
	"strings"
	"testing"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/serve"
)

// The counted tokens are those that an answer reports. An answer says what ended it, and a stream
// that waits has pings.
func TestAnthropic(t *testing.T) {
	t.Parallel()
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}),
		serve.Options{Limits: serve.Limits{Ping: time.Microsecond}})
	body := map[string]any{"model": "m", "max_tokens": 40, "temperature": 0, "system": "Be brief.",
		"messages": []any{map[string]any{"role": "user", "content": "func main() {"}},
		"tools":    []any{map[string]any{"name": "f", "input_schema": map[string]any{"type": "object"}}}}
	count := s.post("/v1/messages/count_tokens", body)
	for range 2 { // the second time they are cached
		a := s.post("/v1/messages", body)
		if n := at(a, "usage.input_tokens").(float64) + at(a,
			"usage.cache_read_input_tokens").(float64); n != count["input_tokens"] || n == 0 {
			t.Errorf("counted %v, usage %v", count, a["usage"])
		}
	}
	text := at(s.post("/v1/messages", body), "content.0.text").(string)
	end := text[len(text)/2:]
	before, _, _ := strings.Cut(text, end)
	a := s.post("/v1/messages", with(body, "stop_sequences", []string{end}))
	if a["stop_reason"] != "stop_sequence" || a["stop_sequence"] != end || at(a, "content.0.text") != before {
		t.Errorf("%v; want it to end before %q", a, end)
	}
	status, header, text := s.send("POST", "/v1/messages",
		`{"messages":[{"role":"user","content":"x"}],"max_tokens":500,"ignore_eos":true,"stream":true}`)
	if status != 200 || header.Get("Content-Type") != "text/event-stream" || header.Get("Request-Id") == "" ||
		!strings.Contains(text, "event: ping\ndata: {\"type\":\"ping\"}\n\n") || strings.Contains(text, "DONE") {
		t.Errorf("status %d, %v: %s", status, header, text)
	}
}

// A turn of several parts is read as the messages that it stands for, wherever tool results are among them.
func TestAnthropicParts(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	count := func(messages []any) any {
		return s.post("/v1/messages/count_tokens", map[string]any{"max_tokens": 1, "messages": messages})["input_tokens"]
	}
	for order := range 1 << 5 {
		var parts, messages []any
		for i := range 5 {
			part := map[string]any{"type": "tool_result", "tool_use_id": "x", "content": strings.Repeat("result ", i+1)}
			if order>>i&1 == 1 {
				part = map[string]any{"type": "text", "text": strings.Repeat("text ", 3*i+1)}
			}
			if last := len(messages) - 1; i > 0 && order>>i&1 == 1 && order>>(i-1)&1 == 1 { // the text continues
				said := messages[last].(map[string]any)["content"].([]any)
				messages[last].(map[string]any)["content"] = append(said, part)
			} else {
				messages = append(messages, map[string]any{"role": "user", "content": []any{part}})
			}
			parts = append(parts, part)
		}
		if one, apart := count([]any{map[string]any{"role": "user", "content": parts}}), count(messages); one != apart {
			t.Errorf("%v: %v tokens, as messages %v", parts, one, apart)
		}
	}
}

// Documents of text and search results are text in tags, in the user's turn and in results of tools.
func TestAnthropicDocuments(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	ask := func(content any) (usage any, warning string) {
		body := jsonOf(map[string]any{"max_tokens": 1, "seed": 1, "messages": []any{map[string]any{"role": "user",
			"content": content}}})
		status, header, text := s.send("POST", "/v1/messages", body)
		if status != 200 {
			t.Fatalf("%s: status %d: %s", body, status, text)
		}
		return object(t, text)["usage"], header.Get("X-Grove-Warning")
	}
	block := func(text string) map[string]any { return map[string]any{"type": "text", "text": text} }
	plain := map[string]any{"type": "text", "media_type": "text/plain", "data": "Grass is green."}
	for want, in := range map[string]map[string]any{
		"<document>\nGrass is green.\n</document>": {"type": "document", "source": plain, "title": nil},
		"<document>\n<title>Plants</title>\n<context>A draft.</context>\nGrass is green.\n</document>": {"type": "document",
			"source": plain, "title": "Plants", "context": "A draft.", "cache_control": map[string]any{"type": "ephemeral"}},
		"<document>\n<title>Sky</title>\nIt is blue.\nOr grey.\n</document>": {"type": "document", "title": "Sky",
			"source": map[string]any{"type": "content", "content": []any{block("It is blue."), block("Or grey.")}}},
		"<document>\nIt is blue.\n</document>": {"type": "document",
			"source": map[string]any{"type": "content", "content": "It is blue."}, "citations": map[string]any{"enabled": false}},
		"<search_result>\n<title>Snow</title>\n<source>https://a.b/c</source>\nIt is white.\n</search_result>": {
			"type": "search_result", "title": "Snow", "source": "https://a.b/c", "content": []any{block("It is white.")},
			"citations": map[string]any{"enabled": true}},
	} {
		for _, in := range []map[string]any{in, {"type": "tool_result", "tool_use_id": "x", "content": []any{in, block("So.")}}} {
			like := block(want)
			if in["type"] == "tool_result" {
				like = with(in, "content", want+"\nSo.")
			}
			ask([]any{like, block("Which colour?")})
			text, _ := ask([]any{like, block("Which colour?")})
			got, warning := ask([]any{in, block("Which colour?")})
			if jsonOf(got) != jsonOf(text) { // it counts cached tokens: the prompts are the same
				t.Errorf("%v: %v, as text %v", in, got, text)
			}
			if cites := strings.Contains(jsonOf(in), `"enabled":true`); cites != strings.Contains(warning, "citations") {
				t.Errorf("%v: warning %q", in, warning)
			}
		}
	}
}

// A block of compaction is a summary of all before it. Requests to shorten a conversation get a warning.
func TestAnthropicCompaction(t *testing.T) {
	s := start(t, withHeads(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	count := func(messages string) (tokens any, warnings []string) {
		status, header, text := s.send("POST", "/v1/messages/count_tokens", `{"system":"Be brief.","messages":[`+messages+`]}`)
		if status != 200 {
			t.Fatalf("%s: status %d, %s", messages, status, text)
		}
		return object(t, text)["input_tokens"], header.Values("X-Grove-Warning")
	}
	const next = `,{"role":"user","content":"next"}`
	const before = `{"role":"user","content":"a question"},{"role":"assistant","content":[{"type":"text","text":"before"},`
	for got, want := range map[string]string{
		before + `{"type":"compaction","content":"It was short."},{"type":"text","text":"So."}]}` + next: `{"role":"user",` +
			`"content":"<summary>\nIt was short.\n</summary>"},{"role":"assistant","content":"So."}` + next,
		before + `{"type":"compaction","content":"It was short.","encrypted_content":"x"}]}` + next: `{"role":"user",` +
			`"content":"<summary>\nIt was short.\n</summary>"}` + next,
		before + `{"type":"compaction","content":null},{"type":"text","text":"So."}]}` + next: before +
			`{"type":"text","text":"So."}]}` + next,
	} {
		a, _ := count(got)
		b, _ := count(want)
		if a != b {
			t.Errorf("%s: %v tokens, want %v", got, a, b)
		}
	}
	for edits, want := range map[string]string{
		`"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}`: "",
		`"context_management":{"edits":[{"type":"clear_thinking_20251015"},{"type":"compact_20260112"}]}`: "context_management." +
			"edits[1].type: ",
		`"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}`:  "context_management.edits[0].type: ",
		`"context_management":[{"type":"compaction","compact_threshold":1000}]`: "context_management[0].type: ",
		`"context_management":null`: "",
	} {
		path := "/v1/messages"
		body := `{"max_tokens":1,"messages":[{"role":"user","content":"x"}],` + edits + `}`
		if strings.Contains(edits, ":[{") && !strings.Contains(edits, "edits") {
			path = "/v1/responses"
			body = `{"max_output_tokens":1,"input":"x",` + edits + `}`
		}
		status, header, text := s.send("POST", path, body)
		got := strings.Join(header.Values("X-Grove-Warning"), "|")
		if status != 200 || !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: status %d, warnings %q, want %q: %s", edits, status, got, want, text)
		}
	}
}

// Errors have Anthropic's form, and name the field that cannot be honoured.
func TestAnthropicErrors(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}),
		serve.Options{Keys: []string{"k"}})
	const hello = `{"max_tokens":3,"messages":[{"role":"user","content":"x"}]`
	for body, want := range map[string]string{
		`{`:                                     "invalid_request_error|JSON",
		`{"max_tokens":3}`:                      "invalid_request_error|messages: the field is required",
		hello + `,"n":2}`:                       "invalid_request_error|n: ",
		hello + `,"thinking":{"type":"often"}}`: "invalid_request_error|thinking.type: ",
		hello + `,"thinking":{"type":"enabled","budget_tokens":"x"}}`:                "invalid_request_error|thinking.budget_tokens: ",
		hello + `,"tools":[{"name":"a b"}]}`:                                         "invalid_request_error|tools[0].name: ",
		hello + `,"tool_choice":{"type":"some"}}`:                                    "invalid_request_error|tool_choice.type: ",
		hello + `,"tool_choice":{"type":"tool","name":"g"},"tools":[{"name":"f"}]}`:  "invalid_request_error|tool_choice.name: ",
		hello + `,"output_config":{"format":{"type":"xml"}}}`:                        "invalid_request_error|output_config.format.type: ",
		hello + `,"output_format":{"type":"xml"}}`:                                   "invalid_request_error|output_format.type: ",
		`{"max_tokens":3,"messages":[{"role":"assisstant","content":"x"}]}`:          "invalid_request_error|messages[0].role: ",
		hello + `,"mcp_servers":[{"url":"x"}]}`:                                      "invalid_request_error|mcp_servers: ",
		`{"max_tokens":3,"messages":[{"role":"user","content":[{"type":"image"}]}]}`: "invalid_request_error|messages[0].content[0].type: ",
		`{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","data":"JVBERi0="}}]}]}`: "invalid_request_error|" +
			`messages[0].content[0].source.type: "base64": this server reads text only`,
		documentBody(`"source":{"data":"JVBERi0="}`): "invalid_request_error|" +
			`messages[0].content[0].content[0].source.type: "": want text or content`,
		documentBody(`"title":"x"`): "invalid_request_error|messages[0].content[0].content[0].source: the field is required",
	} {
		status, header, text := s.send("POST", "/v1/messages", body, "X-Api-Key", "k")
		kind, message, _ := strings.Cut(want, "|")
		a := object(t, text)
		if status != 400 || a["type"] != "error" || at(a, "error.type") != kind ||
			!strings.Contains(at(a, "error.message").(string), message) ||
			a["request_id"] != header.Get("Request-Id") {
			t.Errorf("%.100s: status %d, %s; want %s", body, status, text, want)
		}
	}
	if _, _, text := s.send("POST", "/v1/messages", hello+"}"); at(object(t, text),
		"error.type") != "authentication_error" {
		t.Errorf("without a key: %s", text)
	}
	if _, _, text := s.send("POST", "/v1/messages/x", "", "X-Api-Key", "k"); at(object(t, text),
		"error.type") != "not_found_error" {
		t.Error(text)
	}
}

// documentBody is a body with a document, which has some fields, in a tool's result.
func documentBody(fields string) string {
	return `{"max_tokens":3,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[` +
		`{"type":"document",` + fields + `}]}]}]}`
}

// Models have Anthropic's form for its clients, which say their version, and OpenAI's for others.
func TestAnthropicModels(t *testing.T) {
	f := newShelf(t, 2)
	s := startMany(t, serve.Options{}, f.sources(1, 1))
	s.post("/api/show", map[string]any{"model": "m1"}) // loads it
	get := func(path string, headers ...string) (int, map[string]any) {
		status, _, text := s.send("GET", path, "", headers...)
		return status, object(t, text)
	}
	_, list := get("/v1/models", "anthropic-version", "2023-06-01")
	if jsonOf(list["first_id"]) != `"m0"` || jsonOf(list["last_id"]) != `"m1"` || list["has_more"] != false ||
		list["object"] != nil {
		t.Errorf("the list is %v", list)
	}
	_, one := get("/v1/models/m1", "anthropic-version", "2023-06-01")
	if loaded := at(list, "data.1"); jsonOf(one) != jsonOf(loaded) {
		t.Errorf("one model is %v, and %v in the list", one, loaded)
	}
	if one["type"] != "model" || one["display_name"] != "m1" || one["max_input_tokens"] != 256.0 ||
		at(list, "data.0.max_input_tokens") != nil {
		t.Errorf("the models are %v", list)
	}
	if _, err := time.Parse(time.RFC3339, one["created_at"].(string)); err != nil {
		t.Error(err)
	}
	status, missing := get("/v1/models/m9", "anthropic-version", "2023-06-01")
	if status != 404 || at(missing, "error.type") != "not_found_error" {
		t.Errorf("a model that is not there: status %d, %v", status, missing)
	}
	if _, other := get("/v1/models/m1"); other["object"] != "model" || other["display_name"] != nil {
		t.Errorf("without a version, a model is %v", other)
	}
}
