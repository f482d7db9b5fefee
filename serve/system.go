package serve

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/chat"
)

// encodeFitted makes the prompt of a conversation, in a form that the model's chat template accepts.
// If the template fails, empty answers are left out, and consecutive messages of the user, also after a tool's result,
// or of the assistant become one.
func encodeFitted(layout *chat.Layout, list []grove.Message, options chat.Options) ([]int32, error) {
	tokens, err := layout.Encode(placeSystem(layout, list, options), options)
	if err == nil {
		return tokens, nil
	}
	if slices.ContainsFunc(list, isSystem) {
		list = joinSystem(list)
	}
	var joined []grove.Message
	for i, m := range list {
		last := len(joined) - 1
		before := grove.Message{}
		if last >= 0 {
			before = joined[last]
		}
		switch {
		case m.Role == "user" && (before.Role == "user" || before.Role == "tool"),
			m.Role == "assistant" && before.Role == m.Role && m.Content != "" && m.Extra == nil && before.Extra == nil:
			joined[last].Content += "\n\n" + m.Content
		case m.Role != "assistant" || m.Content != "" || m.Extra != nil || i == len(list)-1:
			joined = append(joined, m)
		}
	}
	tokens, failed := layout.Encode(placeSystem(layout, joined, options), options)
	if failed != nil {
		return nil, err
	}
	return tokens, nil
}

// placeSystem puts system messages where the model's chat template shows them. If the template
// fails for the messages as they are, or drops their text, they become one message at the head; if
// it supports no system message, they become the beginning of the user's first.
func placeSystem(layout *chat.Layout, list []grove.Message, options chat.Options) []grove.Message {
	if !slices.ContainsFunc(list, isSystem) || showsSystem(layout, list, options) {
		return list
	}
	joined := joinSystem(list)
	if showsSystem(layout, joined, options) {
		return joined
	}
	if said := userSystem(joined); renders(layout, said, options) {
		return said
	}
	return list // return the template's error for these
}

func isSystem(m grove.Message) bool { return m.Role == "system" }

// showsSystem reports whether the template's output has the text of all system messages, in order.
func showsSystem(layout *chat.Layout, list []grove.Message, options chat.Options) bool {
	list = slices.Clone(list)
	// What follows a first message changes nothing, except that Mistral Nemo's template shows it before a last message of
	// the user alone.
	if !slices.ContainsFunc(list[1:], isSystem) && list[len(list)-1].Role == "user" {
		list = []grove.Message{list[0], {Role: "user", Content: "x"}}
	}
	var marks []string
	for i := range list {
		if isSystem(list[i]) {
			marks = append(marks, fmt.Sprintf("what system message %d says", i))
			list[i].Content = marks[len(marks)-1]
		}
	}
	text, err := layout.Render(list, options)
	for _, mark := range marks {
		_, after, found := strings.Cut(text, mark)
		if err != nil || !found {
			return false
		}
		text = after
	}
	return true
}

func renders(layout *chat.Layout, list []grove.Message, options chat.Options) bool {
	_, err := layout.Render(list, options)
	return err == nil
}

// joinSystem joins the system messages into one, at the head.
func joinSystem(list []grove.Message) []grove.Message {
	var system, others []grove.Message
	var texts []string
	for _, m := range list {
		if !isSystem(m) {
			others = append(others, m)
			continue
		}
		system = append(system, m)
		if m.Content != "" {
			texts = append(texts, m.Content)
		}
	}
	system[0].Content = strings.Join(texts, "\n\n")
	return append(system[:1:1], others...)
}

// userSystem moves the message at the head to the beginning of the user's first.
func userSystem(list []grove.Message) []grove.Message {
	text, list := list[0].Content, slices.Clone(list[1:])
	first := slices.IndexFunc(list, func(m grove.Message) bool { return m.Role == "user" })
	switch {
	case text == "":
	case first < 0:
		list = slices.Insert(list, 0, grove.Message{Role: "user", Content: text})
	default:
		list[first].Content = strings.TrimSuffix(text+"\n\n"+list[first].Content, "\n\n")
	}
	return list
}

// cutLines leaves out lines of system messages that match one of the patterns: lines that differ
// between sessions keep prompts from sharing the text that follows them.
func cutLines(list []grove.Message, patterns []*regexp.Regexp) {
	matches := func(line string) bool {
		line = strings.TrimRight(line, "\r\n")
		return slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(line) })
	}
	for i := range list {
		if len(patterns) == 0 || !isSystem(list[i]) {
			continue
		}
		lines := slices.Collect(strings.Lines(list[i].Content))
		list[i].Content = strings.Join(slices.DeleteFunc(lines, matches), "")
	}
}
