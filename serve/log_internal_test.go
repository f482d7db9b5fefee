package serve

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	embedded "github.com/grovellm/grove/models"
)

// secret must not be in the log. It is short, so that an error's beginning of a text contains it.
const secret = "hunter2"

// Words in fields that describe the fields next to them.
var (
	types = []string{"text", "function", "custom", "namespace", "grammar", "json_schema", "tool_use", "tool_result",
		"thinking", "function_call", "custom_tool_call", "function_call_output", "message", "reasoning", "item_reference",
		"tool",
		"allowed_tools", "content", "enabled", "image_url"}
	roles = []string{"user", "assistant", "tool", "system", "function"}
)

// secretForms returns JSON values with the secret at all places of a type, and at places that it does not have.
func secretForms(t reflect.Type, depth int, rng *rand.Rand) []string {
	list := []string{`"` + secret + `"`, `"(` + secret + `["`, `"lookup:` + secret + `=1"`,
		`"{\"type\":\"` + secret + `\"}"`,
		`["` + secret + `"]`, `[["` + secret + `"]]`, `{"` + secret + `":"` + secret + `"}`, `{"type":"` + secret + `"}`}
	if depth == 0 {
		return list
	}
	switch value, isField := t.FieldByNameFunc, t.Kind() == reflect.Struct && strings.HasPrefix(t.Name(), "field["); {
	case isField:
		f, _ := value(func(name string) bool { return name == "value" })
		return secretForms(f.Type, depth, rng)
	case t.Kind() == reflect.Pointer:
		return secretForms(t.Elem(), depth, rng)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		for _, form := range secretForms(t.Elem(), depth-1, rng) {
			list = append(list, "["+form+"]")
		}
	case t.Kind() == reflect.Struct:
		fields := slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
			return f.Tag.Get("json") == ""
		})
		for _, f := range fields {
			if f.Tag.Get("json") == "model" { // its name may be logged
				continue
			}
			for _, form := range secretForms(f.Type, depth-1, rng) {
				for range 3 {
					list = append(list, fmt.Sprintf(`{%s"%s":%s}`, rightFields(fields, rng), f.Tag.Get("json"), form))
				}
			}
		}
	}
	return list
}

// rightFields returns valid fields of an object.
func rightFields(fields []reflect.StructField, rng *rand.Rand) (text string) {
	for _, f := range fields {
		name := f.Tag.Get("json")
		value := ""
		switch name {
		case "type":
			value = types[rng.IntN(len(types))]
		case "role":
			value = roles[rng.IntN(len(roles))]
		case "name", "id", "call_id", "tool_call_id":
			value = "f"
		}
		if value != "" && rng.IntN(5) > 0 {
			text += fmt.Sprintf("%q:%q,", name, value)
		}
	}
	return text
}

// Nothing of a body is in the log, whatever is wrong with it, unless logging prompts is on: neither in the
// protocols' fields, whatever type the value has, nor in errors of JSON's syntax. Answers may quote the body.
func TestSecrets(t *testing.T) {
	t.Parallel()
	const template = "<tool_call>{{ tools | tojson }}{% for m in messages %}{{ m.role }}{{ m.content }}" +
		"{% for c in m.tool_calls %}{{ c | tojson }}{% endfor %}{% endfor %}"
	m, err := grove.OpenGGUF("embedded", embedded.Target(), grove.Options{Threads: 1, ChatTemplate: template})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	log := &bytes.Buffer{}
	s, err := New(Options{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		OnEnd: func(e *Ended) {
			if e.Err != nil && strings.Contains(e.Err.Error(), secret) {
				t.Errorf("OnEnd: %v", e.Err)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	s.SetModel(&Model{Model: m, Name: "m"})
	const message = `"messages":[{"role":"user","content":"x"}]`
	rng, quoted := rand.New(rand.NewPCG(rand.Uint64(), 0)), 0
	for path, c := range map[string]struct {
		base string
		body any
	}{
		"/v1/completions":            {`"prompt":"x"`, completionBody{}},
		"/v1/chat/completions":       {message, chatBody{}},
		"/v1/messages":               {message, messagesBody{}},
		"/v1/messages/count_tokens":  {message, messagesBody{}},
		"/v1/responses":              {`"input":"x","max_output_tokens":1`, responseBody{}},
		"/v1/responses/input_tokens": {`"input":"x"`, responseBody{}},
		"/v1/embeddings":             {`"input":"x"`, embeddingsBody{}},
		"/api/chat":                  {message + `,"stream":false,"options":{"num_predict":1}`, ollamaBody{}},
		"/api/generate":              {`"prompt":"x","stream":false,"options":{"num_predict":1}`, ollamaBody{}},
		"/api/embed":                 {`"input":"x"`, ollamaEmbedBody{}},
		"/api/show":                  {`"model":"m"`, nameBody{}},
		"/api/pull":                  {`"model":"m"`, nameBody{}},
		"/completion":                {`"prompt":"x"`, llamaCompletionBody{}},
		"/infill":                    {`"input_prefix":"x"`, infillBody{}},
		"/tokenize":                  {`"content":"x"`, tokenizeBody{}},
		"/detokenize":                {`"tokens":[1]`, detokenizeBody{}},
	} {
		send := func(body string) {
			log.Reset()
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)))
			for line := range strings.Lines(log.String()) {
				// tools that are left out are named there
				if strings.Contains(line, secret) && !strings.Contains(line, "a part of the request is ignored") {
					t.Errorf("%s %s:\n%s", path, body, line)
				}
			}
			if w.Code == 400 && strings.Contains(w.Body.String(), secret) {
				quoted++
			}
		}
		for _, syntax := range []string{secret, `{"` + secret, `{"x":"` + secret + `",}`, `{"x":` + secret + `}`,
			`"` + secret + `"`, `{"x":"` + secret + `"}` + secret, `{"x":"\` + secret + `"}`} {
			send(syntax)
		}
		forms := secretForms(reflect.TypeOf(c.body), 5, rng)
		rng.Shuffle(len(forms), func(i, j int) { forms[i], forms[j] = forms[j], forms[i] })
		for _, form := range forms[:min(len(forms), 300)] {
			if fields, isObject := strings.CutPrefix(form, "{"); isObject {
				form = `{` + c.base + `,"max_tokens":1,` + fields
			}
			send(form)
		}
	}
	if quoted < 500 {
		t.Errorf("%d answers quote the body: the test has lost its bite", quoted)
	}
}
