package grammar

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/callform"
)

// Reasoning ends after its budget of tokens, and after the bytes that complete its last character,
// however tokens cut characters: the text is valid UTF-8, and what follows is what follows
// reasoning.
func TestReasoningBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var pieces [][]byte
		for b := range 0xf5 { // others are in no text
			pieces = append(pieces, []byte{byte(b)})
		}
		letters := []rune("aé語😀\u0800\ud7ff\ue000\U00010000\U0010ffff")
		for range rapid.IntRange(0, 60).Draw(t, "pieces") { // that begin and end within characters
			text := string(letters[rng.IntN(len(letters))]) + string(letters[rng.IntN(len(letters))])
			from := rng.IntN(len(text))
			pieces = append(pieces, []byte(text)[from:from+1+rng.IntN(len(text)-from)])
		}
		source := &Source{Marks: callform.AllMarks[0], Thinking: true, ThinkingNow: rapid.Bool().Draw(t, "open")}
		if rapid.Bool().Draw(t, "regex") {
			source.Regex = "[a-z]é"
		}
		if !source.ThinkingNow {
			pieces = append(pieces, []byte("<think>"))
		}
		g, err := source.Compile()
		if err != nil {
			t.Fatal(err)
		}
		c := &Constraint{Grammar: g, Vocab: NewVocab(pieces), Budget: rapid.IntRange(0, 12).Draw(t, "budget")}
		if c.Closed, err = source.Closed().Compile(); err != nil {
			t.Fatal(err)
		}
		s, err := c.Start()
		text, tokens := "", 0 // of reasoning
		for n := 0; err == nil && n < 60 && !s.Complete(); n++ {
			mask, err := c.Mask(s)
			if err != nil {
				t.Fatal(err)
			}
			var allowed []int32
			for token := range int32(len(pieces)) {
				if mask.Has(token) && !strings.ContainsAny(string(pieces[token]), "<") {
					allowed = append(allowed, token)
				}
			}
			if n == 0 && !source.ThinkingNow {
				allowed = []int32{int32(len(pieces) - 1)} // <think>
			}
			if len(allowed) == 0 { // the mark of the end
				allowed = []int32{mask.First()}
			}
			token := allowed[rng.IntN(len(allowed))]
			if s, err = c.Next(s, token, n); err != nil || s == nil {
				t.Fatalf("%q: token %q: %v", text, pieces[token], err)
			}
			text += string(pieces[token])
			if !strings.Contains(text, "<") || !source.ThinkingNow && strings.Count(text, "<") == 1 {
				tokens = n + 1
			}
		}
		thought, rest, ended := strings.Cut(text, "</think>")
		least := c.Budget
		if !source.ThinkingNow {
			least = max(least, 1)
		}
		if !ended || tokens < least || tokens > least+utf8.UTFMax-1 {
			t.Fatalf("budget %d: %d tokens of reasoning: %q", c.Budget, tokens, text)
		}
		if !utf8.ValidString(thought) || source.Regex != "" && !utf8.ValidString(rest) {
			t.Fatalf("budget %d: %q", c.Budget, text)
		}
	})
}
