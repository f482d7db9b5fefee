package chat

import (
	"errors"
	"strings"
	"unicode"
)

// openMark, put behind the last message's content, shows where a template renders its end. It is of
// Unicode's noncharacters, and long: a template may print the first characters of a content
// elsewhere.
const openMark = "\ufdd2\ufdd3\ufdd2\ufdd3\ufdd2\ufdd3\ufdd2\ufdd3\ufdd2\ufdd3\ufdd2\ufdd3\ufdd2\ufdd3\ufdd2\ufdd3"

var errNotOpen = errors.New("the last message has no content that the chat template prints, so it cannot be continued")

// renderOpen is render, which with Options.Continue ends behind the last message's content: what
// the template prints after it is cut off, and white space at its end where the template takes that
// away.
func (l *Layout) renderOpen(messages []Message, o Options, guard bool) (string, error) {
	if !o.Continue {
		return l.render(messages, o, guard)
	}
	if len(messages) == 0 {
		return "", errNotOpen
	}
	last := len(messages) - 1
	open := append([]Message(nil), messages...)
	open[last].Content += openMark + " " // the space tells whether the template takes white space away there
	o.Prompt = false
	text, err := l.render(open, o, guard)
	if err != nil {
		return "", err
	}
	at := strings.LastIndex(text, openMark)
	switch {
	case at < 0:
		return "", errNotOpen
	case strings.HasPrefix(text[at:], openMark+" ") || strings.TrimSpace(messages[last].Content) == "":
		return text[:at], nil
	}
	return strings.TrimRightFunc(text[:at], unicode.IsSpace), nil
}
