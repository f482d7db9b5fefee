package serve_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

var responseDialect = dialect{
	path: "/v1/responses",
	body: func(q *question) map[string]any {
		var input, tools []any
		var system any
		for _, m := range q.turns {
			switch m.role {
			case "system":
				system = m.text
			case "call":
				input = append(input, map[string]any{"type": "function_call", "call_id": "c1", "name": "first",
					"arguments": string(m.arguments())})
			case "result":
				input = append(input, map[string]any{"type": "function_call_output", "call_id": "c1", "output": m.text})
			case "assistant":
				input = append(input, map[string]any{"type": "message", "role": m.role,
					"content": []any{map[string]any{"type": "output_text", "text": m.text}}})
			default:
				input = append(input, map[string]any{"role": m.role, "content": m.text})
			}
		}
		body := q.tail(map[string]any{"input": input, "instructions": system, "max_output_tokens": q.max,
			"stop": q.stops, "store": true})
		if q.budget > 0 {
			body["reasoning"] = map[string]any{"effort": "high"}
		}
		if q.tools {
			for _, name := range toolNames {
				tools = append(tools, map[string]any{"type": "function", "name": name, "description": "D.",
					"parameters": json.RawMessage(schemaOfTools), "strict": true})
			}
			body["tools"] = tools
			body["tool_choice"] = any(q.choice)
			body["parallel_tool_calls"] = q.parallel
			if q.choice == "first" {
				body["tool_choice"] = map[string]any{"type": "function", "name": "first"}
			}
		}
		if q.schema != "" {
			body["text"] = map[string]any{"format": map[string]any{"type": "json_schema", "name": "x",
				"schema": json.RawMessage(q.schema)}}
		}
		return body
	},
	whole: func(a map[string]any) (got answer) {
		got.finish = map[any]string{"completed": "stop", "incomplete": "length"}[a["status"]]
		for _, i := range a["output"].([]any) {
			switch at(i, "type") {
			case "reasoning":
				got.reasoning += at(i, "content.0.text").(string)
			case "message":
				got.text += at(i, "content.0.text").(string)
			default:
				got.calls = append(got.calls, fmt.Sprint(at(i, "name"), at(i, "arguments")))
				if got.finish == "stop" {
					got.finish = "tool_calls"
				}
			}
		}
		got.prompt, got.output = int(at(a, "usage.input_tokens").(float64)), int(at(a, "usage.output_tokens").(float64))
		return got
	},
	// The last event has the answer; the events before it must come to the same.
	stream: func(t testing.TB, text string) map[string]any {
		var output []any
		var last map[string]any
		for i, e := range namedEvents(t, text) {
			if e["sequence_number"] != float64(i) {
				t.Errorf("event %d: %v", i, e)
			}
			last = e
			if index, ok := e["output_index"].(float64); ok && e["type"] == "response.output_item.added" {
				if item := e["item"].(map[string]any); int(index) == len(output) {
					output = append(output, item)
				}
			} else if ok {
				item := output[int(index)].(map[string]any)
				if e["item_id"] != nil && e["item_id"] != item["id"] {
					t.Errorf("event %v of item %v", e, item)
				}
				switch kind := strings.TrimPrefix(e["type"].(string), "response."); kind {
				case "content_part.added":
					item["content"] = append(item["content"].([]any), e["part"])
				case "reasoning_text.delta", "output_text.delta":
					part := at(item, "content.0").(map[string]any)
					part["text"] = part["text"].(string) + e["delta"].(string)
				case "function_call_arguments.delta":
					item["arguments"] = item["arguments"].(string) + e["delta"].(string)
				case "output_item.done":
					item["status"] = at(e, "item.status")
					if jsonOf(item) != jsonOf(e["item"]) {
						t.Errorf("put together %v, done %v", item, e["item"])
					}
				}
			}
		}
		response := last["response"].(map[string]any)
		response["output"] = append([]any{}, output...)
		if last["type"] != "response."+response["status"].(string) {
			t.Errorf("the last event is %v", last)
		}
		return response
	},
	param: map[string]string{"response_format.json_schema.schema": "text.format.schema"},
	fault: func(a map[string]any) string { return at(a, "error.message").(string) },
}
