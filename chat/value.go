package chat

import (
	"fmt"

	"github.com/grovellm/grove/internal/callform"
	"github.com/grovellm/grove/internal/jinja"
)

// converter makes template values of what came from outside, shielding the names of control tokens.
type converter struct {
	control []string
	blocks  bool      // templates read reasoning as a part of the content, as Mistral's do
	calls   *CallForm // if text before calls has a mark of its own, as in gpt-oss
}

func (c converter) text(s string) string {
	if len(c.control) > 0 {
		s = guarded(s, c.control)
	}
	return s
}

func (c converter) message(m Message) (*jinja.Dict, error) {
	d := jinja.NewDict()
	d.Set("role", c.text(m.Role))
	d.Set("content", c.text(m.Content))
	if len(m.Extra) == 0 {
		return d, nil
	}
	extra, err := c.decode(m.Extra)
	if err != nil {
		return nil, err
	}
	fields, ok := extra.(*jinja.Dict)
	if !ok {
		return nil, errNotObject
	}
	d.Merge(fields)
	c.nameReasoning(d)
	return c.markPreamble(d), nil
}

// markPreamble puts the mark of text that stands before calls into it, behind the reasoning. Without that, gpt-oss's
// template writes such a text as reasoning.
func (c converter) markPreamble(message *jinja.Dict) *jinja.Dict {
	text, _ := message.Get("content").(string)
	form := callform.Of(c.calls)
	if form == nil || form.Preamble.Assign == nil || text == "" || !hasItems(message.Get("tool_calls")) {
		return message
	}
	reasoning, _ := message.Get("reasoning_content").(string)
	message = message.Without("thinking")
	message.Set("content", reasoning+form.Thought.Close.String()+form.Preamble.Assign.String()+text)
	return message
}

// nameReasoning gives a message's reasoning the names by which templates read it, whichever it came with:
// reasoning_content, and thinking for gpt-oss, whose template takes no content beside it where there are calls.
func (c converter) nameReasoning(message *jinja.Dict) {
	for _, name := range callform.ReasoningFields {
		reasoning := message.Get(name)
		if reasoning == nil {
			continue
		}
		message.Set("reasoning_content", reasoning)
		for _, other := range []string{"reasoning", "tool_plan", "thought"} { // Solar's, Command R7B's, MiniCPM 3's
			if message.Get(other) == nil {
				message.Set(other, reasoning)
			}
		}
		content, calls := message.Get("content"), message.Get("tool_calls")
		if text, isText := content.(string); c.blocks && (isText || content == nil) {
			parts := &jinja.List{}
			for _, part := range [][2]jinja.Value{{"thinking", reasoning}, {"text", text}} {
				block := jinja.NewDict()
				block.Set("type", part[0])
				block.Set(part[0].(string), part[1])
				parts.Items = append(parts.Items, block)
			}
			message.Set("content", parts)
		}
		if message.Get("thinking") == nil && (calls == nil || content == nil || content == "") {
			message.Set("thinking", reasoning)
		}
		return
	}
}

// given reads a variable of the template; without JSON it is None.
func (c converter) given(name string, raw []byte) (jinja.Value, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	v, err := c.decode(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// decode reads one JSON value.
func (c converter) decode(raw []byte) (jinja.Value, error) { return jinja.FromJSON(raw, c.text) }
