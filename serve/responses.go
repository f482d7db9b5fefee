package serve

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
)

// OpenAI's POST /v1/responses. store.go keeps the last responses.

// responses answers POST /v1/responses.
func (s *Server) responses(x *exchange) error {
	m, o, err := x.readModel()
	if err != nil {
		return err
	}
	given := maps.Clone(o.fields)
	fresh := o.readStored(s.stored, x.tenant)
	o.fromResponses()
	c, err := x.readConversation(o, m)
	if err != nil {
		return err
	}
	return x.answer(c, func(a *answering) form { return newResponseForm(a, given, fresh) })
}

const unstored = "this server stores no responses: send the whole conversation as input"

// fromResponses makes the body of a chat completion of a response's.
func (o *object) fromResponses() {
	o.refuse("conversation", "this server keeps no conversations: use previous_response_id")
	o.refuse("background", "this server answers while the client waits: leave it out", "false")
	o.refuse("prompt", "this server has no prompts: send the text as input")
	switch truncation := "disabled"; {
	case o.read("truncation", &truncation) && truncation != "disabled" && truncation != "auto":
		o.fail("truncation", "%q: want auto or disabled", truncation)
	default:
		o.put("truncate", truncation == "auto")
	}
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
		o.offerTools(false)
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
	kind := ""
	name := ""
	namespace := ""
	in.read("type", &kind)
	in.read("name", &name)
	in.read("namespace", &namespace)
	switch kind {
	case "allowed_tools":
		o.readAllowed(in)
		return
	case "function", "custom":
	default:
		in.fail("type", "%q: want function, custom or allowed_tools: this server runs no tools", kind)
	}
	o.setFunction(o.offeredName(namespace, name), "tool_choice.name")
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
	turn := (*object)(nil) // of the assistant
	said := ""
	reasoned := ""
	calls := []calledTool(nil)
	assistant := func(in *object) {
		if turn == nil {
			turn = add(in.path[:len(in.path)-1], "assistant", "")
			said = ""
			reasoned = ""
			calls = nil
		}
	}
	for _, in := range o.objects("input") {
		path := in.path[:len(in.path)-1]
		kind := "message"
		role := ""
		in.read("type", &kind)
		switch kind {
		case "message":
			in.read("role", &role)
			if role == "" {
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
			text := in.text("content")
			if text == "" {
				text = in.text("summary")
			}
			reasoned += text
			turn.put("reasoning_content", reasoned)
		case "function_call", "custom_tool_call":
			assistant(in)
			calls = append(calls, in.responseCall(kind))
			turn.put("tool_calls", calls)
		case "function_call_output", "custom_tool_call_output":
			turn = nil
			result := add(path, "tool", in.text("output"))
			result.fields["tool_call_id"] = in.fields["call_id"]
		default:
			in.fail("type", "%q: want message, reasoning, item_reference, or a call of a function or custom tool or its output", kind)
		}
		o.err = firstOf(o.err, in.err)
	}
	return list
}

// responseCall reads an earlier call.
func (o *object) responseCall(kind string) calledTool {
	id := ""
	name := ""
	namespace := ""
	text := ""
	o.read("call_id", &id)
	o.read("name", &name)
	o.read("namespace", &namespace)
	name = qualified(namespace, name)
	if kind == "custom_tool_call" {
		o.read("input", &text)
		return newCustomCall(id, name, text)
	}
	o.read("arguments", &text)
	return newCalledTool(id, name, argumentsOf(text))
}

// responseForm is the form of responses.
type responseForm struct {
	a       *answering
	id      string
	given   map[string]json.RawMessage // the request's fields
	fresh   []json.RawMessage          // items that are new in the request
	store   *responseStore             // nil: it is not to be kept
	summary bool                       // the reasoning is shown as its summary
	sent    int                        // events
	blocks
}

func newResponseForm(a *answering, given map[string]json.RawMessage, fresh []json.RawMessage) form {
	if list, ok := decode[[]map[string]json.RawMessage](given["tools"]); ok { // clients expect all fields
		for _, tool := range list {
			if string(tool["type"]) != `"function"` {
				continue
			}
			for name, value := range map[string]string{"strict": "true", "parameters": "null"} {
				if tool[name] == nil {
					tool[name] = json.RawMessage(value)
				}
			}
		}
		given["tools"], _ = json.Marshal(list)
	}
	f := &responseForm{a: a, id: rand.Text(), given: given, fresh: fresh, store: a.s.stored}
	if keep, ok := decode[bool](given["store"]); ok && !keep {
		f.store = nil
	}
	reasoning, _ := decode[struct{ Summary *string }](given["reasoning"])
	f.summary = reasoning.Summary != nil
	return f
}

// response is the answer so far; p is nil at its beginning.
func (f *responseForm) response(p *piece) map[string]any {
	r := map[string]any{"id": "resp_" + f.id, "object": "response", "created_at": f.a.began.Unix(),
		"status": "in_progress", "model": f.a.call.model.Name, "error": nil, "incomplete_details": nil,
		"output": []any{}, "usage": nil}
	for name, value := range map[string]string{"instructions": "null", "max_output_tokens": "null", "metadata": "{}",
		"parallel_tool_calls": "true", "reasoning": "null", "temperature": "1", "text": `{"format":{"type":"text"}}`,
		"tool_choice": `"auto"`, "tools": "[]", "top_p": "1", "truncation": `"disabled"`,
		"previous_response_id": "null"} {
		r[name] = json.RawMessage(value)
		if f.given[name] != nil && string(f.given[name]) != "null" {
			r[name] = f.given[name]
		}
	}
	r["store"] = f.store != nil
	if p == nil {
		delete(r, "usage")
		return r
	}
	r["status"] = "completed"
	if p.finish == "length" {
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
	if f.store != nil {
		previous, _ := decode[string](f.given["previous_response_id"])
		f.store.add(&storedResponse{id: "resp_" + f.id, tenant: f.a.tenant, previous: previous, input: f.fresh}, r)
	}
	return r
}

// status is that of a block which has ended.
func (f *responseForm) status(at int, p *piece) string {
	if p.finish == "length" && at == len(f.list)-1 {
		return "incomplete"
	}
	return "completed"
}

// itemID is the id of a block's item, which begins as OpenAI's do.
func (f *responseForm) itemID(at int) string {
	kind := [...]string{"rs", "msg", "fc"}[f.list[at].kind]
	if f.list[at].call.Custom != nil {
		kind = "ctc"
	}
	return fmt.Sprintf("%s_%s_%d", kind, f.id, at)
}

// item is a block; without its text while it is in progress.
func (f *responseForm) item(at int, b *block, status string) map[string]any {
	i := map[string]any{"id": f.itemID(at)}
	if b.call.Custom == nil {
		i["status"] = status
	}
	text, content := "", []any{}
	if status != "in_progress" {
		text, content = b.text, []any{f.part(b, b.text)}
	}
	switch b.kind {
	case reasoningBlock:
		i["type"], i["summary"] = "reasoning", content
		if !f.summary {
			i["summary"], i["content"] = []any{}, content
		}
	case textBlock:
		i["type"] = "message"
		i["role"] = "assistant"
		i["content"] = content
	default:
		as, known := f.a.call.offered[b.call.Function.Name]
		if !known {
			as.name = b.call.Function.Name
		}
		i["type"] = "function_call"
		i["call_id"] = b.call.ID
		i["name"] = as.name
		if as.namespace != "" {
			i["namespace"] = as.namespace
		}
		if as.custom {
			i["type"], i["input"] = "custom_tool_call", text
		} else {
			i["arguments"] = text
		}
	}
	return i
}

// part is the content of a block.
func (f *responseForm) part(b *block, text string) map[string]any {
	if b.kind == reasoningBlock {
		kind := "reasoning_text"
		if f.summary {
			kind = "summary_text"
		}
		return map[string]any{"type": kind, "text": text}
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

// eventLogprobs are those of events, which have no bytes.
func (f *responseForm) eventLogprobs(probs []logprob) []eventLogprob {
	list := []eventLogprob{}
	for _, l := range f.logprobs(probs) {
		one := eventLogprob{l.Token, l.Logprob, []eventTop{}}
		for _, top := range l.TopLogprobs {
			one.TopLogprobs = append(one.TopLogprobs, eventTop{top.Token, top.Logprob})
		}
		list = append(list, one)
	}
	return list
}

type eventLogprob struct {
	Token       string     `json:"token"`
	Logprob     float32    `json:"logprob"`
	TopLogprobs []eventTop `json:"top_logprobs"`
}

type eventTop struct {
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
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

// names are what the events of a block are called, those of its part, and the field that has the part's index.
func (f *responseForm) names(b *block) (name, part, index string) {
	switch {
	case b.call.Custom != nil:
		return "custom_tool_call_input", "", ""
	case b.kind == callBlock:
		return "function_call_arguments", "", ""
	case b.kind == textBlock:
		return "output_text", "content_part", "content_index"
	case f.summary:
		return "reasoning_summary_text", "reasoning_summary_part", "summary_index"
	}
	return "reasoning_text", "content_part", "content_index"
}

func (f *responseForm) events(p *piece, last bool) (list []event) {
	send := func(name string, fields map[string]any) { list = append(list, f.event("response."+name, fields)) }
	if p.first {
		send("created", map[string]any{"response": f.response(nil)})
		send("in_progress", map[string]any{"response": f.response(nil)})
	}
	for _, s := range f.add(p) {
		name, part, index := f.names(s.block)
		at := func(fields map[string]any) map[string]any { // with the place
			fields["item_id"], fields["output_index"] = f.itemID(s.at), s.at
			if index != "" {
				fields[index] = 0
			}
			return fields
		}
		switch s.kind {
		case opens:
			item := f.item(s.at, s.block, "in_progress")
			send("output_item.added", map[string]any{"output_index": s.at, "item": item})
			if s.block.kind != callBlock {
				send(part+".added", at(map[string]any{"part": f.part(s.block, "")}))
			}
		case adds:
			fields := at(map[string]any{"delta": s.text})
			if s.block.kind == textBlock {
				fields["logprobs"] = f.eventLogprobs(s.probs)
			}
			send(name+".delta", fields)
		case closes:
			switch s.block.kind {
			case callBlock:
				if s.call.Custom != nil {
					send(name+".done", at(map[string]any{"input": s.block.text}))
				} else {
					send(name+".done", at(map[string]any{"arguments": s.block.text, "name": s.call.Function.Name}))
				}
			case textBlock:
				send(name+".done", at(map[string]any{"text": s.block.text, "logprobs": f.eventLogprobs(s.block.probs)}))
			default:
				send(name+".done", at(map[string]any{"text": s.block.text}))
			}
			if s.block.kind != callBlock {
				send(part+".done", at(map[string]any{"part": f.part(s.block, s.block.text)}))
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
