package serve

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/internal/grammar"
)

// toolName is what a function may be called; protocols bound its length.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

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
			f.read("name", &tool.Name)
			if !toolName.MatchString(tool.Name) || len(tool.Name) > c.longestName {
				f.fail("name", "%q: want 1 to %d letters, digits, _ or -", tool.Name, c.longestName)
			}
			tool.Parameters = f.readParameters()
			if only == nil || slices.Contains(only, tool.Name) {
				t.List = append(t.List, tool)
			}
			shown = append(shown, shownTool{"function", shownFunction{f.fields["name"], f.fields["description"], f.fields["parameters"]}})
			in.err = firstOf(in.err, f.err)
			o.warnings = append(o.warnings, f.warnings...)
		} else if in.err == nil {
			in.fail("function", "it is missing")
		}
		o.err = firstOf(o.err, in.err)
	}
	form, err := layout.CallForm()
	t.Form = form
	switch {
	case err != nil:
		o.fail("tools", "%v", err)
	case len(t.List) == 0:
		o.fail("tool_choice.function.name", "there is no tool %q", strings.Join(only, ", "))
	case c.constraint.grammar != "":
		o.fail("tools", "%s is given as well: calls go together with a JSON schema or a regular expression alone", o.nameOf(c.constraint.param))
	}
	options.Tools = o.fields["tools"]
	if o.lists["tools"] != nil {
		options.Tools, _ = marshal(shown)
	}
	c.request.Tools = t
}

// readParameters reads the schema of a function's arguments. Where the function is not strict, what cannot be held is left out of it, with
// a warning.
func (o *object) readParameters() string {
	strict := false
	o.read("strict", &strict)
	if !o.has("parameters") {
		return ""
	}
	parameters := string(o.fields["parameters"])
	if strict {
		return parameters
	}
	r := relaxed(parameters)
	if r.err != nil {
		o.fail("parameters", "%v", r.err)
	}
	for _, place := range r.left {
		o.warn("parameters", "%s cannot be held, so that calls may violate it", place)
	}
	return r.schema
}

// relaxation is what grammar.Relax makes of a schema.
type relaxation struct {
	schema string
	left   []string
	err    error
}

// relaxations are those of the schemas that requests had lately: clients send the same tools again and again.
var relaxations = struct {
	sync.Mutex
	known map[string]relaxation
}{known: map[string]relaxation{}}

// mostRelaxations bounds how many are remembered.
const mostRelaxations = 1024

func relaxed(parameters string) relaxation {
	relaxations.Lock()
	defer relaxations.Unlock()
	if r, ok := relaxations.known[parameters]; ok {
		return r
	}
	var r relaxation
	r.schema, r.left, r.err = grammar.Relax(parameters)
	if len(relaxations.known) == mostRelaxations || len(parameters) > 1<<16 {
		clear(relaxations.known)
	}
	relaxations.known[parameters] = r
	return r
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
		choice = text
		if choice != "none" && choice != "auto" && choice != "required" {
			o.fail("tool_choice", "%q: want none, auto, required or a function", choice)
		}
	} else if in := o.object("tool_choice"); in != nil {
		choice, only = "required", []string{""}
		if in.has("allowed") { // see readAllowed
			in.read("mode", &choice)
			only = in.strings("allowed")
			if len(only) == 0 && choice == "auto" {
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
				text, isText := decode[string](arguments)
				switch {
				case string(arguments) == "null" || isText && strings.TrimSpace(text) == "":
					return json.RawMessage("{}")
				case isText && json.Valid([]byte(text)):
					return json.RawMessage(text)
				}
				return arguments
			})
		})
	}
	out, _ := marshal(list)
	return out
}

// shapeCalls gives the earlier calls of a conversation the shape that the chat template wants. A template that writes no calls would leave
// them out in silence.
func shapeCalls(o *object, messages []grove.Message, layout *chat.Layout) {
	ids := map[string]string{}
	for i := range messages {
		m := &messages[i]
		fields, _ := decode[map[string]json.RawMessage](m.Extra)
		calls, _ := decode[[]calledTool](fields["tool_calls"])
		if len(calls) == 0 && fields["tool_call_id"] == nil {
			continue
		}
		form, err := layout.CallForm()
		switch {
		case errors.Is(err, chat.ErrNoCalls) && len(calls) > 0:
			o.fail(fmt.Sprintf("messages[%d].tool_calls", i), "%v", err)
			return
		case err != nil:
			continue
		}
		m.Extra = changeField(m.Extra, "tool_calls", func(list json.RawMessage) json.RawMessage {
			return shapedCalls(list, form, ids)
		})
		m.Extra = changeField(m.Extra, "tool_call_id", func(id json.RawMessage) json.RawMessage {
			if shaped := ids[string(id)]; shaped != "" {
				return json.RawMessage(shaped)
			}
			return id
		})
		if form.NullContent && len(calls) > 0 && m.Content == "" {
			m.Extra = append(m.Extra[:len(m.Extra)-1:len(m.Extra)-1], `,"content":null}`...)
		}
	}
}

// shapedCalls are the calls of a message in a form. ids gets the ids that it changes.
func shapedCalls(raw json.RawMessage, form *chat.CallForm, ids map[string]string) json.RawMessage {
	list, _ := decode[[]json.RawMessage](raw)
	for i := range list {
		call, _ := decode[calledTool](list[i])
		list[i] = changeField(list[i], "id", func(id json.RawMessage) json.RawMessage {
			given, _ := decode[string](id)
			if !form.NamesInIDs && (!form.ShortIDs || shortID.MatchString(given)) {
				return id
			}
			shaped, _ := json.Marshal(callID(form, call.Function.Name, i, given))
			ids[string(id)] = string(shaped)
			return shaped
		})
		if !form.TextArguments {
			continue
		}
		list[i] = changeField(list[i], "function", func(function json.RawMessage) json.RawMessage {
			return changeField(function, "arguments", func(arguments json.RawMessage) json.RawMessage {
				if _, isText := decode[string](arguments); isText {
					return arguments
				}
				text, _ := json.Marshal(string(arguments))
				return text
			})
		})
	}
	out, _ := json.Marshal(list)
	return out
}

// shortID are the ids that some templates ask for.
var shortID = regexp.MustCompile(fmt.Sprintf(`^[a-zA-Z0-9]{%d}$`, chat.IDLength))

// callID is an id for a call that has a number in its turn: one that the chat template can print, made of what tells it from others.
func callID(form *chat.CallForm, name string, index int, from string) string {
	switch {
	case form.NamesInIDs:
		return fmt.Sprintf("functions.%s:%d", name, index)
	case form.ShortIDs:
		sum := sha256.Sum256([]byte(from))
		return base32.StdEncoding.EncodeToString(sum[:])[:chat.IDLength]
	}
	return "call_" + from[:20]
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
