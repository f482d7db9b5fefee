package command

import (
	"fmt"
	"strings"

	"github.com/grovellm/grove"
)

// TokenText returns a function that returns the text of single tokens.
func TokenText(m *grove.Model) func(int32) string {
	t := m.Tokenizer()
	if t == nil {
		return func(token int32) string { return fmt.Sprint(token) }
	}
	return func(token int32) string { return strings.ToValidUTF8(t.Piece(token), "\uFFFD") }
}
