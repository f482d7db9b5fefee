package tokenizer

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/testing/cases"
)

// A text never has fewer tokens than its bytes promise, however few it has: long tokens, names of special tokens,
// characters that are composed first, and characters without a token.
func TestLeast(t *testing.T) {
	for name, tok := range small(t) {
		if (tok.reach == 0) != (name == "unigram") {
			t.Errorf("%s: a token stands for at most %d bytes", name, tok.reach)
		}
		parts := []string{" ", "▁", "\u212a", "\u1100\u1161\u11a8", "\x04", "\U00040000", "a"}
		for id, piece := range tok.piece {
			if len(piece) > 1 && (len(parts) < 40 || len(piece) > tok.reach/composed/2) {
				parts = append(parts, piece, tok.text[id])
			}
		}
		cases.Check(t, 100, func(rt *rapid.T) {
			text := ""
			for _, part := range rapid.SliceOfN(rapid.SampledFrom(parts), 1, 5).Draw(rt, "parts") {
				text += strings.Repeat(part, rapid.IntRange(1, 50).Draw(rt, "times"))
			}
			for _, o := range []EncodeOptions{{}, {ParseSpecial: true}} {
				if n, least := len(tok.Encode(text, o)), tok.least(text); n < least {
					rt.Fatalf("%s: %q has %d tokens, want %d at least", name, text, n, least)
				}
			}
		})
	}
}
