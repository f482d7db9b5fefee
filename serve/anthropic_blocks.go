package serve

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Messages of Anthropic's API: blocks of text, reasoning, calls and results.

// turnBody is a message. Its unknown fields go to the chat template.
type turnBody struct {
	Role    field[string]     `json:"role"`
	Content field[turnBlocks] `json:"content"`
	More    unknown
}

// turnBlocks is a message's content: a text or a list of blocks.
type turnBlocks []turnBlock

type turnBlock struct {
	Type      field[string]   `json:"type"`
	Text      content         `json:"text"`
	Thinking  content         `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   turnBlocks      `json:"content"` // of a tool's result or a search result
	IsError   bool            `json:"is_error"`

	Title     string             `json:"title"`
	Context   string             `json:"context"`
	Source    field[blockSource] `json:"source"`
	ToolName  string             `json:"tool_name"`
	Citations citations          `json:"citations"`
}

func (b *turnBlock) readJSON(d *decoder, path string, raw json.RawMessage) error {
	head, _ := decode[struct{ Type string }](raw)
	if ranElsewhere.MatchString(head.Type) { // other fields have forms of their own
		b.Type = field[string]{head.Type, true, path + ".type"}
		return nil
	}
	type object turnBlock
	return d.read(path, raw, (*object)(b))
}

// ranElsewhere matches the types of calls that another server ran, and of their results.
var ranElsewhere = regexp.MustCompile(`^(server|mcp)_tool_use$|._tool_result$`)

// citations reports whether a block asks for citations. In earlier answers the field is a list.
type citations bool

func (c *citations) readJSON(_ *decoder, _ string, raw json.RawMessage) error {
	asked, _ := decode[struct{ Enabled bool }](raw)
	*c = citations(asked.Enabled)
	return nil
}

// blockSource is the text of a document, or the address of a search result.
type blockSource struct {
	address string
	Type    field[string] `json:"type"`
	Data    string        `json:"data"`
	Content turnBlocks    `json:"content"`
}

func (s *blockSource) readJSON(d *decoder, path string, raw json.RawMessage) error {
	if text, isText := decode[string](raw); isText {
		s.address = text
		return nil
	}
	type object blockSource
	return d.read(path, raw, (*object)(s))
}

func (t *turnBlocks) readJSON(d *decoder, path string, raw json.RawMessage) error {
	if text, isText := decode[string](raw); isText {
		block := turnBlock{Text: content{text}}
		block.Type.set("text")
		*t = turnBlocks{block}
		return nil
	}
	if raw[0] != '[' {
		return fieldError(path, "want a string or a list of text parts, not %s", described(raw))
	}
	return d.read(path, raw, (*[]turnBlock)(t))
}

// messages returns the messages that a turn at path makes: results of tools become messages of their own. It leaves
// out calls that another server ran, with a warning to t.
func (b *turnBody) messages(path string, t *toolset) (list []message, err error) {
	switch role := b.Role.value; {
	case role != "system" && role != "user" && role != "assistant":
		return nil, b.Role.fail("%q: want system, user or assistant", role)
	case !b.Content.given:
		return nil, b.Content.fail("the field is required")
	}
	said := message{path: path, role: b.Role.value, more: b.More}
	given := len(b.Content.value) == 0
	var content, reason strings.Builder
	begin := func() {
		said = message{path: path, role: b.Role.value}
		content.Reset()
		reason.Reset()
		given = false
	}
	end := func() {
		said.content, said.reasoning = content.String(), reason.String()
		list = append(list, said)
	}
	for i := range b.Content.value {
		switch in := &b.Content.value[i]; in.Type.value {
		case "text", "document", "search_result", "image":
			text, err := in.text()
			if err != nil {
				return nil, err
			}
			said.unread = append(said.unread, in.unread()...)
			if content.Len() > 0 {
				content.WriteString("\n")
			}
			content.WriteString(text)
			given = true
		case "thinking":
			reason.WriteString(in.Thinking.text())
		case "redacted_thinking": // only its author can read it
		case "tool_use":
			said.calls = append(said.calls, newCalledTool(in.ID, in.Name, argumentsOf(string(in.Input))))
			given = true
		case "tool_result":
			if given {
				end()
			}
			text, err := in.resultText()
			if err != nil {
				return nil, err
			}
			list = append(list, message{path: path, role: "tool", content: text, result: in.ToolUseID, unread: in.unread()})
			begin()
		case "compaction":
			if !in.compacts() {
				continue
			}
			text, err := in.Content.text()
			if err != nil {
				return nil, err
			}
			list = []message{{path: path, role: "user", content: tagged("summary", text)}}
			begin()
		default:
			if ranElsewhere.MatchString(in.Type.value) {
				t.leaveOut(&in.Type)
				continue
			}
			return nil, in.Type.fail("%q: this server reads text, thinking, tool_use, tool_result, document and search_result",
				in.Type.value)
		}
	}
	if given || len(list) == 0 {
		end()
	}
	return list, nil
}

// compacts reports whether the block is a summary that Anthropic's server made of all before it. It may have failed to
// make one.
func (b *turnBlock) compacts() bool { return b.Type.value == "compaction" && b.Content != nil }

// resultText returns the text of a tool's result. Chat templates know no errors, so the text says that it is one.
func (b *turnBlock) resultText() (string, error) {
	text, err := b.Content.text()
	if b.IsError && !saysError.MatchString(text) {
		text = strings.TrimSpace("Error: " + text)
	}
	return text, err
}

// saysError matches a text that calls itself an error, such as <tool_use_error>.
var saysError = regexp.MustCompile(`(?i)^\W*(\w*_)?error\b`)

// text returns the blocks as lines.
func (t turnBlocks) text() (string, error) {
	lines := make([]string, len(t))
	for i := range t {
		var err error
		if lines[i], err = t[i].text(); err != nil {
			return "", err
		}
	}
	return strings.Join(lines, "\n"), nil
}

// text returns a block of text as the model reads it. The names of documents and search results are in tags.
func (b *turnBlock) text() (text string, err error) {
	s := &b.Source.value
	switch kind := b.Type.or("text"); {
	case kind == "text":
		return b.Text.text(), nil
	case kind == "tool_reference": // the prompt has all tools already
		return b.ToolName, nil
	case kind == "search_result":
		text, err = b.Content.text()
		return tagged(kind, text, "title", b.Title, "source", s.address), err
	case kind == "image":
		return lineOf(kind), nil
	case kind != "document":
		return "", b.Type.fail("%q: this server reads text, document and search_result here", kind)
	case !b.Source.given:
		return "", b.Source.fail("the field is required")
	case s.Type.value == "text":
		text = s.Data
	case s.Type.value == "content":
		text, err = s.Content.text()
	case slices.Contains(unreadSources, s.Type.value):
		text = lineOf(kind)
	default:
		return "", s.Type.fail("%q: want text or content", s.Type.value)
	}
	return tagged("document", text, "title", b.Title, "context", b.Context), err
}

// unreadSources are the types of documents that are files.
var unreadSources = []string{"base64", "url", "file"}

// unread returns the types of the images and files for which a line of the block's text stands.
func (b *turnBlock) unread() (list []field[string]) {
	s := &b.Source.value
	switch kind := b.Type.value; {
	case kind == "image":
		return []field[string]{b.Type}
	case kind == "document" && slices.Contains(unreadSources, s.Type.value):
		return []field[string]{s.Type}
	}
	for _, inner := range []turnBlocks{b.Content, s.Content} {
		for i := range inner {
			list = append(list, inner[i].unread()...)
		}
	}
	return list
}

// tagged returns a text in a tag. Names and values of what describes it alternate.
func tagged(tag, text string, about ...string) string {
	lines := []string{"<" + tag + ">"}
	for i := 0; i < len(about); i += 2 {
		if about[i+1] != "" {
			lines = append(lines, "<"+about[i]+">"+about[i+1]+"</"+about[i]+">")
		}
	}
	return strings.Join(append(lines, text, "</"+tag+">"), "\n")
}

// cited reports whether a block asks for citations.
func (t turnBlocks) cited() bool {
	return slices.ContainsFunc(t, func(b turnBlock) bool {
		return bool(b.Citations) || b.Content.cited() || b.Source.value.Content.cited()
	})
}
