package serve

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/chat"
)

// toolName is what a function may be called.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// toolFormats tell by a text of its chat template how a model writes calls.
var toolFormats = []struct{ text, format string }{{"<tool_call>", "hermes"}, {"[TOOL_CALLS]", "mistral"}, {"<|python_tag|>", "llama3"}}

// toolFormat is how the model of a layout writes calls; empty where it is not known to write any.
func toolFormat(layout *chat.Layout) string {
	for _, f := range toolFormats {
		if layout.Mentions(f.text) {
			return f.format
		}
	}
	return ""
}

// readTools reads the functions that a model may call, for its prompt and for its output.
func (c *call) readTools(o *object, layout *chat.Layout, options *chat.Options) {
	choice, only := c.readToolChoice(o)
	parallel := true
	o.read("parallel_tool_calls", &parallel)
	list := o.objects("tools")
	if o.err != nil || len(list) == 0 || choice == "none" {
		if len(list) == 0 && choice == "required" {
			o.fail("tool_choice", "there are no tools")
		}
		return
	}
	t := &grove.Tools{Required: choice == "required", Single: !parallel || choice == "required" && len(only) == 1}
	var shown []shownTool // to the chat template
	for _, in := range list {
		kind := "function"
		in.read("type", &kind)
		f := in
		if o.lists["tools"] == nil { // of a translation, tools are the functions themselves
			f = in.object("function")
		}
		if kind != "function" {
			in.fail("type", "%q: want function", kind)
		} else if f != nil {
			tool := grove.Tool{}
			if f.read("name", &tool.Name); !toolName.MatchString(tool.Name) {
				f.fail("name", "%q: want 1 to 64 letters, digits, _ or -", tool.Name)
			}
			if f.has("parameters") {
				tool.Parameters = string(f.fields["parameters"])
			}
			if only == nil || slices.Contains(only, tool.Name) {
				t.List = append(t.List, tool)
			}
			shown = append(shown, shownTool{"function", shownFunction{f.fields["name"], f.fields["description"], f.fields["parameters"]}})
			in.err = firstOf(in.err, f.err)
		} else if in.err == nil {
			in.fail("function", "it is missing")
		}
		o.err = firstOf(o.err, in.err)
	}
	t.Format = toolFormat(layout)
	switch {
	case t.Format == "":
		o.fail("tools", "the model's chat template does not know tools")
	case len(t.List) == 0:
		o.fail("tool_choice.function.name", "there is no tool %q", strings.Join(only, ", "))
	case c.constraint.param != "":
		o.fail("tools", "%s is given as well: give one of them", c.constraint.param)
	}
	if options.Tools = o.fields["tools"]; o.lists["tools"] != nil {
		options.Tools, _ = marshal(shown)
	}
	c.request.Tools, c.constraint.param = t, "tools"
}

// shownTool is a tool in OpenAI's form, which chat templates know.
type shownTool struct {
	Type     string        `json:"type"`
	Function shownFunction `json:"function"`
}

type shownFunction struct {
	Name        json.RawMessage `json:"name"`
	Description json.RawMessage `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// readToolChoice reads none, auto or required, and the names of the functions that may be called; nil for all.
func (c *call) readToolChoice(o *object) (choice string, only []string) {
	choice = "auto"
	if text, ok := decode[string](o.fields["tool_choice"]); ok {
		if choice = text; choice != "none" && choice != "auto" && choice != "required" {
			o.fail("tool_choice", "%q: want none, auto, required or a function", choice)
		}
	} else if in := o.object("tool_choice"); in != nil {
		choice, only = "required", []string{""}
		if in.has("allowed") { // see readAllowed
			in.read("mode", &choice)
			if only = in.strings("allowed"); len(only) == 0 && choice == "auto" {
				choice = "none"
			}
			return choice, append([]string{}, only...)
		}
		if f := in.object("function"); f != nil {
			f.read("name", &only[0])
		}
		if only[0] == "" {
			o.fail("tool_choice.function.name", "it is missing")
		}
	}
	return choice, only
}

// openArguments makes the arguments of earlier calls objects, as chat templates want them; in OpenAI's form they are JSON in strings.
// Fields keep their order: templates print calls.
func openArguments(raw json.RawMessage) json.RawMessage {
	list, ok := decode[[]json.RawMessage](raw)
	if !ok {
		return raw
	}
	for i := range list {
		list[i] = changeField(list[i], "function", func(function json.RawMessage) json.RawMessage {
			return changeField(function, "arguments", func(arguments json.RawMessage) json.RawMessage {
				if text, ok := decode[string](arguments); ok && json.Valid([]byte(text)) {
					return json.RawMessage(text)
				}
				return arguments
			})
		})
	}
	out, _ := json.Marshal(list)
	return out
}

// changeField changes a field of an object. What is no object stays as it is.
func changeField(raw json.RawMessage, name string, change func(json.RawMessage) json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return raw
	}
	out := []byte("{")
	for d.More() {
		var value json.RawMessage
		key, err := d.Token()
		if err != nil || d.Decode(&value) != nil {
			return raw
		}
		if key == name {
			value = change(value)
		}
		text, _ := json.Marshal(key) // a string
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = slices.Concat(out, text, []byte(":"), value)
	}
	return append(out, '}')
}
