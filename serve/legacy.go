package serve

import "encoding/json"

// OpenAI's first form of tools: functions and function_call in the request, function_call in messages
// of the assistant, and results in messages of the role function.

// fromOldFunctions makes functions tools. The answer has one call, in the same form.
func (o *object) fromOldFunctions() {
	list := o.objects("functions")
	if len(list) == 0 || o.has("tools") {
		return
	}
	for _, f := range list {
		o.err = firstOf(o.err, f.err)
	}
	o.putList("tools", list)
	delete(o.fields, "functions")
	o.name("tools", "functions")
	o.put("parallel_tool_calls", false)
	o.oldFunctions = true
	if word, isWord := decode[string](o.fields["function_call"]); isWord {
		o.put("tool_choice", word)
		o.name("tool_choice", "function_call")
	} else if in := o.object("function_call"); in != nil {
		name := ""
		in.read("name", &name)
		o.setFunction(name, "function_call.name")
		o.err = firstOf(o.err, in.err)
	}
	delete(o.fields, "function_call")
}

// fromOldMessage makes a call, or its result, one that chat templates know.
func (o *object) fromOldMessage() {
	role := ""
	o.read("role", &role)
	if role == "function" {
		o.put("role", "tool")
	}
	in := o.object("function_call")
	if in == nil || o.has("tool_calls") {
		return
	}
	name, arguments := "", "{}"
	in.read("name", &name)
	in.read("arguments", &arguments)
	text, _ := json.Marshal(arguments)
	o.put("tool_calls", []calledTool{newCalledTool("", name, text)})
	o.err = firstOf(o.err, in.err)
	delete(o.fields, "function_call")
}

// oldCall is the call of an answer in the old form; nil where there is none.
func (c *call) oldCall(calls []toolCall) *calledFunction {
	if !c.oldFunctions || len(calls) == 0 {
		return nil
	}
	return &calls[0].Function
}

// oldFinish is why an answer in the old form ended.
func (c *call) oldFinish(reason string) string {
	if c.oldFunctions && reason == "tool_calls" {
		return "function_call"
	}
	return reason
}
