package callform

import (
	"errors"
	"fmt"
	"strings"
)

// Texts of the conversations, which no template has.
const (
	probeUser    = "qzuser"
	probeContent = "qzcontent"
	idMark       = "\ufdd2" // in the place of the id
	indexMark    = "\ufdd3" // in the place of the number of the call
)

var (
	probeNames  = []string{"qzalpha", "qzbeta", "qzgamma"}
	probeKeys   = []string{"qzkeya", "qzkeyb", "qzkeyc"}
	probeValues = []string{"qzvala", "qzvalb", "qzvalc"}
)

// errNotRendered says that a template cannot render a conversation.
var errNotRendered = errors.New("the template does not take the conversation")

// probe is a way to give calls to a template.
type probe struct {
	t       *Template
	content string // of a turn with calls alone, in JSON
	text    bool   // arguments as text
	named   bool   // ids have the name and the number of the call
	long    bool   // ids are longer than Mistral's
	bare    bool   // no tools are on offer
}

// probeCall is a call of the tool with a number; arguments are names and values in JSON, in turn.
type probeCall struct {
	tool      int
	arguments []string
}

func quoteJSON(text string) string { return string(appendQuoted(nil, text)) }

func (c probeCall) object() string {
	var pairs []string
	for i := 0; i < len(c.arguments); i += 2 {
		pairs = append(pairs, quoteJSON(c.arguments[i])+": "+c.arguments[i+1])
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}

func (p *probe) id(n int) string {
	if p.named {
		return fmt.Sprintf("functions.%s:%d", probeNames[n], n)
	}
	id := fmt.Sprintf("qzid0000%d", n+1)
	if p.long {
		id += "_" + id
	}
	return id
}

// render renders a turn of the assistant. It returns the text behind the user's.
func (p *probe) render(content string, calls ...probeCall) (string, error) {
	var list, tools []string
	for n, c := range calls {
		arguments := c.object()
		if p.text {
			arguments = quoteJSON(arguments)
		}
		list = append(list, fmt.Sprintf(`{"id": %q, "type": "function", "function": {"name": %q, "arguments": %s}}`,
			p.id(n), probeNames[c.tool], arguments))
	}
	for _, name := range probeNames {
		tools = append(tools, fmt.Sprintf(`{"type": "function", "function": {"name": %q, "description": "Does it.", "parameters": `+
			`{"type": "object", "properties": {"qzkeya": {"type": "string", "description": "A text."}}, "required": ["qzkeya"]}}}`, name))
	}
	extra := `{"content": ` + content
	if len(list) > 0 {
		extra += `, "tool_calls": [` + strings.Join(list, ", ") + `]`
	}
	turn := []byte(extra + "}")
	if content == "" {
		turn = nil
	}
	offer := []byte("[" + strings.Join(tools, ", ") + "]")
	if p.bare {
		offer = nil
	}
	text, err := p.t.Render(probeUser, turn, offer)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNotRendered, err)
	}
	at := strings.LastIndex(text, probeUser)
	if at < 0 {
		return "", fmt.Errorf("%w: it leaves the user's text out", errNotRendered)
	}
	text = text[at+len(probeUser):]
	for n := range calls {
		if !p.named {
			text = strings.ReplaceAll(text, p.id(n), idMark)
		}
	}
	return text, nil
}

// plain is a call of a tool with as many arguments, which are strings.
func plainCall(tool, arguments int) probeCall {
	c := probeCall{tool: tool}
	for i := range arguments {
		c.arguments = append(c.arguments, probeKeys[(tool+i)%3], quoteJSON(probeValues[(tool+i)%3]))
	}
	return c
}
