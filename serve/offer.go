package serve

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
)

// Lists of tools have kinds that a model does not know: of a namespace, custom, and run by the server.
// The model is offered functions alone; offered says what the client calls each.

// offered is a tool as the client knows it, where that is not the function that the model is offered.
type offered struct {
	name, namespace string
	custom          bool // it takes text, which the function has as its argument input
}

// offerTools makes the tools functions. Those that the server would have to run are left out with a
// warning. wrapped says that a tool's fields are in a field of its type's name, as in chat completions.
func (o *object) offerTools(wrapped bool) {
	given := o.objects("tools")
	list := []*object{}
	changed := !wrapped
	for _, in := range given {
		kind := "function"
		in.read("type", &kind)
		changed = changed || kind != "function"
		list = append(list, o.offer(in, kind, "", wrapped)...)
	}
	if o.err != nil || !changed {
		return
	}
	o.putList("tools", list)
	if len(list) == 0 {
		delete(o.fields, "tools")
		delete(o.lists, "tools")
	}
}

// offer makes functions of a tool, of which a namespace has several.
func (o *object) offer(in *object, kind, namespace string, wrapped bool) (list []*object) {
	if in.err != nil {
		o.err = firstOf(o.err, in.err)
		return nil
	}
	defer func() { o.err = firstOf(o.err, in.err) }()
	f := in
	if _, isObject := decode[map[string]json.RawMessage](in.fields[kind]); wrapped && isObject {
		f = in.object(kind)
		defer func() { in.err = firstOf(in.err, f.err) }()
	}
	name := ""
	switch kind {
	case "function":
		f.read("name", &name)
		if namespace != "" {
			o.offerAs(f, offered{name: name, namespace: namespace})
		}
		delete(f.fields, "type")
		return []*object{f}
	case "custom":
		delete(f.fields, "type")
		f.read("name", &name)
		o.offerAs(f, offered{name: name, namespace: namespace, custom: true})
		o.readInput(f)
		return []*object{f}
	case "namespace":
		in.read("name", &name)
		if name == "" {
			in.fail("name", "it is missing")
		}
		for _, tool := range in.objects("tools") {
			kind := "function"
			tool.read("type", &kind)
			if kind == "namespace" {
				tool.fail("type", "a namespace has no namespaces in it")
			}
			list = append(list, o.offer(tool, kind, name, wrapped)...)
			in.err = firstOf(in.err, tool.err)
		}
		return list
	}
	if in.err == nil {
		in.warn("type", "%q: this server runs no tools: it is left out", kind)
		o.warnings = append(o.warnings, in.warnings...)
	}
	return nil
}

// offerAs gives a function the name that the model is offered.
func (o *object) offerAs(f *object, as offered) {
	if o.offered == nil {
		o.offered = map[string]offered{}
	}
	name := qualified(as.namespace, as.name)
	if _, taken := o.offered[name]; taken {
		f.fail("name", "%q: another tool has that name", as.name)
	}
	o.offered[name] = as
	f.put("name", name)
}

// maxToolName is the most bytes that the name of a function may have.
const maxToolName = 64

// qualified is the name that the model is offered for a tool of a namespace. A long one ends with a
// sum of its whole, so that it is the same in each request.
func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	whole := strings.TrimRight(namespace, "_") + "__" + name
	if len(whole) <= maxToolName {
		return whole
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(whole))
	return fmt.Sprintf("%s_%08x", whole[:maxToolName-9], sum.Sum32())
}

// readInput gives a custom tool the parameters of a function: a text, which matches a regular
// expression where one is given. Other grammars are told to the model, and not enforced.
func (o *object) readInput(f *object) {
	input := map[string]any{"type": "string"}
	if format := f.object("format"); format != nil {
		kind := "text"
		syntax := ""
		definition := ""
		format.read("type", &kind)
		from := format
		if format.has("grammar") { // chat completions have its fields in there
			from = format.object("grammar")
		}
		switch {
		case kind == "grammar" && from != nil:
			from.read("syntax", &syntax)
			from.read("definition", &definition)
			if definition == "" {
				from.fail("definition", "it is missing")
			}
		case kind != "text":
			format.fail("type", "%q: want text or grammar", kind)
		}
		switch syntax {
		case "":
		case "regex":
			input["pattern"] = "^(?:" + definition + ")$"
		case "lark":
			description := ""
			f.read("description", &description)
			f.put("description", strings.TrimSpace(description+"\n\nThe input matches this Lark grammar:\n"+definition))
			format.warn("syntax", "%q: the grammar is told to the model, and not enforced", syntax)
			o.warnings = append(o.warnings, format.warnings...)
		default:
			from.fail("syntax", "%q: want regex or lark", syntax)
		}
		f.err = firstOf(f.err, firstOf(format.err, from.err))
	}
	f.put("parameters", map[string]any{"type": "object", "properties": map[string]any{"input": input},
		"required": []string{"input"}, "additionalProperties": false})
}

// offeredName is what the model is offered a tool as that a choice names, with or without its namespace.
func (o *object) offeredName(namespace, name string) string {
	if namespace != "" {
		return qualified(namespace, name)
	}
	if _, known := o.offered[name]; known {
		return name
	}
	for _, in := range o.objects("tools") {
		if decoded, _ := decode[string](in.fields["name"]); decoded == name {
			return name
		}
	}
	for as, tool := range o.offered {
		if tool.name == name {
			return as
		}
	}
	return name
}

// readAllowed reads a choice of the type allowed_tools: in is the list and its mode. It makes the
// choice one of the mode and the names that the model is offered.
func (o *object) readAllowed(in *object) {
	mode := ""
	in.read("mode", &mode)
	if mode != "auto" && mode != "required" {
		in.fail("mode", "%q: want auto or required", mode)
	}
	names := []string{}
	for _, tool := range in.objects("tools") {
		kind := "function"
		name := ""
		namespace := ""
		tool.read("type", &kind)
		from := tool
		if tool.has(kind) { // as chat completions have it
			from = tool.object(kind)
		}
		if from == nil {
			in.err = firstOf(in.err, tool.err)
			continue
		}
		from.read("name", &name)
		from.read("namespace", &namespace)
		switch kind {
		case "function", "custom":
			names = append(names, o.offeredName(namespace, name))
		case "namespace":
			for as, known := range o.offered {
				if known.namespace == name {
					names = append(names, as)
				}
			}
		} // of others, which are left out, none can be called
		in.err = firstOf(in.err, firstOf(tool.err, from.err))
	}
	o.put("tool_choice", map[string]any{"allowed": names, "mode": mode})
	o.err = firstOf(o.err, in.err)
}

// customCall is a call of a custom tool, as chat completions show it.
type customCall struct {
	Name  string `json:"name,omitempty"`
	Input string `json:"input"`
}

// customCalls turns the arguments of calls of custom tools, as they come, into the tools' text.
type customCalls struct {
	offered map[string]offered
	custom  bool   // the call that goes on
	have    string // its arguments so far
	sent    int    // bytes of its text
}

// convert puts text in the place of arguments.
func (c *customCalls) convert(calls []toolCall) {
	for i := range calls {
		call := &calls[i]
		name := call.Function.Name
		if call.ID != "" {
			*c = customCalls{offered: c.offered, custom: c.offered[name].custom}
		}
		if !c.custom {
			continue
		}
		c.have += call.Function.Arguments
		text := inputOf(c.have)
		call.Function.Arguments = text[c.sent:]
		call.Custom = &customCall{Name: c.offered[name].name, Input: text[c.sent:]}
		c.sent = len(text)
		if call.Type != "" {
			call.Type = "custom"
		}
	}
}

// inputOf is the text in the arguments of a custom tool, as far as they are there.
func inputOf(arguments string) string {
	_, text, found := strings.Cut(arguments, `"input"`)
	if found {
		_, text, found = strings.Cut(text, `"`)
	}
	if !found {
		return ""
	}
	end := 0
	for end < len(text) && text[end] != '"' {
		n := 1
		switch rest := text[end:]; {
		case highHalf.MatchString(rest): // the other half of the character follows
			n = 12
		case strings.HasPrefix(rest, `\u`):
			n = 6
		case rest[0] == '\\':
			n = 2
		}
		if end+n > len(text) {
			break
		}
		end += n
	}
	text, _ = decode[string](json.RawMessage(`"` + text[:end] + `"`))
	return text
}

// highHalf matches the escape of a surrogate that begins a pair.
var highHalf = regexp.MustCompile(`^\\u[dD][89abAB]`)

// shownCalls are calls as chat completions show them.
func shownCalls(calls []toolCall) []toolCall {
	for i := range calls {
		if calls[i].Custom != nil {
			calls[i].Function = calledFunction{}
		}
	}
	return calls
}

// openCalls makes earlier calls in OpenAI's form those that chat templates know: functions with
// arguments as objects.
func openCalls(raw json.RawMessage) json.RawMessage {
	list, ok := decode[[]json.RawMessage](raw)
	if !ok {
		return raw
	}
	for i := range list {
		call, isObject := decode[struct {
			ID     string
			Custom *customCall
		}](list[i])
		if isObject && call.Custom != nil {
			list[i], _ = json.Marshal(newCustomCall(call.ID, call.Custom.Name, call.Custom.Input))
		}
	}
	out, _ := json.Marshal(list)
	return openArguments(out)
}

// newCustomCall is an earlier call of a custom tool.
func newCustomCall(id, name, input string) calledTool {
	arguments, _ := marshal(map[string]string{"input": input})
	return newCalledTool(id, name, arguments)
}
