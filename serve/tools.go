package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/internal/callform"
	"github.com/grovellm/grove/internal/grammar"
)

// toolName matches the names that a function may have: OpenAI's, and MCP's with dots.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)

// functionBody is a function that a model may call, in OpenAI's form. For a custom tool it has a
// format and no parameters.
type functionBody struct {
	Name        field[string]          `json:"name"`
	Description field[string]          `json:"description"`
	Parameters  field[json.RawMessage] `json:"parameters"`
	Strict      bool                   `json:"strict"`
	Format      field[inputFormat]     `json:"format"`
}

// toolset is the functions that a model is offered, and which of them it may call.
type toolset struct {
	path     string // of the field that has them
	list     []functionBody
	offered  map[string]offered // functions that the client knows by another name or kind
	old      bool               // they came in OpenAI's first form
	warnings []string           // what was left out or relaxed

	mode       string   // none, auto or required; empty: auto
	only       []string // functions that may be called; nil: all
	choicePath string   // of the field that sets it
}

// chooseMode sets the mode: none, auto or required, which some protocols and clients call any.
func (t *toolset) chooseMode(mode, path string) error {
	if mode == "any" {
		mode = "required"
	}
	if mode != "none" && mode != "auto" && mode != "required" {
		return fieldError(path, "%q: want none, auto, required or a function", mode)
	}
	t.mode = mode
	t.choicePath = path
	return nil
}

// chooseOne sets the one function to call.
func (t *toolset) chooseOne(name, path string) error {
	if name == "" {
		return fieldError(path, "the field is required")
	}
	t.mode = "required"
	t.only = []string{name}
	t.choicePath = path
	return nil
}

// setTools sets the functions that the model may call, as constraints on its output.
func (c *call) setTools(ctx context.Context, v *conversation, layout *chat.Layout) (warnings []string, err error) {
	set := &v.tools
	c.toolsPath = set.path
	switch {
	case len(set.list) == 0 && set.mode == "required":
		return nil, fieldError(set.choicePath, "the request has no tools: add tools")
	case len(set.list) == 0 || set.mode == "none":
		return nil, nil
	}
	t := &grove.Tools{Required: set.mode == "required"}
	work := grammar.MostWork
	for i := range set.list {
		f := &set.list[i]
		name := f.Name.value
		if !toolName.MatchString(name) {
			return warnings, f.Name.fail("%q: want 1 to 128 letters, digits, _, - or .", name)
		}
		parameters, left, err := f.heldParameters(ctx, &work)
		warnings = append(warnings, left...)
		if err != nil {
			return warnings, err
		}
		if set.only == nil || slices.Contains(set.only, name) {
			t.List = append(t.List, grove.Tool{Name: name, Parameters: parameters})
		}
	}
	t.Form, err = layout.CallForm()
	switch {
	case err != nil:
		return warnings, fieldError(set.path, "%v", err)
	case len(t.List) == 0:
		return warnings, fieldError(set.choicePath, "tools has no tool %q", strings.Join(set.only, ", "))
	case c.constraint.grammar != "":
		return warnings, fieldError(set.path,
			"%s is set too: tools can be combined only with a JSON schema or a regular expression", c.constraint.param)
	}
	generic := callform.Of(t.Form).Generic
	t.Single = !v.ParallelToolCalls.or(!generic) || t.Required && len(set.only) == 1
	if generic { // models that were not trained on it repeat calls endlessly
		warnings = append(warnings, warning(set.path, "the model's chat template does not support tool calls: grove's generic format is used"))
	}
	c.request.Tools = t
	return warnings, nil
}

// heldParameters returns the schema that a function's arguments must match. Unless the function is strict, it
// leaves out parts that cannot be enforced, with warnings. work is the request's remaining allowance for this.
func (f *functionBody) heldParameters(ctx context.Context, work *int) (schema string, warnings []string, err error) {
	schema = string(f.Parameters.value)
	if !f.Parameters.given || f.Strict {
		return schema, nil, nil
	}
	r, err := relaxed(ctx, schema, work)
	switch {
	case ctx.Err() != nil:
		return "", nil, context.Cause(ctx)
	case err != nil:
		return "", nil, f.Parameters.fail("%v", err)
	}
	for _, place := range r.Left {
		warnings = append(warnings, warning(f.Parameters.path, "%s cannot be enforced, so calls may violate it", place))
	}
	return r.Schema, warnings, nil
}

// relaxations caches those of recent schemas: clients send the same tools again and again.
var relaxations = struct {
	sync.Mutex
	known map[string]grammar.Relaxed
}{known: map[string]grammar.Relaxed{}}

// mostRelaxations bounds the number of remembered schemas, and mostRelaxed the bytes of each.
const mostRelaxations, mostRelaxed = 1024, 1 << 16

// relaxed returns the result of grammar.Relax, or any object if that takes more than the remaining work. A
// cached schema costs the work that it cost before, so that an answer does not depend on earlier requests.
func relaxed(ctx context.Context, parameters string, work *int) (r grammar.Relaxed, err error) {
	relaxations.Lock()
	r, known := relaxations.known[parameters]
	relaxations.Unlock()
	if !known {
		if r, err = grammar.Relax(ctx, parameters, *work); err != nil {
			return r, err
		}
	}
	if r.Work > *work {
		*work = 0
		return grammar.Relaxed{Schema: anyObject, Left: []string{"#"}}, nil
	}
	*work -= r.Work
	if !known && len(parameters) <= mostRelaxed {
		relaxations.Lock()
		defer relaxations.Unlock()
		if len(relaxations.known) == mostRelaxations {
			clear(relaxations.known)
		}
		relaxations.known[parameters] = r
	}
	return r, nil
}

// shownTool is a tool in OpenAI's form, which chat templates expect.
type shownTool struct {
	Type     string        `json:"type"`
	Function shownFunction `json:"function"`
}

type shownFunction struct {
	Name        string          `json:"name"`
	Description *string         `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// Some templates fail for a value of several types, the first of which stands for all then, or for a default that is no
// text, such as Hermes's and gpt-oss's.
var (
	severalTypes = regexp.MustCompile(`"type":\s*\[\s*(?:"null"\s*,\s*)?("[a-z]+")[^\]]*\]`)
	otherDefault = regexp.MustCompile(`"default":\s*(-?[0-9][^,}\]\s]*|true|false|null)`)
)

// shown returns what the chat template reads, or nil if there are no tools. Some templates fail for
// a function without a description, parameters or properties: these get empty ones.
func (t *toolset) shown(layout *chat.Layout) json.RawMessage {
	if len(t.list) == 0 {
		return nil
	}
	given, filled := make([]shownTool, len(t.list)), make([]shownTool, len(t.list))
	for i := range t.list {
		f := &t.list[i]
		given[i] = shownTool{"function", shownFunction{Name: f.Name.value, Parameters: f.Parameters.value}}
		filled[i] = given[i]
		filled[i].Function.Description = &f.Description.value
		if f.Description.given {
			given[i].Function.Description = &f.Description.value
		}
		if fields, _ := decode[map[string]json.RawMessage](f.Parameters.value); fields["properties"] == nil {
			filled[i].Function.Parameters = json.RawMessage(`{"type": "object", "properties": {}}`)
		}
	}
	text, _ := marshal(given)
	whole, _ := marshal(filled)
	fails := func(tools []byte) bool {
		return !renders(layout, []grove.Message{{Role: "user", Content: "x"}}, chat.Options{Prompt: true, Tools: tools})
	}
	plain := otherDefault.ReplaceAll(severalTypes.ReplaceAll(whole, []byte(`"type":$1`)), []byte(`"default":"$1"`))
	if bytes.Equal(text, plain) || !fails(text) {
		return text
	}
	for _, list := range [][]byte{whole, plain} {
		if !fails(list) {
			return list
		}
	}
	return text
}

// shapeCalls puts the earlier calls of a conversation into the shape that the chat template wants.
// A template whose form is unknown might silently leave them out.
func (v *conversation) shapeCalls(layout *chat.Layout) error {
	ids := map[string]string{}
	var single *callform.Form // of turns that have one call at most
	var open []string         // ids of calls whose results have yet to come
	for i := range v.messages {
		m := &v.messages[i]
		if len(m.calls) == 0 && m.role != "tool" {
			continue
		}
		found, err := layout.CallForm()
		switch {
		case err != nil && len(m.calls) > 0:
			return fieldError(m.path+".tool_calls", "%v", err)
		case err != nil:
			continue
		}
		form := callform.Of(found)
		if len(form.Next) == 0 {
			single = form
		}
		for j := range m.calls {
			c := &m.calls[j]
			if c.ID == "" && form.HasID() {
				c.ID = fmt.Sprint("call", v.earlier)
			}
			open = append(open, c.ID)
			c.shape(form, v.earlier, ids)
			v.earlier++
		}
		if m.role == "tool" && m.result == "" && len(open) > 0 { // Ollama's clients give calls and results in order
			m.result = open[0]
		}
		open = slices.DeleteFunc(open, func(id string) bool { return m.result == id })
		if shaped := ids[m.result]; shaped != "" {
			m.result = shaped
		}
		m.null = form.NullContent && len(m.calls) > 0 && (m.content == "" || form.CallsAlone)
	}
	if single != nil {
		v.messages = splitCalls(v.messages, single.NullContent)
	}
	return nil
}

// splitCalls gives each call a turn of its own, behind which its result stands. null says that such a turn has null for
// missing content.
func splitCalls(list []message, null bool) (out []message) {
	for len(list) > 0 {
		m := list[0]
		list = list[1:]
		if len(m.calls) < 2 {
			out = append(out, m)
			continue
		}
		n := slices.IndexFunc(list, func(m message) bool { return m.role != "tool" })
		if n < 0 {
			n = len(list)
		}
		results := slices.Clone(list[:n])
		list = list[n:]
		for _, c := range m.calls {
			m.calls = []calledTool{c}
			out = append(out, m)
			m.content = ""
			m.reasoning = ""
			m.null = null
			if at := slices.IndexFunc(results, func(r message) bool { return r.result == c.ID }); at >= 0 {
				out = append(out, results[at])
				results = slices.Delete(results, at, at+1)
			}
		}
		out = append(out, results...)
	}
	return out
}

// shape gives a call, which has a number in the conversation, a form. It records a changed id in ids.
func (c *calledTool) shape(form *callform.Form, number int, ids map[string]string) {
	if c.ID != "" && (form.NamesInIDs || form.ShortIDs && !shortID.MatchString(c.ID)) {
		shaped := callID(form, c.Function.Name, number, c.ID)
		ids[c.ID] = shaped
		c.ID = shaped
	}
	if form.TextArguments {
		c.Function.Arguments, _ = json.Marshal(string(c.Function.Arguments))
	}
}

// shortID matches the ids that some templates require.
var shortID = regexp.MustCompile(fmt.Sprintf(`^[a-zA-Z0-9]{%d}$`, callform.IDLength))

// callID returns an id for a call: one that the chat template can print, derived from what
// distinguishes the call from others.
func callID(form *callform.Form, name string, index int, from string) string {
	switch {
	case form.NamesInIDs:
		return fmt.Sprintf("functions.%s:%d", name, index)
	case form.ShortIDs:
		sum := sha256.Sum256([]byte(from))
		return base32.StdEncoding.EncodeToString(sum[:])[:callform.IDLength]
	}
	return "call_" + from[:20]
}
