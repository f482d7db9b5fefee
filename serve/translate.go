package serve

import "encoding/json"

// Other protocols' bodies become bodies of chat completions, which chat templates know too. A
// translation moves and makes fields; names tells errors what the client calls them.

// rename moves a field. Errors go on to name it as the client does.
func (o *object) rename(from, to string) {
	if raw, ok := o.fields[from]; ok {
		delete(o.fields, from)
		o.fields[to] = raw
		o.name(to, o.nameOf(from))
	}
}

// name says that errors about a field are to name another.
func (o *object) name(field, given string) {
	if o.names == nil {
		o.names = map[string]string{}
	}
	o.names[field] = given
}

// put makes a field of a value that has a JSON form.
func (o *object) put(name string, value any) {
	o.fields[name], _ = json.Marshal(value)
}

// newObject makes an object that is no part of the body. Errors about its fields begin with path.
func newObject(path string) *object {
	return &object{path: path + ".", fields: map[string]json.RawMessage{}}
}

// putList makes a field that is a list of objects. The first error of them is the body's.
func (o *object) putList(name string, list []*object) {
	if o.lists == nil {
		o.lists = map[string][]*object{}
	}
	o.lists[name] = list
	for _, in := range list {
		o.err = firstOf(o.err, in.err)
	}
}

// oneChoice refuses or drops the fields that make several choices, which the protocol cannot show.
func (o *object) oneChoice() {
	o.refuse("n", unlike, "1")
	delete(o.fields, "race")
}

// setThinking has the model reason or not: by the variable of chat templates, and where it reasons
// all the same by a budget of 0.
func (o *object) setThinking(on bool) {
	o.setVariable("enable_thinking", on)
	if !on {
		o.put("reasoning_budget", 0)
	}
}

// setEffort has the model reason as much as one of OpenAI's levels says. Variables of the chat template that
// the request has itself stay.
func (o *object) setEffort(effort string) {
	if effort == "" {
		return
	}
	given := map[string]json.RawMessage{}
	o.read("chat_template_kwargs", &given)
	if given["enable_thinking"] == nil {
		o.setThinking(effort != "none")
	}
	if effort != "none" && given["reasoning_effort"] == nil {
		o.setVariable("reasoning_effort", effort)
	}
}

// setVariable sets a variable of the chat template.
func (o *object) setVariable(name string, value any) {
	vars := map[string]json.RawMessage{}
	o.read("chat_template_kwargs", &vars)
	vars[name], _ = json.Marshal(value)
	o.put("chat_template_kwargs", vars)
}

// setSchema has the output match a JSON schema, which errors name as given.
func (o *object) setSchema(schema json.RawMessage, given string) {
	o.put("response_format", map[string]any{"type": "json_schema", "json_schema": map[string]any{"schema": schema}})
	o.name("response_format.json_schema.schema", given)
}

// setFunction has the model call a function, whose name errors call given.
func (o *object) setFunction(name, given string) {
	o.put("tool_choice", map[string]any{"function": map[string]string{"name": name}})
	o.name("tool_choice.function.name", given)
}

// calledTool is an earlier call as chat templates know it, with arguments as an object.
type calledTool struct {
	ID       string `json:"id,omitempty"`
	Type     string `json:"type"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

func newCalledTool(id, name string, arguments json.RawMessage) calledTool {
	c := calledTool{ID: id, Type: "function"}
	c.Function.Name, c.Function.Arguments = name, arguments
	if arguments == nil {
		c.Function.Arguments = json.RawMessage("{}")
	}
	return c
}
