package serve_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// dialect is a protocol under test: how it asks a question, and what its answers say.
type dialect struct {
	path   string
	body   func(q *question) map[string]any
	whole  func(a map[string]any) answer
	stream func(t testing.TB, text string) map[string]any // joins a stream's events to an answer
	param  map[string]string                              // names of fields other than OpenAI's
	fault  func(a map[string]any) string
}

// question is a request that all dialects can express.
type question struct {
	turns       []turn
	tools       bool
	choice      string // of tools: auto, none, required, or a name
	parallel    bool
	schema      string
	stops       []string
	max         int
	budget      int // of reasoning; 0: not given
	temperature float64
	seed        int
}

// turn is a message. With the role call it is a call by the assistant, with the role result the call's result.
type turn struct{ role, text string }

// answer is the answer, in OpenAI's terms.
type answer struct {
	text, reasoning, finish string
	calls                   []string
	prompt, output          int
}

const schemaOfTools = `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`

var toolNames = []string{"first", "second"}

// tail are fields that OpenAI and its translations share.
func (q *question) tail(body map[string]any) map[string]any {
	body["model"] = "test/model"
	body["temperature"] = q.temperature
	body["seed"] = q.seed
	if q.budget > 0 {
		body["reasoning_budget"] = q.budget
	}
	return body
}

func (t turn) arguments() json.RawMessage { return json.RawMessage(`{"a": ` + t.text + `}`) }

var chatDialect = dialect{
	path: "/v1/chat/completions",
	body: func(q *question) map[string]any {
		var messages, tools []any
		for _, m := range q.turns {
			switch m.role {
			case "call":
				messages = append(messages, map[string]any{"role": "assistant", "content": "",
					"tool_calls": []any{map[string]any{
						"id": "c1", "type": "function",
						"function": map[string]any{"name": "first", "arguments": string(m.arguments())}}}})
			case "result":
				messages = append(messages, map[string]any{"role": "tool", "content": m.text, "tool_call_id": "c1"})
			default:
				messages = append(messages, map[string]any{"role": m.role, "content": m.text})
			}
		}
		body := q.tail(map[string]any{"messages": messages, "max_tokens": q.max, "stop": q.stops})
		if q.tools {
			for _, name := range toolNames {
				tools = append(tools, json.RawMessage(`{"type":"function","function":{"name":"`+name+
					`","description":"D.","parameters":`+schemaOfTools+`}}`))
			}
			body["tools"] = tools
			body["tool_choice"] = any(q.choice)
			body["parallel_tool_calls"] = q.parallel
			if q.choice == "first" {
				body["tool_choice"] = map[string]any{"type": "function", "function": map[string]any{"name": "first"}}
			}
		}
		if q.schema != "" {
			body["response_format"] = map[string]any{"type": "json_schema",
				"json_schema": map[string]any{"name": "x", "schema": json.RawMessage(q.schema)}}
		}
		return body
	},
	whole: func(a map[string]any) (got answer) {
		got.text, _ = at(a, "choices.0.message.content").(string)
		got.reasoning, _ = at(a, "choices.0.message.reasoning_content").(string)
		got.finish = at(a, "choices.0.finish_reason").(string)
		list, _ := at(a, "choices.0.message.tool_calls").([]any)
		for _, c := range list {
			got.calls = append(got.calls, fmt.Sprint(at(c, "function.name"), at(c, "function.arguments")))
		}
		got.prompt, got.output = int(at(a, "usage.prompt_tokens").(float64)),
			int(at(a, "usage.completion_tokens").(float64))
		return got
	},
	fault: func(a map[string]any) string { return at(a, "error.message").(string) },
}

var anthropicDialect = dialect{
	path: "/v1/messages",
	body: func(q *question) map[string]any {
		var messages, tools []any
		var system any
		add := func(role string, block map[string]any) {
			messages = append(messages, map[string]any{"role": role, "content": []any{block}})
		}
		for _, m := range q.turns {
			switch m.role {
			case "system":
				system = []any{map[string]any{"type": "text", "text": m.text}}
			case "call":
				add("assistant", map[string]any{"type": "tool_use", "id": "c1", "name": "first",
					"input": m.arguments()})
			case "result":
				add("user", map[string]any{"type": "tool_result", "tool_use_id": "c1", "content": m.text})
			default:
				add(m.role, map[string]any{"type": "text", "text": m.text})
			}
		}
		body := q.tail(map[string]any{"messages": messages, "max_tokens": q.max, "stop_sequences": q.stops,
			"system": system})
		if q.budget > 0 {
			delete(body, "reasoning_budget")
			body["thinking"] = map[string]any{"type": "enabled", "budget_tokens": q.budget}
		}
		if q.tools {
			for _, name := range toolNames {
				tools = append(tools, map[string]any{"name": name, "description": "D.",
					"input_schema": json.RawMessage(schemaOfTools)})
			}
			choice := map[string]any{"type": map[string]string{"required": "any", "first": "tool"}[q.choice]}
			if choice["type"] == "" {
				choice["type"] = q.choice
			}
			if q.choice == "first" {
				choice["name"] = "first"
			}
			if q.choice != "none" {
				choice["disable_parallel_tool_use"] = !q.parallel
			}
			body["tools"], body["tool_choice"] = tools, choice
		}
		if q.schema != "" {
			body["output_config"] = map[string]any{"format": map[string]any{"type": "json_schema",
				"schema": json.RawMessage(q.schema)}}
		}
		return body
	},
	whole: func(a map[string]any) (got answer) {
		for _, b := range a["content"].([]any) {
			switch at(b, "type") {
			case "thinking":
				got.reasoning += at(b, "thinking").(string)
			case "text":
				got.text += at(b, "text").(string)
			default:
				input, _ := json.Marshal(at(b, "input"))
				got.calls = append(got.calls, at(b, "name").(string)+string(input))
			}
		}
		got.finish = anthropicWords[a["stop_reason"].(string)]
		for _, name := range []string{"input_tokens", "cache_read_input_tokens"} {
			got.prompt += int(at(a, "usage."+name).(float64))
		}
		got.output = int(at(a, "usage.output_tokens").(float64))
		return got
	},
	stream: func(t testing.TB, text string) map[string]any {
		var message map[string]any
		var content []any
		for _, e := range namedEvents(t, text) {
			block, _ := e["content_block"].(map[string]any)
			index, _ := e["index"].(float64)
			switch e["type"] {
			case "message_start":
				message = e["message"].(map[string]any)
			case "content_block_start":
				content = append(content, block)
				if int(index) != len(content)-1 || block["text"] != nil &&
					block["text"] != "" {
					t.Errorf("block %d: %v", len(content), e)
				}
			case "content_block_delta":
				b := content[int(index)].(map[string]any)
				for name, field := range map[string]string{"text": "text", "thinking": "thinking",
					"partial_json": "input"} {
					if piece, ok := at(e, "delta."+name).(string); ok {
						before, _ := b[field].(string)
						b[field] = before + piece
					}
				}
			case "content_block_stop":
				b := content[int(index)].(map[string]any)
				if input, ok := b["input"].(string); ok {
					v := map[string]any{}
					_ = json.Unmarshal([]byte(input), &v) // a call that was cut short has none
					b["input"] = v
				}
			case "message_delta":
				message["stop_reason"], message["usage"] = at(e, "delta.stop_reason"), e["usage"]
			}
		}
		message["content"] = content
		if content == nil {
			message["content"] = []any{}
		}
		return message
	},
	param: map[string]string{"stop": "stop_sequences",
		"response_format.json_schema.schema": "output_config.format.schema",
		"tools[0].function.name":             "tools[0].name"},
	fault: func(a map[string]any) string { return at(a, "error.message").(string) },
}

var anthropicWords = map[string]string{"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length",
	"model_context_window_exceeded": "length", "tool_use": "tool_calls"}

// namedEvents returns the events of a stream whose names are their types.
func namedEvents(t testing.TB, text string) (list []map[string]any) {
	for event := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		name, data, _ := strings.Cut(event, "\n")
		e := object(t, strings.TrimPrefix(data, "data: "))
		if "event: "+e["type"].(string) != name {
			t.Errorf("event %q", event)
		}
		list = append(list, e)
	}
	return list
}

var ollamaDialect = dialect{
	path: "/api/chat",
	body: func(q *question) map[string]any {
		body := chatDialect.body(q)
		options := map[string]any{"temperature": q.temperature, "seed": q.seed, "num_predict": q.max, "stop": q.stops,
			"top_p": 1, "top_k": 0}
		for _, name := range []string{"temperature", "seed", "max_tokens", "stop", "response_format",
			"reasoning_budget"} {
			if name == "reasoning_budget" && q.budget > 0 {
				options[name], body["think"] = q.budget, true
			}
			delete(body, name)
		}
		if q.schema != "" {
			body["format"] = json.RawMessage(q.schema)
		}
		for _, m := range body["messages"].([]any) {
			if list, ok := at(m, "tool_calls").([]any); ok {
				f := at(list, "0.function").(map[string]any)
				f["arguments"] = json.RawMessage(f["arguments"].(string))
			}
		}
		return with(body, "options", options)
	},
	whole: func(a map[string]any) (got answer) {
		got.text = at(a, "message.content").(string)
		got.reasoning, _ = at(a, "message.thinking").(string)
		got.finish = a["done_reason"].(string)
		list, _ := at(a, "message.tool_calls").([]any)
		for i, c := range list {
			arguments, _ := json.Marshal(at(c, "function.arguments"))
			got.calls = append(got.calls, at(c, "function.name").(string)+string(arguments))
			if got.finish == "stop" {
				got.finish = "tool_calls"
			}
			if at(c, "function.index") != float64(i) {
				got.finish = "a wrong index"
			}
		}
		got.prompt, got.output = int(a["prompt_eval_count"].(float64)), int(a["eval_count"].(float64))
		return got
	},
	stream: func(t testing.TB, text string) map[string]any {
		content := ""
		thinking := ""
		calls := []any{}
		var last map[string]any
		for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			if last != nil && last["done"] != false {
				t.Errorf("a line behind the last one: %s", line)
			}
			last = object(t, line)
			content += at(last, "message.content").(string)
			if piece, ok := at(last, "message.thinking").(string); ok {
				thinking += piece
			}
			if list, ok := at(last, "message.tool_calls").([]any); ok {
				calls = append(calls, list...)
			}
		}
		return with(last, "message", map[string]any{"content": content, "thinking": thinking, "tool_calls": calls})
	},
	param: map[string]string{"stop": "options.stop", "temperature": "options.temperature",
		"response_format.json_schema.schema": "format"},
	fault: func(a map[string]any) string { return a["error"].(string) },
}

var dialects = []*dialect{&anthropicDialect, &ollamaDialect, &responseDialect}
