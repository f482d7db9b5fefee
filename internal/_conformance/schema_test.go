package conformance

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/grovellm/grove/serve"
	"github.com/pb33f/libopenapi"
	"github.com/pb33f/libopenapi-validator/schema_validation"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
)

// specification reads the description of OpenAI's API: openapi.yaml of
// github.com/openai/openai-openapi.
func specification(t *testing.T) *v3.Document {
	t.Helper()
	path := os.Getenv("OPENAI_OPENAPI")
	if path == "" {
		t.Skip("OPENAI_OPENAPI does not name the file openapi.yaml of github.com/openai/openai-openapi")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	document, err := libopenapi.NewDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	m, err := document.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	return &m.Model
}

// Every response, every event of a stream and every error is as OpenAI's schemas have it.
func TestOpenAISchemas(t *testing.T) {
	spec := specification(t)
	validator := schema_validation.NewSchemaValidator()
	checked := 0
	check := func(schema string, value []byte) {
		t.Helper()
		s, ok := spec.Components.Schemas.Get(schema)
		if !ok {
			t.Fatalf("the description has no schema %s", schema)
		}
		var decoded map[string]any
		if err := json.Unmarshal(value, &decoded); err != nil {
			t.Fatal(err)
		}
		if schema == "CreateCompletionResponse" {
			withoutNulls(decoded)
		}
		if decoded["usage"] == nil { // its "nullable" stands beside a $ref, where the validator does not see it
			delete(decoded, "usage")
		}
		checked++
		// The description calls itself 3.1 and uses a keyword of 3.0, nullable.
		if ok, faults := validator.ValidateSchemaObjectWithVersion(s.Schema(), decoded, 3.0); !ok {
			for _, f := range faults {
				t.Errorf("%s: %s: %s\n%s", schema, f.Message, f.Reason, value)
				for _, e := range f.SchemaValidationErrors {
					t.Errorf("  %s: %s", e.FieldPath, e.Reason)
				}
			}
		}
	}
	base := start(t, serve.Options{})
	ask := func(method, path, body string) *http.Response {
		r, err := http.NewRequest(method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Body.Close() })
		return a
	}
	whole := func(schema, method, path, body string) {
		t.Helper()
		text, err := io.ReadAll(ask(method, path, body).Body)
		if err != nil {
			t.Fatal(err)
		}
		check(schema, text)
	}
	whole("ListModelsResponse", "GET", "/models", "")
	whole("Model", "GET", "/models/grove/model", "")
	whole("ErrorResponse", "GET", "/models/other", "")
	whole("ErrorResponse", "POST", "/chat/completions", "{")
	const messages = `"messages":[{"role":"user","content":"func main() {"}],"max_tokens":12,"seed":1`
	for _, options := range []string{
		``, `,"n":3`, `,"logprobs":true`, `,"logprobs":true,"top_logprobs":5`, `,"stop":["\n"]`, `,"temperature":0`,
		`,"prediction":{"type":"content","content":"main()"}`, `,"speculate":false`, `,"max_tokens":1`,
	} {
		body := `{` + messages + options
		whole("CreateChatCompletionResponse", "POST", "/chat/completions", body+`}`)
		events(t, ask("POST", "/chat/completions", body+`,"stream":true,"stream_options":{"include_usage":true}}`),
			func(data []byte) { check("CreateChatCompletionStreamResponse", data) })
	}
	for _, options := range []string{``, `,"n":3`, `,"logprobs":2`, `,"logprobs":0,"echo":true`, `,"stop":"\n"`,
		`,"max_tokens":0,"echo":true`} {
		body := `{"prompt":"func main() {","max_tokens":12,"seed":1` + options
		whole("CreateCompletionResponse", "POST", "/completions", body+`}`)
		events(t, ask("POST", "/completions", body+`,"stream":true}`),
			func(data []byte) { check("CreateCompletionResponse", data) })
	}
	for _, options := range []string{
		``, `,"top_logprobs":2`, `,"stop":["\n"]`, `,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],"tool_choice":"required"`,
		`,"text":{"format":{"type":"json_object"}}`, `,"reasoning":{"effort":"low"},"reasoning_budget":5`,
		`,"metadata":{"k":"v"},"instructions":"Be brief."`,
	} {
		if strings.Contains(options, "reasoning") {
			base = startReasoning(t)
		}
		body := `{"model":"m","input":[{"role":"user","content":"func main() {"}],"max_output_tokens":40` + options
		whole("Response", "POST", "/responses", body+`}`)
		events(t, ask("POST", "/responses", body+`,"stream":true}`), func(data []byte) {
			var e struct{ Type string }
			if err := json.Unmarshal(data, &e); err != nil || eventSchemas[e.Type] == "" {
				t.Fatalf("%v: %s", err, data)
			}
			check(eventSchemas[e.Type], data)
		})
	}
	whole("CreateEmbeddingResponse", "POST", "/embeddings", `{"input":["a","b"]}`)
	t.Logf("%d values checked", checked)
}

// eventSchemas are the schemas of responses' events.
var eventSchemas = map[string]string{
	"response.created": "ResponseCreatedEvent", "response.in_progress": "ResponseInProgressEvent",
	"response.completed":  "ResponseCompletedEvent",
	"response.incomplete": "ResponseIncompleteEvent", "response.output_item.added": "ResponseOutputItemAddedEvent",
	"response.output_item.done":   "ResponseOutputItemDoneEvent",
	"response.content_part.added": "ResponseContentPartAddedEvent",
	"response.content_part.done":  "ResponseContentPartDoneEvent", "response.output_text.delta": "ResponseTextDeltaEvent",
	"response.output_text.done":              "ResponseTextDoneEvent",
	"response.function_call_arguments.delta": "ResponseFunctionCallArgumentsDeltaEvent",
	"response.function_call_arguments.done":  "ResponseFunctionCallArgumentsDoneEvent",
	"response.reasoning_text.delta":          "ResponseReasoningTextDeltaEvent",
	"response.reasoning_text.done":           "ResponseReasoningTextDoneEvent",
}

// withoutNulls leaves out what OpenAI's own answers of text completions have and its description
// does not: finish_reason is null in all events of a stream but the last, and the first token of an
// echoed prompt has null for its log-probabilities.
func withoutNulls(answer map[string]any) {
	for _, c := range answer["choices"].([]any) {
		choice := c.(map[string]any)
		if choice["finish_reason"] == nil {
			choice["finish_reason"] = "stop"
		}
		if l, _ := choice["logprobs"].(map[string]any); l != nil {
			for _, name := range []string{"token_logprobs", "top_logprobs"} {
				if list, _ := l[name].([]any); len(list) > 0 && list[0] == nil {
					l[name] = list[1:]
				}
			}
		}
	}
}

// events calls f with the data of each event of a stream.
func events(t *testing.T, a *http.Response, f func(data []byte)) {
	t.Helper()
	n := 0
	for lines := bufio.NewScanner(a.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "[DONE]" {
			f([]byte(data))
			n++
		}
	}
	if n == 0 {
		t.Error("the stream has no events")
	}
}
