package serve_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/serve"
)

// withHeads opens the model in the command, with its heads, for one test only.
func withHeads(t *testing.T, o grove.Options) *grove.Model {
	t.Helper()
	o.DraftGGUF = models.Draft()
	o.HeadGGUF = models.Heads()
	return open(t, models.Target(), o)
}

// shallow opens the first layer of the model in the command, for one test only.
func shallow(t *testing.T, o grove.Options) *grove.Model {
	t.Helper()
	data, err := firstLayer()
	if err != nil {
		t.Fatal(err)
	}
	return open(t, data, o)
}

// firstLayer is a file of the first layer of the model in the command.
var firstLayer = sync.OnceValues(func() ([]byte, error) {
	f, err := gguf.Parse("embedded", models.Target())
	if err != nil {
		return nil, err
	}
	w := new(gguf.Writer)
	ggufkeys.SetAll(w, f)
	w.Set("qwen3.block_count", uint32(1))
	for _, info := range f.Tensors {
		if strings.HasPrefix(info.Name, "blk.") && !strings.HasPrefix(info.Name, "blk.0.") {
			continue
		}
		x, err := f.Load(info.Name)
		if err != nil {
			return nil, err
		}
		w.AddTensor(x)
	}
	var b bytes.Buffer
	_, err = w.WriteTo(&b)
	return b.Bytes(), err
})

func open(t *testing.T, data []byte, o grove.Options) *grove.Model {
	t.Helper()
	o.Threads = 1
	m, err := grove.OpenGGUF("embedded", data, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// Every way of asking for structure gives text that has it, whole and streamed, drafted and plain,
// and it is the same text.
func TestStructure(t *testing.T) {
	t.Parallel()
	s := start(t, withHeads(t, grove.Options{}), serve.Options{})
	schema := `{"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "size": {"type": "integer"}}, "required": ["name", "size"], "additionalProperties": false}`
	isObject := func(text string) bool {
		var v struct {
			Name *string
			Size *int
		}
		return json.Unmarshal([]byte(text), &v) == nil && v.Name != nil && v.Size != nil
	}
	raw := json.RawMessage(schema)
	for _, c := range []struct {
		field string
		value any
		valid func(string) bool
	}{
		{"response_format", map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "x", "strict": true,
			"schema": raw}}, isObject},
		{"response_format", map[string]any{"type": "json_object", "schema": raw}, isObject},
		{"response_format", map[string]any{"type": "json_schema", "schema": raw}, isObject},
		{"json_schema", raw, isObject},
		{"guided_json", schema, isObject},
		{"structured_outputs", map[string]any{"json": raw}, isObject},
		{"grammar", `root ::= "yes" | "no" [0-9]{3}`, regexp.MustCompile(`^(yes|no[0-9]{3})$`).MatchString},
		{"guided_regex", "[a-z]{5}-[0-9]{1,9};", regexp.MustCompile("^[a-z]{5}-[0-9]{1,9};$").MatchString},
		{"guided_choice", []string{"a.b", "c(d"}, regexp.MustCompile(`^(a\.b|c\(d)$`).MatchString},
	} {
		fields := map[string]any{"messages": []any{map[string]any{"role": "user", "content": "Tell me of a town."}},
			"temperature": 1, "seed": 5, "max_tokens": 200, c.field: c.value}
		var texts []string
		for _, drafter := range []string{"lookup", "eagle3", "plain"} {
			fields["drafter"] = drafter
			whole := s.post("/v1/chat/completions", fields)
			parts := assemble(t, s.events("/v1/chat/completions", fields), 1)[0]
			texts = append(texts, at(whole, "choices.0.message.content").(string), parts.text)
			if at(whole, "choices.0.finish_reason") != "stop" || parts.finish != "stop" {
				t.Errorf("%s: ended by %v, %s", c.field, at(whole, "choices.0.finish_reason"), parts.finish)
			}
		}
		for _, text := range texts {
			if text != texts[0] || !c.valid(text) {
				t.Errorf("%s: %q, first %q", c.field, text, texts[0])
			}
		}
	}
	// Any object: it need not end within that many tokens.
	a := s.post("/v1/completions",
		map[string]any{"prompt": "{", "max_tokens": 30, "response_format": map[string]any{"type": "json_object"}})
	if text := at(a, "choices.0.text").(string); text == "" || text[0] != '{' {
		t.Errorf("%q", text)
	}
	for _, field := range []string{"json_schema", "guided_json"} { // any value
		a := s.post("/v1/completions",
			map[string]any{"prompt": "Once", "max_tokens": 3, "temperature": 0, field: map[string]any{}})
		if text := at(a, "choices.0.text").(string); text == "" || !strings.Contains(`{["-0123456789tfn`, text[:1]) {
			t.Errorf("%s: %q is no JSON", field, text)
		}
	}
}
