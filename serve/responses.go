package serve

import (
	"encoding/json"
	"fmt"
	"maps"
)

// OpenAI's POST /v1/responses, without storage.

// responses answers POST /v1/responses.
func (s *Server) responses(x *exchange) error {
	m, o, err := x.readModel()
	if err != nil {
		return err
	}
	given := maps.Clone(o.fields)
	o.fromResponses()
	c, err := x.readConversation(o, m)
	if err != nil {
		return err
	}
	return x.answer(c, func(a *answering) form { return newResponseForm(a, given) })
}

const unstored = "this server stores no answers: send the whole conversation as input"

// fromResponses makes the body of a chat completion of a response's.
func (o *object) fromResponses() {
	o.refuse("previous_response_id", unstored)
	o.refuse("conversation", unstored)
	o.refuse("background", unstored, "false")
	o.refuse("prompt", "this server has no prompts: send the text as input")
	o.refuse("truncation", unlike, `"disabled"`)
	o.oneChoice()
	o.rename("max_output_tokens", "max_completion_tokens")
	for _, what := range o.strings("include") {
		if what == "message.output_text.logprobs" {
			o.put("logprobs", true)
		}
	}
	if top := 0; o.read("top_logprobs", &top) && top > 0 {
		o.put("logprobs", true)
	}
	if in := o.object("text"); in != nil {
		if format := in.object("format"); format != nil {
			o.fields["response_format"] = in.fields["format"]
			o.name("response_format.type", "text.format.type")
			o.name("response_format", "text.format")
			if kind := ""; format.read("type", &kind) && kind == "json_schema" && format.has("schema") {
				o.setSchema(format.fields["schema"], "text.format.schema")
			}
			o.name("response_format.json_schema.schema", "text.format.schema")
		}
		o.err = firstOf(o.err, in.err)
	}
	if in := o.object("reasoning"); in != nil {
		effort := ""
		in.read("effort", &effort)
		o.setEffort(effort)
		o.err = firstOf(o.err, in.err)
	}
	if tools := o.objects("tools"); len(tools) > 0 {
		o.putList("tools", tools)
	}
	if _, isWord := decode[string](o.fields["tool_choice"]); !isWord {
		o.responseToolChoice()
	}
	o.putList("messages", o.responseInput())
	o.name("messages", "input")
}

// responseToolChoice reads the function to call.
func (o *object) responseToolChoice() {
	in := o.object("tool_choice")
	if in == nil {
		return
	}
	kind, name := "", ""
	in.read("type", &kind)
	in.read("name", &name)
	if kind != "function" {
		in.fail("type", "%q: want function", kind)
	}
	o.setFunction(name, "tool_choice.name")
	o.err = firstOf(o.err, in.err)
}

// responseInput translates the input to messages. What the assistant said, reasoned and called
// between two of the user's messages is one message.
func (o *object) responseInput() (list []*object) {
	add := func(path, role string, content any) *object {
		m := newObject(path)
		m.put("role", role)
		m.put("content", content)
		list = append(list, m)
		return m
	}
	if text := o.text("instructions"); text != "" {
		add("instructions", "system", text)
	}
	if text, ok := decode[string](o.fields["input"]); ok {
		add("input", "user", text)
		return list
	}
	turn := (*object)(nil) // of the assistant
	said, reasoned, calls := "", "", []calledTool(nil)
	assistant := func(in *object) {
		if turn == nil {
			turn = add(in.path[:len(in.path)-1], "assistant", "")
			said, reasoned, calls = "", "", nil
		}
	}
	for _, in := range o.objects("input") {
		path, kind, role := in.path[:len(in.path)-1], "message", ""
		in.read("type", &kind)
		switch kind {
		case "message":
			if in.read("role", &role); role == "" {
				in.fail("role", "want system, developer, user or assistant")
			}
			if text := in.text("content"); role == "assistant" {
				assistant(in)
				said += text
				turn.put("content", said)
			} else {
				turn = nil
				add(path, role, text)
			}
		case "reasoning":
			assistant(in)
			for _, name := range []string{"summary", "content"} {
				reasoned += in.text(name)
			}
			turn.put("reasoning_content", reasoned)
		case "function_call":
			assistant(in)
			id, name, arguments := "", "", ""
			in.read("call_id", &id)
			in.read("name", &name)
			if in.read("arguments", &arguments); !json.Valid([]byte(arguments)) {
				in.fail("arguments", "want JSON in a string")
			}
			calls = append(calls, newCalledTool(id, name, json.RawMessage(arguments)))
			turn.put("tool_calls", calls)
		case "function_call_output":
			turn = nil
			result := add(path, "tool", in.text("output"))
			result.fields["tool_call_id"] = in.fields["call_id"]
		default:
			in.fail("type", "%q: want message, reasoning, function_call or function_call_output", kind)
		}
		o.err = firstOf(o.err, in.err)
	}
	return list
}

// responseForm is the form of responses.
type responseForm struct {
	a     *answering
	given map[string]json.RawMessage // the request's fields
	sent  int                        // events
	blocks
}

func newResponseForm(a *answering, given map[string]json.RawMessage) form {
	if list, ok := decode[[]map[string]json.RawMessage](given["tools"]); ok { // clients expect all fields
		for _, tool := range list {
			for name, value := range map[string]string{"strict": "true", "parameters": "null"} {
				if tool[name] == nil {
					tool[name] = json.RawMessage(value)
				}
			}
		}
		given["tools"], _ = json.Marshal(list)
	}
	return &responseForm{a: a, given: given}
}

// response is the answer so far; p is nil at its beginning.
func (f *responseForm) response(p *piece) map[string]any {
	r := map[string]any{"id": "resp_" + f.a.id, "object": "response", "created_at": f.a.began.Unix(),
		"status": "in_progress", "model": f.a.call.model.Name, "error": nil, "incomplete_details": nil,
		"output":               []any{},
		"previous_response_id": nil, "usage": nil}
	for name, value := range map[string]string{"instructions": "null", "max_output_tokens": "null", "metadata": "{}",
		"parallel_tool_calls": "true", "reasoning": "null", "temperature": "1", "text": `{"format":{"type":"text"}}`,
		"tool_choice": `"auto"`, "tools": "[]", "top_p": "1", "truncation": `"disabled"`} {
		if r[name] = json.RawMessage(value); f.given[name] != nil && string(f.given[name]) != "null" {
			r[name] = f.given[name]
		}
	}
	r["store"] = false
	if p == nil {
		delete(r, "usage")
		return r
	}
	if r["status"] = "completed"; p.finish == "length" {
		r["status"], r["incomplete_details"] = "incomplete", map[string]string{"reason": "max_output_tokens"}
	}
	output := []any{}
	for i, b := range f.list {
		output = append(output, f.item(i, b, f.status(i, p)))
	}
	u := f.a.usage()
	r["output"] = output
	r["usage"] = map[string]any{"input_tokens": u.Prompt, "output_tokens": u.Completion, "total_tokens": u.Total,
		"input_tokens_details":  map[string]int{"cached_tokens": u.PromptDetails.Cached, "cache_write_tokens": 0},
		"output_tokens_details": map[string]int{"reasoning_tokens": u.CompletionDetails.Reasoning}}
	return r
}

// status is that of a block which has ended.
func (f *responseForm) status(at int, p *piece) string {
	if p.finish == "length" && at == len(f.list)-1 {
		return "incomplete"
	}
	return "completed"
}

func (f *responseForm) itemID(at int) string { return fmt.Sprintf("item_%s_%d", f.a.id, at) }

// item is a block; without its text while it is in progress.
func (f *responseForm) item(at int, b *block, status string) map[string]any {
	i := map[string]any{"id": f.itemID(at), "status": status}
	text, content := "", []any{}
	if status != "in_progress" {
		text, content = b.text, []any{f.part(b, b.text)}
	}
	switch b.kind {
	case reasoningBlock:
		i["type"], i["summary"], i["content"] = "reasoning", []any{}, content
	case textBlock:
		i["type"], i["role"], i["content"] = "message", "assistant", content
	default:
		i["type"], i["call_id"], i["name"], i["arguments"] = "function_call", b.call.ID, b.call.Function.Name, text
	}
	return i
}

// part is the content of a block.
func (f *responseForm) part(b *block, text string) map[string]any {
	if b.kind == reasoningBlock {
		return map[string]any{"type": "reasoning_text", "text": text}
	}
	probs := b.probs
	if text == "" {
		probs = nil
	}
	return map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": f.logprobs(probs)}
}

func (f *responseForm) logprobs(probs []logprob) []chatLogprob {
	if all := f.a.call.chatLogprobs(probs); all != nil {
		return all.Content
	}
	return []chatLogprob{}
}

func (f *responseForm) whole(list []piece) any {
	f.add(&list[0])
	return f.response(&list[0])
}

// event numbers an event.
func (f *responseForm) event(name string, fields map[string]any) event {
	fields["type"], fields["sequence_number"] = name, f.sent
	f.sent++
	return event{name, fields}
}

// failed is the event of an error.
func (f *responseForm) failed(e *Error) event {
	return f.event("error", map[string]any{"code": e.Code, "message": e.Message, "param": e.Param})
}

func (f *responseForm) events(p *piece, last bool) (list []event) {
	send := func(name string, fields map[string]any) { list = append(list, f.event("response."+name, fields)) }
	if p.first {
		send("created", map[string]any{"response": f.response(nil)})
		send("in_progress", map[string]any{"response": f.response(nil)})
	}
	for _, s := range f.add(p) {
		name := [...]string{"reasoning_text", "output_text", "function_call_arguments"}[s.block.kind]
		at := func(fields map[string]any) map[string]any { // with the place
			fields["item_id"], fields["output_index"] = f.itemID(s.at), s.at
			if s.block.kind != callBlock {
				fields["content_index"] = 0
			}
			return fields
		}
		switch s.kind {
		case opens:
			item := f.item(s.at, s.block, "in_progress")
			send("output_item.added", map[string]any{"output_index": s.at, "item": item})
			if s.block.kind != callBlock {
				send("content_part.added", at(map[string]any{"part": f.part(s.block, "")}))
			}
		case adds:
			fields := at(map[string]any{"delta": s.text})
			if s.block.kind == textBlock {
				fields["logprobs"] = f.logprobs(s.probs)
			}
			send(name+".delta", fields)
		case closes:
			switch s.block.kind {
			case callBlock:
				send(name+".done", at(map[string]any{"arguments": s.block.text, "name": s.call.Function.Name}))
			case textBlock:
				send(name+".done", at(map[string]any{"text": s.block.text, "logprobs": f.logprobs(s.block.probs)}))
			default:
				send(name+".done", at(map[string]any{"text": s.block.text}))
			}
			if s.block.kind != callBlock {
				send("content_part.done", at(map[string]any{"part": f.part(s.block, s.block.text)}))
			}
			item := f.item(s.at, s.block, f.status(s.at, p))
			send("output_item.done", map[string]any{"output_index": s.at, "item": item})
		}
	}
	if last {
		r := f.response(p)
		send(r["status"].(string), map[string]any{"response": r})
	}
	return list
}
