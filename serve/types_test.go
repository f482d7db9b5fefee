package serve_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/serve"
)

// vendors are the types of answers that OpenAI's, Anthropic's and Ollama's clients have;
// internal/_conformance/npm/types.mjs writes them.
type vendors struct {
	Answers map[string]json.RawMessage
	Objects map[string]map[string]vendorField
}

type vendorField struct {
	Form     json.RawMessage
	Optional bool // it may be absent, and is not null
	Absent   bool // it may be absent, and clients do not take null
}

func readVendors(t *testing.T) *vendors {
	t.Helper()
	text, err := os.ReadFile("testdata/types.json")
	if err != nil {
		t.Fatal(err)
	}
	v := &vendors{}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// ours are the fields that grove adds to objects, as docs/serve.md says.
var ours = map[string][]string{
	"ChatCompletion": {"timings", "metrics"}, "ChatCompletionChunk": {"timings",
		"metrics"}, "Completion": {"timings", "metrics"},
	"ChatCompletion.Choice": {"stop_reason"}, "ChatCompletionChunk.Choice": {"stop_reason"},
	"CompletionChoice":      {"stop_reason"},
	"ChatCompletionMessage": {"reasoning_content", "reasoning"}, "Choice.Delta": {"reasoning_content", "reasoning"},
	"Model": {"status", "max_model_len", "meta"},
}

// sentUpstream are fields that the APIs send in ways that differ from those clients' types.
// OpenAI: null in streams of text completions and for the first token of an echo, and store in
// responses. Ollama, by its Go client: bytes of log-probabilities; context, and fields for what
// a model lacks, are left out.
var sentUpstream = map[string][]string{
	"Completion": {"usage"}, "CompletionChoice": {"finish_reason"}, "CompletionChoice.Logprobs": {"token_logprobs",
		"top_logprobs"},
	"Response": {"store"}, "Logprob": {"bytes"}, "TokenLogprob": {"bytes"}, "GenerateResponse": {"context"},
	"ShowResponse": {"system", "messages", "license"},
}

// faults lists what is wrong with a value that should have a form.
func (v *vendors) faults(value any, form json.RawMessage, path string, whole bool) []string {
	var kind string
	var parts struct {
		Literal any
		List    json.RawMessage
		Map     json.RawMessage
		Ref     string
		Any     []json.RawMessage
	}
	if json.Unmarshal(form, &kind) == nil {
		is := map[string]bool{"any": true, "null": value == nil}
		switch value.(type) {
		case string:
			is["string"] = true
		case float64:
			is["number"] = true
		case bool:
			is["boolean"] = true
		}
		if !is[kind] {
			return []string{fmt.Sprintf("%s is %v: want %s", path, value, kind)}
		}
		return nil
	}
	_ = json.Unmarshal(form, &parts)
	switch {
	case parts.Ref != "":
		in, ok := value.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %v: want %s", path, value, parts.Ref)}
		}
		return v.objectFaults(in, parts.Ref, path, whole)
	case parts.Any != nil: // the member with the fewest faults
		var least []string
		for i, member := range parts.Any {
			if found := v.faults(value, member, path, whole); i == 0 || len(found) < len(least) {
				least = found
			}
		}
		return least
	case parts.List != nil:
		list, ok := value.([]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %v: want a list", path, value)}
		}
		var all []string
		for i, value := range list {
			all = append(all, v.faults(value, parts.List, fmt.Sprintf("%s[%d]", path, i), whole)...)
		}
		return all
	case parts.Map != nil:
		in, _ := value.(map[string]any)
		var all []string
		for name, value := range in {
			all = append(all, v.faults(value, parts.Map, path+"."+name, whole)...)
		}
		return all
	case value != parts.Literal:
		// another member is meant
		return slices.Repeat([]string{fmt.Sprintf("%s is %v: want %v", path, value, parts.Literal)}, 100)
	}
	return nil
}

func (v *vendors) objectFaults(in map[string]any, name, path string, whole bool) (all []string) {
	fields := v.Objects[name]
	for field, value := range in {
		f, known := fields[field]
		switch {
		case slices.Contains(sentUpstream[name], field):
		case !known && slices.Contains(ours[name], field):
		case !known:
			all = append(all, fmt.Sprintf("%s.%s: %s has no such field", path, field, name))
		case value == nil && (f.Absent || !strings.Contains(string(f.Form), `"null"`) && string(f.Form) != `"any"`):
			all = append(all, fmt.Sprintf("%s.%s is null, and would be absent upstream", path, field))
		case value != nil || !f.Optional:
			all = append(all, v.faults(value, f.Form, path+"."+field, whole)...)
		}
	}
	for field, f := range fields {
		_, given := in[field]
		if nullable := strings.Contains(string(f.Form), `"null"`); !given && !f.Optional && !f.Absent && !nullable && whole &&
			!slices.Contains(sentUpstream[name], field) && string(f.Form) != `"any"` {
			all = append(all, fmt.Sprintf("%s.%s is missing: %s has it always", path, field, name))
		}
	}
	return all
}

// Every answer of every protocol, whole and streamed, has the fields that the vendor's own client
// knows, and no others except grove's.
func TestAnswersAreAsVendorsHaveThem(t *testing.T) {
	t.Parallel()
	v := readVendors(t)
	s := start(t, shallow(t, grove.Options{ChatTemplate: dialectReasoning + toolTemplates["hermes"]}), serve.Options{})
	checked := map[string]int{}
	check := func(kind, text string, whole bool) {
		t.Helper()
		checked[kind]++
		if v.Answers[kind] == nil {
			t.Fatalf("there is no type %s", kind)
		}
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		found := v.faults(value, v.Answers[kind], kind, whole)
		slices.Sort(found)
		for _, fault := range slices.Compact(found) {
			t.Errorf("%s\n  %.700s", fault, text)
		}
	}
	ask := func(path, body, kind, events string) {
		t.Helper()
		status, _, text := s.send("POST", path, body+`,"stream":false}`)
		if status != 200 {
			t.Fatalf("%s %s: status %d, %s", path, body, status, text)
		}
		check(kind, text, true)
		if events == "" {
			return
		}
		_, _, text = s.send("POST", path, body+`,"stream":true}`)
		for line := range strings.Lines(text) {
			data, isEvent := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			if strings.HasPrefix(path, "/api/") {
				check(events, line, false)
			} else if isEvent && data != "[DONE]" {
				check(events, data, true)
			}
		}
	}
	const chat = `{"messages":[{"role":"user","content":"x"}],"max_tokens":40,"temperature":0`
	const parameters = `{"type":"object","properties":{},"additionalProperties":false}`
	for _, more := range []string{``, `,"reasoning_budget":4`, `,"logprobs":true,"top_logprobs":2`, `,"n":2,"stop":["e"]`,
		`,"stream_options":{"include_usage":true}`,
		`,"tools":[{"type":"function","function":{"name":"f","parameters":` + parameters + `}}],"tool_choice":"required"`,
		`,"functions":[{"name":"f","parameters":` + parameters + `}],"function_call":{"name":"f"}`,
		`,"prediction":{"type":"content","content":"x"}`} {
		ask("/v1/chat/completions", chat+more, "ChatCompletion", "ChatCompletionChunk")
	}
	ask("/v1/chat/completions", chat+`,"tools":[{"type":"custom","custom":{"name":"f"}}],"tool_choice":"required"`, "ChatCompletion", "")
	for _, more := range []string{``, `,"logprobs":2`, `,"echo":true,"logprobs":0`, `,"n":2`,
		`,"stream_options":{"include_usage":true}`} {
		ask("/v1/completions", `{"prompt":"x","max_tokens":6`+more, "Completion", "Completion")
	}
	for _, more := range []string{``, `,"reasoning_budget":4`,
		`,"reasoning":{"effort":"low","summary":"auto"},"reasoning_budget":4`, `,"top_logprobs":2`,
		`,"tools":[{"type":"function","name":"f","parameters":` + parameters + `}],"tool_choice":"required"`,
		`,"tools":[{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"f"}]}],"tool_choice":"required"`,
		`,"tools":[{"type":"custom","name":"f","format":{"type":"grammar","syntax":"regex","definition":"a{3}"}}],"tool_choice":"required"`,
		`,"text":{"format":{"type":"json_object"}},"metadata":{"k":"v"},"instructions":"Be brief.","store":false`} {
		ask("/v1/responses", `{"input":"x","max_output_tokens":40,"temperature":0`+more, "Response", "ResponseStreamEvent")
	}
	for _, more := range []string{``, `,"thinking":{"type":"enabled","budget_tokens":4}`, `,"stop_sequences":["e"]`,
		`,"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}`,
		`,"tools":[{"name":"f","input_schema":` + parameters + `}],"tool_choice":{"type":"any"}`} {
		ask("/v1/messages", chat+more, "Message", "RawMessageStreamEvent")
	}
	ask("/v1/messages/count_tokens", chat, "MessageTokensCount", "")
	ask("/v1/embeddings", `{"input":["a","b"]`, "CreateEmbeddingResponse", "")
	for _, more := range []string{``, `,"think":true`, `,"logprobs":true,"top_logprobs":1`,
		`,"tools":[{"type":"function","function":{"name":"f","parameters":` + parameters + `}}]`} {
		ask("/api/chat", `{"messages":[{"role":"user","content":"x"}],"options":{"num_predict":20}`+more, "ChatResponse", "ChatResponse")
	}
	ask("/api/generate", `{"prompt":"x","options":{"num_predict":6}`, "GenerateResponse", "GenerateResponse")
	ask("/api/embed", `{"input":"x"`, "EmbedResponse", "")
	ask("/api/embeddings", `{"prompt":"x"`, "EmbeddingsResponse", "")
	ask("/api/show", `{"model":"test/model"`, "ShowResponse", "")
	for path, kind := range map[string]string{"/v1/models/test/model": "Model", "/api/tags": "ListResponse"} {
		_, _, text := s.send("GET", path, "")
		check(kind, text, kind == "Model")
	}
	_, _, text := s.send("POST", "/v1/messages", "{")
	check("ErrorResponse", text, true)
	_, _, text = s.send("POST", "/v1/chat/completions", "{")
	wrapped, _ := json.Marshal(at(object(t, text), "error"))
	check("ErrorObject", string(wrapped), true)
	for kind := range v.Answers {
		if checked[kind] == 0 && kind != "ProgressResponse" {
			t.Errorf("no answer of type %s was checked", kind)
		}
	}
}

// The check finds a null field, an unknown field, a missing field, and a value of another kind.
func TestVendorsFindFaults(t *testing.T) {
	v := readVendors(t)
	for text, want := range map[string]int{
		`{"type":"text","text":"x"}`:                                         0,
		`{"type":"text","text":"x","citations":null}`:                        1,
		`{"type":"text","text":"x","more":1}`:                                1,
		`{"type":"text"}`:                                                    1,
		`{"type":"text","text":7}`:                                           1,
		`{"type":"thinking","thinking":"x","signature":"","citations":null}`: 1,
	} {
		message := `{"id":"m","type":"message","role":"assistant","model":"m","content":[` + text +
			`],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`
		var value any
		if err := json.Unmarshal([]byte(message), &value); err != nil {
			t.Fatal(err)
		}
		found := slices.DeleteFunc(v.faults(value, v.Answers["Message"], "m", true), func(fault string) bool {
			return !strings.Contains(fault, "m.content")
		})
		if len(found) != want {
			t.Errorf("%s: %q", text, found)
		}
	}
}
