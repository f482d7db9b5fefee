package serve

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
)

// Lists of tools have kinds that a model does not know: namespaces, custom tools, and tools that
// the server runs. The model is offered only functions; offered holds the client's name for each.

// offered is a tool as the client knows it, if that differs from the function that the model is offered.
type offered struct {
	name, namespace string
	custom          bool // it takes text, which the function gets as its argument input
}

// toolBody is a tool of a request: a function, or another kind. Its fields are in the object
// itself, as in responses, or in a field named after its kind, as in chat completions.
type toolBody struct {
	functionBody
	Type     field[string]       `json:"type"`
	Function field[functionBody] `json:"function"`
	Custom   field[functionBody] `json:"custom"`
	Tools    []toolBody          `json:"tools"` // of a namespace
}

// offerAll offers the tools of a request. wrapped reports whether a function is in a field of its own.
func (t *toolset) offerAll(f *field[[]toolBody], wrapped bool) error {
	t.path = f.path
	for i := range f.value {
		if err := t.offer(&f.value[i], "", wrapped); err != nil {
			return err
		}
	}
	return nil
}

// offer turns a tool into functions: several for a namespace. It leaves out tools that the server
// would have to run, with a warning.
func (t *toolset) offer(in *toolBody, namespace string, wrapped bool) error {
	f := in.functionBody
	switch kind := in.Type.or("function"); kind {
	case "function":
		if wrapped && !in.Function.given {
			return in.Function.fail("the field is required")
		}
		if in.Function.given {
			f = in.Function.value
		}
		if namespace == "" {
			t.list = append(t.list, f)
			return nil
		}
		return t.offerAs(f, offered{name: f.Name.value, namespace: namespace})
	case "custom":
		if in.Custom.given {
			f = in.Custom.value
		}
		if err := t.takeInput(&f); err != nil {
			return err
		}
		return t.offerAs(f, offered{name: f.Name.value, namespace: namespace, custom: true})
	case "namespace":
		switch {
		case namespace != "":
			return in.Type.fail("a namespace cannot contain another one")
		case f.Name.value == "":
			return f.Name.fail("the field is required")
		}
		for i := range in.Tools {
			if err := t.offer(&in.Tools[i], f.Name.value, wrapped); err != nil {
				return err
			}
		}
	default:
		t.leaveOut(&in.Type)
	}
	return nil
}

// leaveOut warns that a tool of some type, or an earlier call of one, is left out.
func (t *toolset) leaveOut(kind *field[string]) {
	t.warnings = append(t.warnings, warning(kind.path, "%q: this server runs no tools: it is ignored", kind.value))
}

// offerAs offers a function under a name that distinguishes it from others.
func (t *toolset) offerAs(f functionBody, as offered) error {
	if t.offered == nil {
		t.offered = map[string]offered{}
	}
	name := qualified(as.namespace, as.name)
	if _, taken := t.offered[name]; taken {
		return f.Name.fail("%q: another tool has that name: rename one", as.name)
	}
	t.offered[name] = as
	f.Name.set(name)
	t.list = append(t.list, f)
	return nil
}

// maxToolName is the maximum length of a name that the server makes, in bytes.
const maxToolName = 64

// qualified returns the name under which the model is offered a tool of a namespace. A long name
// ends with a hash of the whole name, so that it is the same in every request.
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

// inputFormat is what the text of a custom tool must match. Chat completions wrap the grammar's
// fields in a field of its own.
type inputFormat struct {
	inputGrammar
	Type    field[string]       `json:"type"`
	Grammar field[inputGrammar] `json:"grammar"`
}

type inputGrammar struct {
	Syntax     field[string] `json:"syntax"`
	Definition field[string] `json:"definition"`
}

// inputParameters are the parameters of the function that represents a custom tool.
type inputParameters struct {
	Type       string `json:"type"`
	Properties struct {
		Input inputProperty `json:"input"`
	} `json:"properties"`
	Required   []string `json:"required"`
	Additional bool     `json:"additionalProperties"`
}

type inputProperty struct {
	Type    string `json:"type"`
	Pattern string `json:"pattern,omitempty"`
}

// takeInput gives a custom tool the parameters of a function: one text, which matches a regular
// expression if one is given. Other grammars are described to the model but not enforced.
func (t *toolset) takeInput(f *functionBody) error {
	p := inputParameters{Type: "object", Required: []string{"input"}}
	p.Properties.Input.Type = "string"
	format := &f.Format.value
	from := &format.inputGrammar
	if format.Grammar.given {
		from = &format.Grammar.value
	}
	switch kind := format.Type.or("text"); kind {
	case "text":
	case "grammar":
		definition := from.Definition.value
		if definition == "" {
			return from.Definition.fail("the field is required")
		}
		switch syntax := from.Syntax.value; syntax {
		case "regex":
			p.Properties.Input.Pattern = "^(?:" + definition + ")$"
		case "lark":
			f.Description.set(strings.TrimSpace(f.Description.value + "\n\nThe input matches this Lark grammar:\n" + definition))
			warned := warning(from.Syntax.path, "%q: the grammar is part of the prompt, but is not enforced", syntax)
			t.warnings = append(t.warnings, warned)
		default:
			return from.Syntax.fail("%q: want regex or lark", syntax)
		}
	default:
		return format.Type.fail("%q: want text or grammar", kind)
	}
	parameters, _ := json.Marshal(p)
	f.Parameters.set(parameters)
	return nil
}

// nameOf returns the model's name for the tool that a choice names, with or without its namespace.
func (t *toolset) nameOf(namespace, name string) string {
	if namespace != "" {
		return qualified(namespace, name)
	}
	for i := range t.list {
		if t.list[i].Name.value == name {
			return name
		}
	}
	for as, tool := range t.offered {
		if tool.name == name {
			return as
		}
	}
	return name
}

// toolChoice selects the tools that may be called: by a word, a tool, or several.
type toolChoice struct {
	word string
	toolReference
	allowedTools
	Allowed field[allowedTools] `json:"allowed_tools"` // chat completions wrap it in a field of its own
}

func (c *toolChoice) readJSON(d *decoder, path string, raw json.RawMessage) error {
	if word, isWord := decode[string](raw); isWord {
		c.word = word
		return nil
	}
	type object toolChoice
	return d.read(path, raw, (*object)(c))
}

// toolReference names a tool. Its fields are in the object itself, as in responses, or in a field
// named after its kind, as in chat completions.
type toolReference struct {
	toolID
	Type     field[string] `json:"type"`
	Function field[toolID] `json:"function"`
	Custom   field[toolID] `json:"custom"`
}

type toolID struct {
	Name      field[string] `json:"name"`
	Namespace string        `json:"namespace"`
}

// id returns the part that has the name.
func (r *toolReference) id() *toolID {
	switch {
	case r.Function.given:
		return &r.Function.value
	case r.Custom.given:
		return &r.Custom.value
	}
	return &r.toolID
}

// allowedTools are the offered tools that may be called.
type allowedTools struct {
	Mode  field[string]   `json:"mode"`
	Tools []toolReference `json:"tools"`
}

// chooseAllowed sets the tools that may be called, and whether one must be.
func (t *toolset) chooseAllowed(a *allowedTools, path string) error {
	mode := a.Mode.value
	if mode != "auto" && mode != "required" {
		return a.Mode.fail("%q: want auto or required", mode)
	}
	t.only = []string{}
	whole := map[string]bool{} // namespaces
	for i := range a.Tools {
		r := &a.Tools[i]
		id := r.id()
		switch r.Type.or("function") {
		case "function", "custom":
			t.only = append(t.only, t.nameOf(id.Namespace, id.Name.value))
		case "namespace":
			whole[id.Name.value] = true
		} // others were left out and cannot be called
	}
	for as, known := range t.offered {
		if whole[known.namespace] {
			t.only = append(t.only, as)
		}
	}
	if len(t.only) == 0 && mode == "auto" {
		mode = "none"
	}
	return t.chooseMode(mode, path)
}

// customCall is a call of a custom tool, as chat completions show it.
type customCall struct {
	Name  string `json:"name,omitempty"`
	Input string `json:"input"`
}

// customCalls converts the arguments of calls of custom tools, as they arrive, to the tools' text.
type customCalls struct {
	offered map[string]offered
	custom  bool   // the current call
	have    string // its arguments so far
	sent    int    // bytes of its text
}

// convert replaces arguments by text.
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

// inputOf returns the text in the arguments of a custom tool, as far as they have arrived.
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

// highHalf matches the escape of a high surrogate.
var highHalf = regexp.MustCompile(`^\\u[dD][89abAB]`)

// shownCalls returns calls as chat completions show them.
func shownCalls(calls []toolCall) []toolCall {
	for i := range calls {
		if calls[i].Custom != nil {
			calls[i].Function = calledFunction{}
		}
	}
	return calls
}

// newCustomCall returns an earlier call of a custom tool.
func newCustomCall(id, name, input string) calledTool {
	arguments, _ := json.Marshal(struct {
		Input string `json:"input"`
	}{input})
	return newCalledTool(id, name, arguments)
}
