package serve_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/testing/calltest"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/serve"
)

// normal returns calls with their arguments as Go writes them, without one that was cut short.
func normal(calls []string) (list []string) {
	for _, c := range calls {
		name, arguments, _ := strings.Cut(c, "{")
		var v map[string]any
		if json.Unmarshal([]byte("{"+arguments), &v) == nil && len(v) > 0 {
			text, _ := json.Marshal(v)
			list = append(list, name+string(text))
		}
	}
	return list
}

// dialectTemplate is a chat template that knows tools.
const dialectTemplate = "{{ tools | tojson }}{% for m in messages %}{{ m.role }}: {{ m.content }}" +
	`{% for c in m.tool_calls %}<tool_call>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}` +
	"{{ '\\n' }}{% endfor %}" +
	"assistant: "

// dialectReasoning makes the model reason first if it is asked to.
const dialectReasoning = dialectTemplate + "{% if enable_thinking is defined and enable_thinking %}<think>\n{% endif %}{# </think> #}"

// A question has the same answer in all protocols, whole and streamed.
func TestDialects(t *testing.T) {
	plain := start(t, shallow(t, grove.Options{ChatTemplate: dialectTemplate}), serve.Options{})
	reasoning := start(t, shallow(t, grove.Options{ChatTemplate: dialectReasoning}), serve.Options{})
	generic := start(t, shallow(t, grove.Options{ChatTemplate: calltest.Plain["chatml"]}), serve.Options{})
	cases.Check(t, 20, func(rt *rapid.T) {
		q := &question{max: rapid.IntRange(1, 60).Draw(rt, "max"), seed: rapid.IntRange(0, 1000).Draw(rt, "seed"),
			temperature: rapid.SampledFrom([]float64{0, 1}).Draw(rt, "temperature")}
		if rapid.Bool().Draw(rt, "system") {
			q.turns = append(q.turns, turn{"system", "Be brief."})
		}
		q.turns = append(q.turns, turn{"user", rapid.StringMatching(`[a-z<> ]{1,20}`).Draw(rt, "text")})
		if rapid.Bool().Draw(rt, "called") {
			q.turns = append(q.turns, turn{"call", "47"}, turn{"result", "done"}, turn{"assistant", "Good."},
				turn{"user", "Go on."})
		}
		if rapid.Bool().Draw(rt, "stops") {
			q.stops = []string{"e", "zz"}
		}
		s := rapid.SampledFrom([]*server{plain, generic}).Draw(rt, "server")
		if rapid.Bool().Draw(rt, "reasons") {
			s, q.budget = reasoning, rapid.IntRange(1, 12).Draw(rt, "budget")
		}
		switch rapid.IntRange(0, 2).Draw(rt, "kind") {
		case 1:
			q.tools, q.choice = true, rapid.SampledFrom([]string{"auto", "none", "required", "first"}).Draw(rt,
				"choice")
			q.parallel = rapid.Bool().Draw(rt, "parallel")
		case 2:
			q.schema = schemaOfTools
		}
		first := chatDialect.body(q)
		if q.budget > 0 {
			first["chat_template_kwargs"] = map[string]any{"enable_thinking": true}
		}
		want := chatDialect.whole(s.post(chatDialect.path, first))
		want.calls = normal(want.calls)
		for _, d := range dialects {
			body := d.body(q)
			streamed := rapid.Bool().Draw(rt, "streamed")
			_, _, text := s.send("POST", d.path, jsonOf(with(body, "stream", streamed)))
			a := map[string]any(nil)
			if streamed {
				a = d.stream(t, text)
			} else {
				a = object(t, text)
			}
			got := d.whole(a)
			got.calls = normal(got.calls)
			if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
				rt.Fatalf("%s, streamed %v: %+v, want %+v: %s", d.path, streamed, got, want, text)
			}
		}
	})
}

// Errors name the wrong field as the client named it, in the form of its protocol.
func TestDialectErrors(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	for field, q := range map[string]*question{
		"stop":                               {stops: []string{""}},
		"temperature":                        {temperature: -1},
		"response_format.json_schema.schema": {schema: `{"type": "string", "pattern": "\\ba"}`},
	} {
		q.turns, q.max = []turn{{"user", "x"}}, 3
		for _, d := range append(dialects, &chatDialect) {
			name := field
			if d.param[field] != "" {
				name = d.param[field]
			}
			data, _ := json.Marshal(with(d.body(q), "stream", true))
			status, header, text := s.send("POST", d.path, string(data))
			if status != 400 || header.Get("Content-Type") != "application/json" ||
				!strings.HasPrefix(d.fault(object(t, text)), name+": ") {
				t.Errorf("%s: status %d, %s; want %s", d.path, status, text, name)
			}
		}
	}
}

// Whatever replaces a value of a request, the response is an answer, or a client
// error in the protocol's form.
func TestMutatedRequests(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: dialectReasoning}), serve.Options{})
	q := &question{turns: []turn{{"system", "Be brief."}, {"user", "x"}, {"call", "47"}, {"result", "done"},
		{"assistant", "Good."}, {"user", "y"}},
		tools: true, choice: "first", stops: []string{"e"}, max: 3, budget: 2}
	bodies := map[string]string{
		"/v1/embeddings": `{"input":["x",[1]],"dimensions":3,"pooling":"last","encoding_format":"base64"}`,
		"/api/embed":     `{"input":["x"],"dimensions":3,"truncate":true}`,
		"/api/generate":  `{"prompt":"x","suffix":"y","raw":true,"system":"z","stream":false,"options":{"num_predict":3,"top_k":3},"think":"low","format":"json"}`,
		"/infill":        `{"input_prefix":"x","input_suffix":"y","prompt":"z","n_predict":3,"input_extra":[{"filename":"a","text":"b"}]}`,
	}
	for _, d := range append(dialects, &chatDialect) {
		q.schema, q.tools = "", true
		bodies[d.path] = jsonOf(d.body(q))
		q.schema, q.tools = schemaOfTools, false
		bodies[d.path+"?"] = jsonOf(d.body(q))
	}
	paths := slices.Sorted(maps.Keys(bodies))
	rapid.Check(t, func(rt *rapid.T) {
		path := rapid.SampledFrom(paths).Draw(rt, "path")
		body := any(object(t, bodies[path]))
		for range rapid.IntRange(1, 2).Draw(rt, "changes") {
			body = mutated(rt, body)
		}
		data := jsonOf(body)
		status, header, text := s.send("POST", strings.TrimSuffix(path, "?"), data)
		if status == 200 {
			return
		}
		a := object(t, text)
		message, _ := at(a, "error.message").(string)
		if strings.HasPrefix(path, "/api/") {
			message, _ = a["error"].(string)
		}
		if status < 400 || status >= 500 || message == "" || header.Get("Content-Type") != "application/json" {
			rt.Fatalf("%s %s: status %d: %s", path, data, status, text)
		}
	})
}

// mutated replaces one value anywhere in v by another.
func mutated(t *rapid.T, v any) any {
	switch in := v.(type) {
	case map[string]any:
		if len(in) > 0 && rapid.IntRange(0, 7).Draw(t, "deeper") > 0 {
			name := rapid.SampledFrom(slices.Sorted(maps.Keys(in))).Draw(t, "name")
			in[name] = mutated(t, in[name])
			return in
		}
	case []any:
		if len(in) > 0 && rapid.IntRange(0, 7).Draw(t, "deeper") > 0 {
			i := rapid.IntRange(0, len(in)-1).Draw(t, "index")
			in[i] = mutated(t, in[i])
			return in
		}
	}
	return rapid.SampledFrom([]any{nil, true, -1, 0, 7, 1.5, 1e30, "", "x", "none", []any{}, []any{nil}, []any{7},
		[]any{"x"}, []any{map[string]any{}},
		map[string]any{}, map[string]any{"type": "text"}, map[string]any{"type": "x", "name": nil}}).Draw(t, "value")
}
