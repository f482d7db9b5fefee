package serve

import (
	"errors"
	"fmt"
	"sort"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/internal/inside/lower"
)

// longError says that a prompt has more tokens than it may have: its bytes show that, so they were not counted.
type longError struct{ least, most int }

func (e *longError) Error() string {
	return fmt.Sprintf("at least %d tokens: want at most %d", e.least, e.most)
}

// checkLength refuses a text whose bytes show that it has more tokens than most. Making tokens of a megabyte may take
// seconds, and 40 MB of memory.
func (m *Model) checkLength(text string, most int) error {
	if m.Tokenizer() == nil || most == 0 {
		return nil
	}
	if least := lower.LeastTokens(m.Tokenizer(), text); least > most {
		return &longError{least, most}
	}
	return nil
}

// checkConversation refuses a conversation whose bytes show that it does not fit into the context.
func (m *Model) checkConversation(layout *chat.Layout, list []grove.Message, options chat.Options) error {
	least := 0
	for _, message := range list {
		least += lower.LeastTokens(m.Tokenizer(), message.Content)
	}
	if least <= m.Context() {
		return nil
	}
	text, err := layout.Render(placeSystem(layout, list, options), options) // it may leave something out
	if err != nil {
		return nil // making tokens fails too
	}
	return m.checkLength(text, m.Context())
}

// encode makes the tokens of a conversation. If truncate is set, it leaves out as few of the oldest
// turns, each from one message of the user to the next, as make it fit together with the first
// token of an answer; leftOut counts their messages.
func (m *Model) encode(layout *chat.Layout, list []grove.Message, options chat.Options,
	truncate bool) (tokens []int32, leftOut int, err error) {
	context := m.Context()
	of := func(list []grove.Message) ([]int32, error) {
		if err := m.checkConversation(layout, list, options); err != nil {
			return nil, err
		}
		return encodeFitted(layout, list, options)
	}
	tokens, err = of(list)
	var long *longError
	if !truncate || err == nil && len(tokens) < context || err != nil && !errors.As(err, &long) {
		return tokens, 0, err
	}
	var system []grove.Message // always kept
	var begins []int           // where turns begin
	for i, m := range list {
		if isSystem(m) {
			system = append(system, m)
		} else if m.Role == "user" {
			begins = append(begins, i)
		}
	}
	at := sort.Search(len(begins), func(n int) bool {
		kept := append([]grove.Message(nil), system...)
		for _, m := range list[begins[n]:] {
			if !isSystem(m) {
				kept = append(kept, m)
			}
		}
		var shorter []int32
		if shorter, err = of(kept); err != nil || len(shorter) >= context {
			return false
		}
		tokens, leftOut = shorter, len(list)-len(kept)
		return true
	})
	if at == len(begins) { // even the last turn is too long
		tokens, err = of(list)
		return tokens, 0, err
	}
	return tokens, leftOut, nil
}
